// Serves A2A at POST /a2a over JSON-RPC, in version 1.0 and, for older clients, 0.3, and delivers push notifications.
import { isLegacyJsonRpcMethod } from '@a2a-js/sdk/compat/v0_3';
import { LegacyJsonRpcTransportHandler } from '@a2a-js/sdk/compat/v0_3/server';
import { JsonRpcTransportHandler, ServerCallContext, validateVersion } from '@a2a-js/sdk/server';
import { z } from 'zod';
import type { Logger } from '../../../lib/telemetry.ts';
import type { Offer } from '../../apps/index.ts';
import {
  type Endpoint,
  defineEndpoint,
  formatEvent,
  eventStreamType,
  createEventStreamResponse,
  fileBodyLimit,
  createJsonResponse,
  type CallContext,
  type RequestContext,
} from '../../http/index.ts';
import type { Models, PayerFor } from '../../models/index.ts';
import type { Fetcher, Tools } from '../../tools/index.ts';
import { type AgentOptions, createToolCalls, createToolTasks } from './calls.ts';
import { MessageReplays } from './message-replays.ts';
import { PushConfigs, PushDeliveries, type PushTimes } from './push-notifications.ts';
import { a2aPath, a2aVersion, buildAgentCard, olderVersion } from './agent-card.ts';
import { RequestHandler, OpenStreams } from './handler.ts';

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
  /** Overrides the push notification delays, which are too long for tests. */
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
  const getDatabase = (): ReturnType<typeof ledger.get>['database'] => ledger.get().database;
  const { toolRegistry, toolService, jobs } = tools;
  const deliveries = new PushDeliveries({
    database: getDatabase,
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
  return createA2aEndpoint({
    offer,
    interpret,
    call: createToolCalls({ toolRegistry, toolService, payerFor }),
    tasks: createToolTasks({ toolService, jobs, payerFor }),
    push: new PushConfigs({ database: getDatabase, fetcher }),
    replays: new MessageReplays({ database: getDatabase, payerFor }),
  });
}

/** Defines the endpoint. Each request gets a new handler that keeps no state, so any replica can answer any request. */
export function createA2aEndpoint(options: AgentOptions): Endpoint {
  const streams = new OpenStreams();
  return defineEndpoint({
    method: 'POST',
    path: a2aPath,
    operation: 'callAgent',
    tag: 'agents',
    summary: 'The Agent2Agent protocol (A2A 1.0 and 0.3, JSON-RPC)',
    description:
      'To run a tool, call SendMessage with a data part {"tool": name, "arguments": {…}}. The response is a message with the result as a data part, and the file, if any, as another part. ' +
      'Fields next to the name are arguments too, and JSON in a text, also in a fenced block, is handled the same way. If a model router is connected, a model maps other text to a tool, and the response states the tool and the cost of that call. ' +
      'Otherwise, or if the model is unsure, the response is a task in the state input-required with a question; answer it with a complete new request. A call that is rejected or fails returns a task in the state rejected or failed, with the problem in its message. ' +
      'Keys, quota and cost are the same as for /t. A slow tool runs as a job, and the response is a task with the id of that job: SendMessage waits up to 25 seconds for it (not at all with returnImmediately), ' +
      'GetTask, ListTasks and CancelTask access it later, and SendStreamingMessage and SubscribeToTask send its progress, its result as an artifact and its end as server-sent events. A task started with a key can be read only with that key. Without a key, the id of the task is the permission to read and cancel it, and ListTasks returns only the tasks of a contextId that is hard to guess, such as the one in the response. ' +
      'A push notification config, sent with the message or by CreateTaskPushNotificationConfig (up to 5 per task), names a public https URL to which the task is sent when it ends: at least once, up to 6 times within half an hour, with the token in X-A2A-Notification-Token and the credentials in Authorization; neither is ever returned. ' +
      'A message sent again within 24 hours with the same messageId is run and charged once and gets the same response, or the same task, if the messageId is hard to guess, such as a UUID. Clients of A2A 0.3 call message/send, message/stream, tasks/get, tasks/cancel, tasks/resubscribe and tasks/pushNotificationConfig/*. The agent card is at /.well-known/agent-card.json.',
    bodyLimit: fileBodyLimit,
    produces: ['application/json', eventStreamType],
    body: z
      .record(z.string(), z.unknown())
      .describe('JSON-RPC 2.0 request, such as {"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": {…}}'),
    output: z.object({
      jsonrpc: z.literal('2.0'),
      id: z.union([z.string(), z.number(), z.null()]),
      result: z.unknown().optional(),
      error: z.unknown().optional(),
    }),
    responseHeaders: { 'A2A-Version': 'The version of the protocol that is spoken.' },
    outputDescription:
      'JSON-RPC 2.0 response, with a result or an error; for methods that stream, one such response in each server-sent event.',
    async handler({ body }, context) {
      const headers = { 'cache-control': 'no-store', 'a2a-version': readProtocolVersion(body, context) };
      const leaving = new AbortController();
      const answer = await answerCall(options, body, { context, streams, leaving: leaving.signal });
      if (!('events' in answer)) return createJsonResponse(answer, { headers });
      return createEventStreamResponse(answer.events, {
        headers,
        abort: () => {
          leaving.abort();
        },
      });
    },
  });
}

interface Call {
  readonly context: RequestContext;
  readonly streams: OpenStreams;
  /** Aborts when the client closes the stream. */
  readonly leaving: AbortSignal;
}

/** Returns one response, or the events of a stream. */
async function answerCall(
  options: AgentOptions,
  body: Record<string, unknown>,
  { context, streams, leaving }: Call,
): Promise<object | { readonly events: AsyncGenerator<string, void, undefined> }> {
  const requestedVersion = readProtocolVersion(body, context);
  const older = requestedVersion.startsWith(olderVersion);
  const createFailure = (error: unknown): object => ({
    jsonrpc: '2.0',
    id: readMessageId(body),
    error: older
      ? LegacyJsonRpcTransportHandler.mapToLegacyJSONRPCError(error)
      : JsonRpcTransportHandler.mapToJSONRPCError(error),
  });
  try {
    validateVersion(requestedVersion, buildAgentCard(options.offer), 'JSONRPC');
    const version = older ? olderVersion : a2aVersion;
    const handler = new RequestHandler(options, limitBySignal(context, leaving), version, streams);
    const transport = older ? new LegacyJsonRpcTransportHandler(handler) : new JsonRpcTransportHandler(handler);
    const answered = await transport.handle(body, new ServerCallContext({ requestedVersion }));
    if (!(Symbol.asyncIterator in answered)) return answered;
    // An error before the first event rejects the whole call. After that, errors are events.
    const first = await answered.next();
    return { events: formatFrames(first, answered, createFailure) };
  } catch (error) {
    return createFailure(error);
  }
}

async function* formatFrames(
  first: IteratorResult<object, void>,
  events: AsyncGenerator<object, void, undefined>,
  failed: (error: unknown) => object,
): AsyncGenerator<string, void, undefined> {
  try {
    for (let next = first; next.done !== true; next = await events.next()) yield formatEvent(undefined, next.value);
  } catch (error) {
    yield formatEvent('error', failed(error));
  }
}

/** Copies the request context with a signal that aborts earlier. */
function limitBySignal(context: RequestContext, signal: AbortSignal): CallContext {
  const { id, headers, log } = context;
  return {
    id,
    headers,
    log,
    signal: AbortSignal.any([context.signal, signal]),
    caller: () => context.caller(),
    onFinished: (done) => {
      context.onFinished(done);
    },
  };
}

/** Reads the client's protocol version. If the client does not send it, the method name decides. */
function readProtocolVersion({ method }: Record<string, unknown>, { headers }: RequestContext): string {
  const header = headers.get('a2a-version');
  // Treat 0.3.0 as 0.3: patch releases do not change the protocol.
  if (header !== null) return /^\d+\.\d+(?=\.\d+$)/.exec(header)?.[0] ?? header;
  return isLegacyJsonRpcMethod(method) ? olderVersion : a2aVersion;
}

function readMessageId({ id }: Record<string, unknown>): string | number | null {
  return typeof id === 'string' || typeof id === 'number' ? id : null;
}
