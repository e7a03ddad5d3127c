// Pages over sample data: endpoints of the catalog that answer what a test gives them, and the real ones of submitting.
import { Registry } from 'prom-client';
import { z } from 'zod';
import { createDiscoveryEndpoints } from '../../../api/protocols/discovery/endpoints.ts';
import { createRequestListener } from '../../../api/http/application.ts';
import { defineEndpoint, type Endpoint } from '../../../api/http/endpoint.ts';
import { eventStreamType, createEventStreamResponse } from '../../../api/http/response.ts';
import { notFound } from '../../../api/http/problems.ts';
import { readCatalog } from '../../../api/models/catalog.ts';
import { authorView, priceListView, reconciliation, reconciliationList } from '../../../api/accounting/index.ts';
import {
  benchmarkDetail,
  benchmarkList,
  guideList,
  guideRecord,
  projectDetail,
  projectList,
  rankList,
} from '../../../api/catalog/index.ts';
import { comparisonResult } from '../../../api/models/comparison.ts';
import { comparisonAnswer } from '../../../api/models/endpoints.ts';
import { startPages } from '../../../api/pages/pages.ts';
import { createSubmitEndpoints, type SubmitServices } from '../../../api/apps/submit/endpoints.ts';
import { createHttpMetrics } from '../../../lib/telemetry.ts';
import { Problem } from '../../../lib/problem.ts';
import { createBlockList } from '../../../lib/subnets.ts';
import { baseUrl, sampleServices, silent } from '../api/sample.ts';
import { echoTool, silentTool } from '../discovery/sample.ts';
import { reconciliations } from './reconciliations.ts';
import { benchDetails, guideRecords, projectDetails, rankAnswer } from './records.ts';

const sampleListedPrices = {
  current: 'beta',
  versions: [
    {
      version: 'beta',
      from: '2026-01-01',
      note: 'During the beta, nobody is charged for compare_models.',
      use_usd: '0.0001',
      call_usd: '0.0001',
      tools: { compare_models: '0', web_search: '0.0002' },
      model_margin: '0',
      free: ['compare_models'],
    },
  ],
};

export interface SampleData {
  /** Answers as JSON by path; a list of records answers below its path by slug. */
  readonly projects?: readonly { readonly slug: string }[];
  readonly bench?: readonly { readonly slug: string }[];
  readonly guides?: readonly { readonly slug: string }[];
  readonly rank?: unknown;
  readonly services?: SubmitServices;
  /** Frames of the answer of a model. */
  readonly ask?: (model: string) => AsyncGenerator<string, void, undefined>;
  /** Takes the body of a comparison. */
  readonly compare?: (body: unknown, headers: Headers) => Promise<unknown>;
}

/** Answers are not parsed by `output`, since hostile ones would not pass: pages have to withstand them by themselves. */
function getter(
  path: string,
  output: z.ZodType,
  answer: (slug: string, query: Readonly<Record<string, string>>, day: string) => unknown,
): Endpoint {
  const endpoint = defineEndpoint({
    method: 'GET',
    head: 'as GET',
    path,
    operation: path,
    tag: 'test',
    summary: '.',
    description: '.',
    read: ({ params, query }) => ({ params, query: query as Record<string, string> }),
    output: z.unknown(),
    outputDescription: '.',
    handler: ({ params, query }) => Promise.resolve(answer(params['slug'] ?? '', query, params['day'] ?? '')),
  });
  return { ...endpoint, output };
}

function records(
  path: string,
  { list, detail }: { readonly list: z.ZodType; readonly detail: z.ZodType },
  all: readonly { readonly slug: string }[],
  index: (query: Readonly<Record<string, string>>) => unknown,
): Endpoint[] {
  const find = (wanted: string): unknown => {
    const found = all.find((one) => one.slug === wanted);
    if (found === undefined) throw new Problem(notFound, `There is none with the slug ${wanted}.`);
    return found;
  };
  return [getter(path, list, (_none, query) => index(query)), getter(`${path}/{slug}`, detail, find)];
}

/** Pages of the list as the real one gives them: a cursor is where the next page begins. */
function createList(
  all: readonly { readonly slug: string }[],
  { q, cursor, limit }: Readonly<Record<string, string>>,
): unknown {
  const matching = all.filter((one) => JSON.stringify(one).includes(q ?? ''));
  const [start, size] = [Number(cursor ?? '0'), Number(limit ?? '50')];
  const isLast = start + size >= matching.length;
  return {
    projects: matching.slice(start, start + size),
    total: matching.length,
    next: isLast ? null : `${baseUrl}/api/projects?cursor=${start + size}`,
  };
}

/** The whole site as a browser reaches it. */
export function samplePages(data: SampleData = {}): {
  app: ReturnType<typeof createRequestListener>;
  paths: ReadonlySet<string>;
} {
  const { projects = projectDetails, bench = benchDetails, guides = guideRecords } = data;
  const compare = defineEndpoint({
    method: 'POST',
    path: '/api/compare',
    operation: 'compare',
    tag: 'models',
    summary: '.',
    description: '.',
    body: z.strictObject({ prompt: z.string().min(1), models: z.array(z.string()).max(5).optional() }),
    output: comparisonAnswer,
    outputDescription: '.',
    handler: async ({ body }, { headers, id }) => ({
      ...comparisonResult.parse(await data.compare?.(body, headers)),
      request_id: id,
    }),
  });
  const ask = defineEndpoint({
    method: 'POST',
    path: '/api/ask',
    operation: 'ask',
    tag: 'models',
    summary: '.',
    description: '.',
    body: z.strictObject({ prompt: z.string(), model: z.string(), stream: z.literal(true) }),
    output: z.unknown(),
    outputDescription: '.',
    produces: ['application/json', eventStreamType],
    handler: ({ body }) =>
      Promise.resolve(createEventStreamResponse((data.ask ?? noFrames)(body.model), { abort: () => undefined })),
  });
  const entries = (all: readonly object[]): unknown => all.map((one) => ({ ...one, models: 3, tasks: 5 }));
  const working = [
    ...records('/api/projects', { list: projectList, detail: projectDetail }, projects, (query) =>
      createList(projects, query),
    ),
    ...records('/api/bench', { list: benchmarkList, detail: benchmarkDetail }, bench, () => entries(bench)),
    ...records('/api/agent-guides', { list: guideList, detail: guideRecord }, guides, () => guides),
    getter('/api/rank', rankList, () => data.rank ?? rankAnswer),
    getter('/api/prices', priceListView, () => sampleListedPrices),
    getter('/api/authors/{handle}', authorView, () => ({
      author: 'git.test/octo',
      apps: [{ slug: 'chat', share: 0.7 }],
      has_key: false,
    })),
    getter('/api/reconciliation', reconciliationList, () => ({
      days: reconciliations.map((one) => ({ ...one, url: `${baseUrl}/api/reconciliation/${one.day}` })),
      next: null,
    })),
    getter('/api/reconciliation/{day}', reconciliation, (_none, _query, day) =>
      reconciliations.find((one) => one.day === day),
    ),
    getter('/t', z.unknown(), () => ({})),
    getter('/api/projects/{slug}/call', z.unknown(), () => ({})),
    compare,
    ask,
    ...createSubmitEndpoints(data.services ?? sampleServices()),
  ];
  const offer = { baseUrl, tools: [echoTool, silentTool], explainOff: silentOff, protocols: [{ path: '/mcp' }] };
  const pages = startPages({ offer, endpoints: working, models: readCatalog(), secret: 'salt', signIn: undefined });
  const endpoints = [...working, ...createDiscoveryEndpoints(working, baseUrl, offer, pages), ...pages.endpoints];
  const app = createRequestListener({
    endpoints,
    baseUrl,
    callers: { salt: 'salt', trustedProxies: createBlockList([]) },
    log: silent,
    metrics: createHttpMetrics(new Registry()),
    ending: new AbortController().signal,
    problemPage: pages.buildProblemPage,
  });
  return { app, paths: new Set([...endpoints.map(({ path }) => path), '/mcp']) };
}

async function* noFrames(): AsyncGenerator<string, void, undefined> {
  await Promise.resolve();
  yield* [];
}

const silentOff = (tool: { readonly needs?: unknown }): string | undefined =>
  tool.needs === undefined ? undefined : 'Set tools.speech.enabled.';

/** What a browser sends. */
export const browserHeaders = {
  accept: 'text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8',
  'accept-language': 'en-US,en;q=0.5',
};

/** The headers and body of a form that a page of this site sends. */
export function createForm(fields: Readonly<Record<string, string>> | URLSearchParams): RequestInit {
  return {
    method: 'POST',
    headers: {
      ...browserHeaders,
      'content-type': 'application/x-www-form-urlencoded',
      'sec-fetch-site': 'same-origin',
    },
    body: new URLSearchParams(fields).toString(),
  };
}
