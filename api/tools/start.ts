// Creates the tools, their engine and their endpoints.
import type { Registry } from 'prom-client';
import type { Logger } from '../../lib/telemetry.ts';
import type { Endpoint } from '../http/index.ts';
import { readLimits, type Models, type ModelSettings, type PayerFor } from '../models/index.ts';
import { createAnonymousPayer, formatMoney, type PriceList, Replays, toolPrice } from '../billing/index.ts';
import type { ToolSettings } from './config.ts';
import { ArtifactStore } from './engine/artifacts/artifact-store.ts';
import { artifactEndpoint } from './engine/artifacts/endpoint.ts';
import { ToolService } from './engine/tool-service.ts';
import { toolEndpoints } from './endpoints.ts';
import type { Fetcher } from './fetch/fetcher.ts';
import { withArtifacts } from './inputs/artifact-links.ts';
import { Slots } from './engine/slots.ts';
import { toolMetrics } from './engine/metrics.ts';
import { ModelSpender } from './engine/model-spender.ts';
import { Jobs, type JobsOptions } from './engine/jobs/jobs.ts';
import { createBuiltinTools } from './builtin/all.ts';
import { limitOf, Runner } from './engine/runner.ts';
import type { HostedAppSummary, ToolDependencies } from './engine/tool-dependencies.ts';
import type { Tool } from './tool.ts';
import { ToolRegistry } from './engine/tool-registry.ts';
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
  /** Creates the tools; default: all built-in tools. */
  readonly make?: (services: ToolDependencies) => readonly Tool[];
  /** For tests: times of jobs, which are long. */
  readonly jobTimes?: Pick<JobsOptions, 'leaseMs' | 'pollMs'>;
}

export interface Tools {
  /** As they are defined, at their own prices. */
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
    fetcher: withArtifacts(options.fetcher, { baseUrl, artifacts }),
    artifacts,
    workers: options.workers,
    apps: options.apps,
    database: () => ledger.get().database,
  });
  const toolRegistry = new ToolRegistry({
    tools: made.map((tool) => atListPrice(tool, modelSettings.prices)),
    urls: settings.urls,
    offCauses: settings.offCauses,
    modelsMissing: missingSetting(modelSettings),
  });
  const slots = new Slots(settings);
  const runner = new Runner({
    slots,
    metrics: toolMetrics(registry, () => slots.taken),
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
    quotaOf: (payer) => ledger.get().wallet.readQuota(payer),
  });
  const replays = new Replays({
    name: 'tools',
    database: () => ledger.get().database,
    leaseMs: Math.max(60_000, ...toolRegistry.tools.map(limitOf)) + 60_000,
  });
  return {
    defined: made,
    toolRegistry,
    toolService,
    artifacts,
    jobs,
    stop: () => jobs.stop(),
    endpoints: [
      ...toolEndpoints({ toolRegistry, toolService, payerFor, replays, artifacts, baseUrl }),
      artifactEndpoint(artifacts),
    ],
  };
}

/** The tool, at its price in the version of the price list that is in effect. */
function atListPrice(tool: Tool, prices: PriceList): Tool {
  const { name, price: own } = tool;
  return {
    ...tool,
    get price() {
      return formatMoney(toolPrice(prices.at(), name, own));
    },
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

/** Works on jobs as soon as the ledger's database, which stores them too, is open. */
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

function missingSetting({ router, databaseUrl }: ModelSettings): string | undefined {
  if (router === undefined)
    return 'This tool calls language models. The operator of this installation connects a model router with MOORAGE_ROUTER_URL and MOORAGE_ROUTER_KEY.';
  return databaseUrl === undefined
    ? 'This tool calls language models, which requires a ledger. The operator of this installation sets DATABASE_URL to a PostgreSQL server.'
    : undefined;
}
