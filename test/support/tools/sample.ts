// The application with tools of the test's choice, over books and a router of its choice.
import { Registry } from 'prom-client';
import { createApp } from '../../../api/http/application.ts';
import { blockList } from '../../../api/config.ts';
import { discoveryEndpoints } from '../../../api/discovery/endpoints.ts';
import { readModelSettings } from '../../../api/models/config.ts';
import { startModels, type Models } from '../../../api/models/start.ts';
import { readToolSettings } from '../../../api/tools/config.ts';
import type { Fetcher } from '../../../api/tools/fetch/fetcher.ts';
import { GuardedFetcher } from '../../../api/tools/fetch/guarded-fetcher.ts';
import type { ToolServices } from '../../../api/tools/engine/tool-dependencies.ts';
import { startTools, type Tools, type ToolsOptions } from '../../../api/tools/start.ts';
import { createWorkers } from '../../../api/tools/engine/workers/pool.ts';
import type { Tool } from '../../../api/tools/tool.ts';
import { httpMetrics } from '../../../lib/metrics.ts';
import { baseUrl as usualBaseUrl, silent } from '../api/sample.ts';
import { sampleTools } from './sample-tools.ts';
import { send } from '../api/send.ts';

export interface ToolSample {
  /** Sends a request from this machine, so that X-Forwarded-For is believed. */
  readonly request: (path: string, init?: RequestInit) => Promise<Response>;
  readonly app: ReturnType<typeof createApp>;
  readonly tools: Tools;
  readonly models: Models;
  readonly registry: Registry;
  readonly stop: () => Promise<void>;
}

export interface ToolSampleOptions {
  readonly environment?: Readonly<Record<string, string>>;
  readonly tools?: readonly Tool[];
  /** Makes the tools, in place of `tools`. */
  readonly make?: (services: ToolServices) => readonly Tool[];
  readonly fetcher?: Fetcher;
  /** Times of jobs. */
  readonly jobTimes?: ToolsOptions['jobTimes'];
  readonly baseUrl?: string;
}

/** Without DATABASE_URL in the environment there are no books. */
export async function sampleToolApp({
  environment = {},
  tools: made = sampleTools,
  make = () => made,
  fetcher = new GuardedFetcher(),
  jobTimes = {},
  baseUrl = usualBaseUrl,
}: ToolSampleOptions = {}): Promise<ToolSample> {
  const registry = new Registry();
  const modelSettings = readModelSettings(environment);
  const models = startModels({
    settings: modelSettings,
    callerSalt: 'salt',
    baseUrl,
    registry,
    log: silent,
    findApp: () => undefined,
  });
  await models.ready;
  const workers = createWorkers();
  const tools = startTools({
    settings: readToolSettings(environment),
    modelSettings,
    models,
    baseUrl,
    registry,
    log: silent,
    workers,
    fetcher,
    apps: () => [],
    make,
    jobTimes,
  });
  const endpoints = [...models.endpoints, ...tools.endpoints];
  const app = createApp({
    endpoints: [...endpoints, ...discoveryEndpoints(endpoints, baseUrl, tools.offered)],
    protocols: [tools.mcp],
    baseUrl,
    callers: { salt: 'salt', trustedProxies: blockList(['127.0.0.0/8']) },
    log: silent,
    metrics: httpMetrics(registry),
    ending: new AbortController().signal,
  });
  return {
    app,
    tools,
    models,
    registry,
    request: async (path, init = {}) => send(app, path, init),
    async stop() {
      await tools.mcp.close();
      await tools.stop();
      await workers.close();
      await models.stop();
    },
  };
}
