// Makes the A2A agent of the tools: its endpoint, and the deliveries of its push notifications.
import type { Logger } from '../../../lib/telemetry.ts';
import type { Offer } from '../../apps/index.ts';
import type { Endpoint } from '../../http/index.ts';
import type { Models, PayerFor } from '../../models/index.ts';
import type { Fetcher, Tools } from '../../tools/index.ts';
import type { AgentOptions } from './calls.ts';
import { a2aEndpoint } from './endpoint.ts';
import { MessageReplays } from './message-replays.ts';
import { PushConfigs } from './push/push-configs.ts';
import { PushDeliveries, type PushTimes } from './push/push-deliveries.ts';
import { toolCalls } from './tool-calls.ts';
import { toolTasks } from './tool-tasks.ts';

export interface AgentStart {
  readonly offer: Offer;
  readonly tools: Pick<Tools, 'toolRegistry' | 'toolService' | 'jobs'>;
  readonly ledger: Models['ledger'];
  readonly payerFor: PayerFor;
  readonly interpret: AgentOptions['interpret'];
  readonly fetcher: Fetcher;
  readonly log: Logger;
  /** Aborted when the process is about to end. */
  readonly ending: AbortSignal;
  /** For tests: times of push notifications, which are long. */
  readonly pushTimes?: (PushTimes & { readonly pollMs: number }) | undefined;
}

export function startAgent({
  offer,
  tools,
  ledger,
  payerFor,
  interpret,
  fetcher,
  log,
  ending,
  pushTimes,
}: AgentStart): Endpoint {
  const database = (): ReturnType<typeof ledger.get>['database'] => ledger.get().database;
  const { toolRegistry, toolService, jobs } = tools;
  const deliveries = new PushDeliveries({
    database,
    fetcher,
    toolService,
    baseUrl: offer.baseUrl,
    log,
    ending,
    times: pushTimes,
  });
  void ledger.opened.then((opened) => {
    opened?.repeat('deliver push notifications', pushTimes?.pollMs ?? 1_000, () => deliveries.deliver());
  });
  return a2aEndpoint({
    offer,
    interpret,
    call: toolCalls({ toolRegistry, toolService, payerFor }),
    tasks: toolTasks({ toolService, jobs, payerFor }),
    push: new PushConfigs({ database, fetcher }),
    replays: new MessageReplays({ database, payerFor }),
  });
}
