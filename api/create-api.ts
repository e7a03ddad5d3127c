// Makes the API of its rooms, in their order: what both programs and the tests share.
import type { BlockList } from 'node:net';
import type { Registry } from 'prom-client';
import { type Logger, createHttpMetrics } from '../lib/telemetry.ts';
import type { Problem } from '../lib/problem.ts';
import {
  type AgentStart,
  createDiscoveryEndpoints,
  createInterpreter,
  type Mcp,
  createMcp,
  startAgent,
} from './protocols/index.ts';
import {
  type Apps,
  type AppSettings,
  type AppsOptions,
  type AuthorCluster,
  type AuthorSide,
  createDirectory,
  type DirectoryOptions,
  listLiveApps,
  type NotificationTimes,
  type Offer,
  type SignInProvider,
  startApps,
  startAuthorSide,
  type AppIndex,
} from './apps/index.ts';
import { formatMoney } from './billing/index.ts';
import { type Catalog, type SourceGuide, startCatalog } from './catalog/index.ts';
import { createRequestListener, type Endpoint } from './http/index.ts';
import {
  type Metering,
  type MeteringSettings,
  readMeteringSettings,
  readReceiptSettings,
  readRevenueSettings,
  type ReceiptSettings,
  type RevenueSettings,
  startMetering,
  startReceipts,
  startReconciliation,
  startRevenue,
} from './accounting/index.ts';
import {
  type Models,
  type ModelSettings,
  type ModelsOptions,
  toOpenAiError,
  type PayerFor,
  startModels,
} from './models/index.ts';
import { startPages } from './pages/index.ts';
import {
  type Fetcher,
  ModelSpender,
  toProblemCostFields,
  formatProblemCostHeaders,
  startTools,
  startWorkers,
  type Tools,
  type ToolSettings,
  type ToolsOptions,
} from './tools/index.ts';

export interface ApiOptions {
  /** Like https://moorage.localhost, without a slash at the end. */
  readonly baseUrl: string;
  readonly callers: { readonly salt: string; readonly trustedProxies: BlockList };
  readonly models: ModelSettings;
  readonly tools: ToolSettings;
  readonly appCalls: AppSettings;
  /** Without them, no access logs are received. */
  readonly metering?: MeteringSettings;
  /** Without them, nothing is signed. */
  readonly receipts?: ReceiptSettings;
  readonly revenue?: RevenueSettings;
  /** Hosted apps: how they are found and where they answer inside the cluster. */
  readonly apps: Omit<DirectoryOptions, 'baseUrl' | 'apps'> & {
    readonly apps: Pick<AppIndex, 'get' | 'findNameHolder' | 'listAll' | 'listPreviews'>;
  };
  /** Which app may ask models on /v1. */
  readonly findModelApp: ModelsOptions['findApp'];
  /** Endpoints by which repositories are submitted. */
  readonly submitting: readonly Endpoint[];
  /** How authors run their apps; absent without a cluster. */
  readonly author?: AuthorCluster;
  /** Forges with whose accounts authors sign in; default: none. */
  readonly signInProviders?: readonly SignInProvider[];
  readonly fetcher: Fetcher;
  readonly registry: Registry;
  readonly log: Logger;
  /** Aborted when the process is about to end: streams close. */
  readonly ending: AbortSignal;
  /** For tests: another database, other tools, shorter times. */
  readonly open?: ModelsOptions['open'];
  readonly makeTools?: ToolsOptions['make'];
  /** Guides name tools, so other tools need other guides. */
  readonly guides?: readonly SourceGuide[];
  readonly jobTimes?: ToolsOptions['jobTimes'];
  readonly pushTimes?: AgentStart['pushTimes'] | undefined;
  readonly notificationTimes?: Partial<NotificationTimes> | undefined;
  readonly operationDiscovery?: AppsOptions['operationDiscovery'];
  readonly mcpSessions?: AppsOptions['mcpSessions'];
}

export interface Api {
  /** Everything, as the gateway reaches it. */
  readonly app: ReturnType<typeof createRequestListener>;
  /**
   * Only /v1, for hosted apps. They reach its port without the gateway, so nothing that trusts what the gateway says of a
   * caller answers there.
   */
  readonly appsOnly: ReturnType<typeof createRequestListener>;
  /** Every endpoint of `app` but its pages; the documents are derived from them. */
  readonly endpoints: readonly Endpoint[];
  readonly models: Models;
  readonly tools: Tools;
  readonly apps: Apps;
  readonly catalog: Catalog;
  readonly mcp: Mcp;
  readonly metering: Metering;
  /** Identifies who may read the source of a private repository. @throws Problem as AuthorAccess.identify */
  readonly identifyAuthor: AuthorSide['identifyAuthor'];
  /** Begins to ask apps what they can do; once it is known which are live. */
  start(): void;
  /** Ends open MCP streams, so that a server can drain. */
  closeStreams(): void;
  /** Gives jobs in progress back, finishes what is being settled, and closes what was opened. */
  stop(): Promise<void>;
}

export function createApi(options: ApiOptions): Api {
  const { baseUrl, callers, registry, log, ending } = options;
  const shared = { baseUrl, registry, log };
  const models = startModels({
    ...shared,
    settings: options.models,
    callerSalt: callers.salt,
    findApp: options.findModelApp,
    ...(options.open === undefined ? {} : { open: options.open }),
  });
  const workers = startWorkers(options.tools);
  const { payerFor } = models;
  const tools = startTools({
    ...shared,
    settings: options.tools,
    modelSettings: options.models,
    models,
    payerFor,
    workers,
    fetcher: options.fetcher,
    apps: () => listLiveApps(options.apps.apps.listAll()),
    ...(options.makeTools === undefined ? {} : { make: options.makeTools }),
    ...(options.jobTimes === undefined ? {} : { jobTimes: options.jobTimes }),
  });
  const apps = startApps({
    ...shared,
    directory: createDirectory({ ...options.apps, baseUrl }),
    settings: options.appCalls,
    prices: options.models.prices,
    concurrency: options.tools,
    payerFor,
    callerSalt: callers.salt,
    models,
    workers,
    ...(options.operationDiscovery === undefined ? {} : { operationDiscovery: options.operationDiscovery }),
    ...(options.mcpSessions === undefined ? {} : { mcpSessions: options.mcpSessions }),
  });
  const metering = startMetering({
    settings: options.metering ?? readMeteringSettings({}),
    ledger: models.ledger,
    apps: options.apps,
    baseUrl,
    callers,
    keepDays: options.models.keepDays,
    registry,
    log,
  });
  const receipts = startReceipts({
    ...shared,
    settings: options.receipts ?? readReceiptSettings({}),
    ledger: models.ledger,
    payerFor,
  });
  const revenue = startRevenue({
    settings: options.revenue ?? readRevenueSettings({}),
    ledger: models.ledger,
    prices: options.models.prices,
    receipts: receipts.receipts,
    noticeDays: options.models.noticeDays,
    apps: options.apps.apps,
    tools: tools.defined,
    baseUrl,
    log,
  });
  const reconciliation = startReconciliation({
    ...shared,
    ledger: models.ledger,
    router: { name: options.models.router?.kind ?? 'none', fetchBill: models.fetchBill },
    prices: models.catalog,
  });
  const catalog = startCatalog({
    ...shared,
    apps: options.apps,
    models,
    tools,
    fetcher: options.fetcher,
    ending,
    freeQuota: options.models.freeQuota,
    guides: options.guides,
  });
  const mcp = createMcp({ ...tools, payerFor, baseUrl, log, more: apps.more, guides: catalog.guides });
  const offer: Offer = {
    baseUrl,
    tools: tools.toolRegistry.tools,
    explainOff: (tool) => tools.toolRegistry.explainOff(tool),
    listApps: () => listLiveApps(options.apps.apps.listAll()),
    findOperations: apps.findOperations,
    protocols: [mcp],
    guides: catalog.guides.links,
    models: models.catalog.models.map(({ id, label, tier, in_per_m, out_per_m }) => ({
      id,
      label,
      tier,
      in_per_m: formatMoney(in_per_m),
      out_per_m: formatMoney(out_per_m),
    })),
    freeQuotaUsd: formatMoney(options.models.freeQuota),
  };
  const agent = startAgent({
    offer,
    tools,
    ledger: models.ledger,
    payerFor,
    interpret: createOfferInterpreter(options.models, models, offer, payerFor),
    fetcher: options.fetcher,
    log,
    ending,
    pushTimes: options.pushTimes,
  });
  const author = startAuthorSide(options.author, {
    apps: options.apps.apps,
    site: options.apps.site,
    baseUrl,
    secret: options.models.appTokenSecret,
    deleteGraceMs: options.appCalls.deleteGraceMs,
    signInProviders: options.signInProviders ?? [],
    callerSalt: callers.salt,
    ledger: models.ledger,
    fetcher: options.fetcher,
    listAuthorNews: revenue.listAuthorNews,
    notificationTimes: options.notificationTimes,
    log,
    ending,
  });
  const working = [
    ...models.endpoints,
    ...tools.endpoints,
    agent,
    ...apps.endpoints,
    ...receipts.endpoints,
    ...revenue.endpoints,
    ...reconciliation.endpoints,
    ...catalog.endpoints,
    ...options.submitting,
    ...author.endpoints,
  ];
  const pages = startPages({
    ...{ offer, endpoints: working, models: models.catalog, secret: callers.salt },
    signIn: author.signIn,
  });
  const endpoints = [...working, ...createDiscoveryEndpoints(working, baseUrl, offer, pages)];
  const serving = {
    baseUrl,
    callers,
    log,
    metrics: createHttpMetrics(registry),
    ending,
    problemMembers: (problem: Problem, path: string) => ({
      ...toOpenAiError(problem, path),
      ...toProblemCostFields(problem, path),
    }),
    problemHeaders: formatProblemCostHeaders,
  };
  return {
    models,
    tools,
    apps,
    catalog,
    mcp,
    metering,
    identifyAuthor: author.identifyAuthor,
    endpoints,
    app: createRequestListener({
      ...serving,
      openPaths,
      endpoints: [...endpoints, ...pages.endpoints],
      protocols: [mcp, mcp.ofApps, apps.byPath],
      problemPage: pages.buildProblemPage,
    }),
    appsOnly: createRequestListener({ ...serving, endpoints: models.appEndpoints }),
    start() {
      apps.start();
      author.start();
    },
    closeStreams() {
      void mcp.close();
    },
    async stop() {
      await author.stop();
      await mcp.close();
      await tools.stop();
      await apps.stop();
      await workers.close();
      await models.stop();
    },
  };
}

/** Paths that programs call and read, whatever site their page is of. Our own pages are not among them, nor is what has its own guard. */
const openPaths =
  /^\/(?:(?:api|t|v1|[.]well-known)(?:\/|$)|(?:openapi|agent-capabilities)[.]json$|llms(?:-full)?[.]txt$)/;

/** Reads words for the A2A agent; nobody does where no model router is connected. */
function createOfferInterpreter(
  { router, maxTokens }: ModelSettings,
  { services, catalog }: Models,
  { tools, explainOff }: Offer,
  payerFor: PayerFor,
): ReturnType<typeof createInterpreter> | undefined {
  if (router === undefined) return undefined;
  return createInterpreter({
    tools: tools.filter((tool) => explainOff(tool) === undefined),
    payerFor,
    createSpender: (payer, signal) => new ModelSpender({ services, catalog, maxTokens, payer, tool: 'a2a', signal }),
  });
}
