// The application with tools of the test's choice, over a ledger and a router of its choice.
import { Registry } from 'prom-client';
import type { SourceGuide } from '../../../api/catalog/index.ts';
import { createApi, type Api, type ApiOptions } from '../../../api/create-api.ts';
import { readAppSettings } from '../../../api/apps/start.ts';
import { createBlockList } from '../../../lib/subnets.ts';
import { readModelSettings } from '../../../api/models/config.ts';
import { readReceiptSettings } from '../../../api/accounting/receipts/index.ts';
import { readToolSettings } from '../../../api/tools/config.ts';
import { type Fetcher, GuardedFetcher } from '../../../api/tools/fetch/fetcher.ts';
import type { ToolDependencies, Tool } from '../../../api/tools/tool.ts';
import type { ToolsOptions } from '../../../api/tools/start.ts';
import { baseUrl as usualBaseUrl, silent, site } from '../api/sample.ts';
import { sampleTools } from './sample-tools.ts';
import { send } from '../api/send.ts';

export interface ToolSample extends Pick<Api, 'app' | 'tools' | 'models' | 'mcp'> {
  /** Sends a request from this machine, so that X-Forwarded-For is believed. */
  readonly request: (path: string, init?: RequestInit) => Promise<Response>;
  readonly registry: Registry;
  readonly stop: () => Promise<void>;
}

export interface ToolSampleOptions {
  readonly environment?: Readonly<Record<string, string>>;
  readonly tools?: readonly Tool[];
  /** Makes the tools, in place of `tools`. */
  readonly make?: (services: ToolDependencies) => readonly Tool[];
  readonly fetcher?: Fetcher;
  /** Times of jobs. */
  readonly jobTimes?: ToolsOptions['jobTimes'];
  /** Times of push notifications. */
  readonly pushTimes?: ApiOptions['pushTimes'];
  readonly baseUrl?: string;
  /** Aborted when streams are to end. */
  readonly ending?: AbortSignal;
  /** Guides of the tools; none by default, since those there are name the built-in tools. */
  readonly guides?: readonly SourceGuide[];
}

/** Without DATABASE_URL in the environment, no ledger is open. */
export async function sampleToolApp({
  environment = {},
  tools: made = sampleTools,
  make = () => made,
  fetcher = new GuardedFetcher(),
  jobTimes = {},
  pushTimes,
  ending,
  baseUrl = usualBaseUrl,
  guides = [],
}: ToolSampleOptions = {}): Promise<ToolSample> {
  const registry = new Registry();
  const api = createApi({
    baseUrl,
    callers: { salt: 'salt', trustedProxies: createBlockList(['127.0.0.0/8']) },
    models: readModelSettings(environment),
    tools: readToolSettings(environment),
    appCalls: readAppSettings(environment),
    receipts: readReceiptSettings(environment),
    apps: {
      apps: { get: () => undefined, findNameHolder: () => undefined, listAll: () => [], listPreviews: () => [] },
      site,
    },
    findModelApp: () => undefined,
    submitting: [],
    fetcher,
    registry,
    log: silent,
    ending: ending ?? new AbortController().signal,
    makeTools: make,
    guides,
    jobTimes,
    pushTimes,
  });
  await api.models.ready;
  return {
    ...api,
    registry,
    request: async (path, init = {}) => send(api.app, path, init),
    stop: () => api.stop(),
  };
}
