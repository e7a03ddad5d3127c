// Makes the tools, what they work with, and their endpoints.
import type { Registry } from 'prom-client';
import type { Logger } from '../../lib/log.ts';
import type { Endpoint } from '../http/index.ts';
import type { ModelSettings } from '../models/config.ts';
import { anonymousPayer, type Payer } from '../billing/payer.ts';
import type { Models } from '../models/start.ts';
import type { ToolSettings } from './config.ts';
import { ArtifactStore } from './engine/artifacts/artifact-store.ts';
import { artifactEndpoint } from './engine/artifacts/endpoint.ts';
import { Desk } from './engine/tool-service.ts';
import { toolEndpoints } from './endpoints.ts';
import type { Fetcher } from './fetch/fetcher.ts';
import { Gate } from './engine/slots.ts';
import { toolMetrics } from './engine/metrics.ts';
import { ModelSpender } from './engine/model-spender.ts';
import { Jobs, type JobsOptions } from './engine/jobs/jobs.ts';
import { limitsOf, type PayerFor } from '../models/callers/payers.ts';
import { toolRegistry } from './builtin/all.ts';
import { Replays } from './engine/replays.ts';
import { limitOf, Runner } from './engine/runner.ts';
import type { HostedAppSummary, ToolServices } from './engine/tool-dependencies.ts';
import type { Tool } from './tool.ts';
import { Toolbox } from './engine/tool-registry.ts';
import type { Workers } from './engine/workers/workers.ts';

export interface ToolsOptions {
  readonly settings: ToolSettings;
  readonly modelSettings: ModelSettings;
  readonly models: Models;
  readonly baseUrl: string;
  readonly registry: Registry;
  readonly log: Logger;
  readonly fetcher: Fetcher;
  readonly workers: Workers;
  readonly payerFor: PayerFor;
  readonly apps: () => readonly HostedAppSummary[];
  /** Makes the tools; default all of the registry. */
  readonly make?: (services: ToolServices) => readonly Tool[];
  /** For tests: times of jobs, which are long. */
  readonly jobTimes?: Pick<JobsOptions, 'leaseMs' | 'pollMs'>;
}

export interface Tools {
  readonly toolbox: Toolbox;
  readonly desk: Desk;
  readonly artifacts: ArtifactStore;
  /** Gives jobs under way back, for another process to go on with. */
  readonly stop: () => Promise<void>;
  readonly endpoints: Endpoint[];
}

export function startTools(options: ToolsOptions): Tools {
  const { settings, modelSettings, models, payerFor, baseUrl, registry } = options;
  const { catalog, services, ledger } = models;
  const { maxTokens } = modelSettings;
  const made = (options.make ?? toolRegistry)({
    baseUrl,
    catalog,
    maxTokens,
    urls: settings.urls,
    speechModel: settings.speechModel,
    fetcher: options.fetcher,
    workers: options.workers,
    apps: options.apps,
    database: () => ledger.get().database,
  });
  const toolbox = new Toolbox({ tools: made, urls: settings.urls, modelsMissing: missingSetting(modelSettings) });
  const gate = new Gate(settings);
  const runner = new Runner({
    gate,
    metrics: toolMetrics(registry, () => gate.taken),
    holds: () => ledger.get().holds,
    spenderFor: (payer, call) => new ModelSpender({ services, maxTokens, catalog, payer, ...call }),
  });
  const jobs = startJobs(options, {
    runner,
    toolbox,
    anonymous: (owner) => anonymousPayer(owner, limitsOf(modelSettings)),
  });
  const artifacts = startArtifacts(models);
  const desk = new Desk({ toolbox, runner, baseUrl, jobs, artifacts });
  const replays = new Replays({
    artifacts,
    database: () => ledger.get().database,
    leaseMs: Math.max(60_000, ...toolbox.tools.map(limitOf)) + 60_000,
  });
  return {
    toolbox,
    desk,
    artifacts,
    stop: () => jobs.stop(),
    endpoints: [...toolEndpoints({ toolbox, desk, payerFor, replays, baseUrl }), artifactEndpoint(artifacts)],
  };
}

function startArtifacts({ ledger }: Models): ArtifactStore {
  const artifacts = new ArtifactStore({ database: () => ledger.get().database });
  void ledger.opened.then((opened) => {
    opened?.repeat('forget files', 60_000, () => artifacts.sweep());
  });
  return artifacts;
}

interface JobParts {
  readonly runner: Runner;
  readonly toolbox: Toolbox;
  readonly anonymous: (owner: string) => Payer;
}

/** Works on jobs as soon as the ledger is open, in which they are kept as well. */
function startJobs(
  { models: { ledger }, log, jobTimes }: ToolsOptions,
  { runner, toolbox, anonymous }: JobParts,
): Jobs {
  const tools = toolbox.tools.filter(({ long }) => long === true).map(({ name }) => name);
  const jobs = new Jobs({
    ...jobTimes,
    log,
    tools,
    anonymous,
    database: () => ledger.get().database,
    work: ({ id, tool, input, payer, session, signal, report, announce }) =>
      runner.run({
        tool: toolbox.get(tool),
        input,
        payer,
        session,
        via: 'job',
        id,
        signal: () => signal,
        log: log.child({ job: id }),
        report,
        announce,
      }),
  });
  void ledger.opened.then((opened) => {
    if (opened === undefined || tools.length === 0) return;
    jobs.start();
    opened.repeat('purge jobs', 600_000, () => jobs.purge());
  });
  return jobs;
}

function missingSetting({ router, databaseUrl }: ModelSettings): string | undefined {
  if (router === undefined)
    return 'this asks models; whoever runs this installation sets MOORAGE_ROUTER_URL and MOORAGE_ROUTER_KEY to a model router';
  return databaseUrl === undefined
    ? 'this asks models, which has to be booked; whoever runs this installation sets DATABASE_URL to a PostgreSQL server'
    : undefined;
}
