// Creates the tools, their engine, their jobs and their endpoints.
import type { Registry } from 'prom-client';
import type { Logger } from '../../lib/telemetry.ts';
import type { Endpoint } from '../http/index.ts';
import { readLimits, type Models, type ModelSettings, type PayerFor } from '../models/index.ts';
import { createAnonymousPayer, Replays } from '../billing/index.ts';
import type { ToolSettings } from './config.ts';
import { ArtifactStore, defineArtifactEndpoint } from './engine/artifacts.ts';
import { ToolService, ToolRegistry } from './engine/tool-service.ts';
import { createToolEndpoints } from './endpoints.ts';
import type { Fetcher } from './fetch/fetcher.ts';
import { createArtifactFetcher } from './inputs/file-reader.ts';
import { Slots, createToolMetrics, getTimeLimitMs, Runner } from './engine/runner.ts';
import { ModelSpender } from './engine/spender.ts';
import { Jobs, type JobsOptions } from './engine/jobs/jobs.ts';
import { createBuiltinTools } from './builtin/all.ts';
import type { HostedAppSummary, ToolDependencies, Tool } from './tool.ts';
import type { Workers } from './engine/workers/workers.ts';
import { createWorkers } from './engine/workers/pool.ts';
import { createRemoteWorkers } from './engine/workers/remote/remote-workers.ts';

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
  /** Creates the tools; default: all built-in tools. */
  readonly make?: (services: ToolDependencies) => readonly Tool[];
  /** For tests: shorter times of jobs. */
  readonly jobTimes?: Pick<JobsOptions, 'leaseMs' | 'pollMs'>;
}

export interface Tools {
  /** The tools as defined, at their own prices. */
  readonly defined: readonly Tool[];
  readonly toolRegistry: ToolRegistry;
  readonly toolService: ToolService;
  readonly artifacts: ArtifactStore;
  readonly jobs: Jobs;
  /** Returns jobs in progress to the queue, for another process to continue. */
  readonly stop: () => Promise<void>;
  readonly endpoints: Endpoint[];
}

export function startTools(options: ToolsOptions): Tools {
  const { settings, modelSettings, models, payerFor, baseUrl, registry } = options;
  const { catalog, services, ledger } = models;
  const { maxTokens } = modelSettings;
  const artifacts = startArtifacts(models);
  const made = (options.make ?? createBuiltinTools)({
    baseUrl,
    catalog,
    maxTokens,
    urls: settings.urls,
    speechModel: settings.speechModel,
    fetcher: createArtifactFetcher(options.fetcher, { baseUrl, artifacts }),
    artifacts,
    workers: options.workers,
    apps: options.apps,
    database: () => ledger.get().database,
  });
  const toolRegistry = new ToolRegistry({
    tools: made,
    prices: modelSettings.prices,
    urls: settings.urls,
    offCauses: settings.offCauses,
    modelsMissing: findMissingSetting(modelSettings),
  });
  const slots = new Slots(settings);
  const runner = new Runner({
    slots,
    metrics: createToolMetrics(registry, () => slots.taken),
    wallet: () => ledger.get().wallet,
    prices: modelSettings.prices,
    spenderFor: (payer, call) => new ModelSpender({ services, maxTokens, catalog, payer, ...call }),
  });
  const jobs = startJobs(options, {
    runner,
    toolRegistry,
    anonymous: (owner, networks) => createAnonymousPayer(owner, readLimits(modelSettings), networks),
  });
  const toolService = new ToolService({
    toolRegistry,
    runner,
    baseUrl,
    jobs,
    artifacts,
    readQuota: (payer) => ledger.get().wallet.readQuota(payer),
  });
  const replays = new Replays({
    name: 'tools',
    database: () => ledger.get().database,
    leaseMs: Math.max(60_000, ...toolRegistry.tools.map(getTimeLimitMs)) + 60_000,
  });
  return {
    defined: made,
    toolRegistry,
    toolService,
    artifacts,
    jobs,
    stop: () => jobs.stop(),
    endpoints: [
      ...createToolEndpoints({ toolRegistry, toolService, payerFor, replays, artifacts, baseUrl }),
      defineArtifactEndpoint(artifacts),
    ],
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
  readonly toolRegistry: ToolRegistry;
  readonly anonymous: JobsOptions['anonymous'];
}

/** Runs jobs as soon as the ledger's database, which also stores them, is open. */
function startJobs(
  { models: { ledger }, log, jobTimes }: ToolsOptions,
  { runner, toolRegistry, anonymous }: JobParts,
): Jobs {
  const tools = toolRegistry.tools.filter(({ long }) => long === true).map(({ name }) => name);
  const jobs = new Jobs({
    ...jobTimes,
    log,
    tools,
    anonymous,
    database: () => ledger.get().database,
    work: ({ id, tool, input, payer, session, signal, report, announce }) =>
      runner.run({
        tool: toolRegistry.get(tool),
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

function findMissingSetting({ router, databaseUrl }: ModelSettings): string | undefined {
  if (router === undefined)
    return 'This tool calls language models. The operator of this installation connects a model router with MOORAGE_ROUTER_URL and MOORAGE_ROUTER_KEY.';
  return databaseUrl === undefined
    ? 'This tool calls language models, which requires a ledger. The operator of this installation sets DATABASE_URL to a PostgreSQL server.'
    : undefined;
}

/** Creates the API's workers: in separate pods if there are any, otherwise processes that the API starts. */
export function startWorkers({ workersUrl }: { readonly workersUrl: string | undefined }): Workers {
  return workersUrl === undefined ? createWorkers() : createRemoteWorkers(workersUrl);
}
