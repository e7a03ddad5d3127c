// Serves the front page and the documents that describe this service. All documents are generated.
import { z } from 'zod';
import { Problem, buildProblemUrl, type ProblemType } from '../../../lib/problem.ts';
import {
  createBufferedResponse,
  defineEndpoint,
  type Endpoint,
  ignoredFields,
  createJsonResponse,
  notFound,
  serviceDescription,
  type RequestFields,
  serviceName,
  type RawInput,
  readPart,
  type RequestContext,
  collectProblemTypes,
} from '../../http/index.ts';
import { a2aPath, buildCardJson } from '../a2a/index.ts';
import { capabilities, describeCapabilities } from './capabilities.ts';
import { buildLlmsFullText, buildLlmsText } from './llms-txt.ts';
import { buildOpenApi, addAppPaths } from './openapi.ts';
import { isOffered, type Offer, signInProblems, type Site } from '../../apps/index.ts';
import { activatorProblems } from '../../../crds/reports.ts';
import { internalProblems } from '../../accounting/index.ts';

/** What the documents describe in addition to the endpoints. Anything omitted does not exist here. */
export type OfferOptions = Partial<Omit<Offer, 'baseUrl'>>;

/** Pages that other rooms provide for this one. */
export interface DiscoveryPages {
  readonly front?: FrontPage;
}

/** Creates the endpoints that describe `others` and themselves. */
export function createDiscoveryEndpoints(
  others: readonly Endpoint[],
  baseUrl: string,
  offer: OfferOptions = {},
  { front }: DiscoveryPages = {},
): Endpoint[] {
  const endpoints = [...others];
  const site: Site = {
    baseUrl,
    endpoints,
    tools: [],
    explainOff: () => undefined,
    listApps: () => [],
    findOperations: () => undefined,
    protocols: [],
    guides: [],
    ...offer,
  };
  const card = isOffered(site, a2aPath) ? [createCardEndpoint(site)] : [];
  const own = [
    createFrontEndpoint(site, front),
    createOpenApiEndpoint(site),
    ...card,
    createTextEndpoint({
      path: '/llms.txt',
      operation: 'getLlmsText',
      summary: 'Overview for language models',
      description: 'Markdown in the llms.txt format: tools with an example call each, live apps, guides and endpoints.',
      write: () => buildLlmsText(site),
    }),
    createTextEndpoint({
      path: '/llms-full.txt',
      operation: 'getLlmsFullText',
      summary: 'Everything for language models in one file',
      description:
        'Markdown: each tool with all fields, examples and prices; quota, errors and problem types; models; and every endpoint.',
      write: () => buildLlmsFullText(site),
    }),
    createCapabilitiesEndpoint(site),
    createProblemEndpoint(site),
  ];
  endpoints.push(...own);
  return own;
}

function createOpenApiEndpoint(site: Site): Endpoint {
  let document: Record<string, unknown> | undefined;
  return defineEndpoint({
    method: 'GET',
    head: 'as GET',
    path: '/openapi.json',
    operation: 'getOpenApi',
    tag: 'discovery',
    summary: 'The OpenAPI document',
    description: 'OpenAPI 3.1, generated from the definitions that also validate requests.',
    query: ignoredFields,
    output: z.record(z.string(), z.unknown()),
    outputDescription: 'The document.',
    responseHeaders: { Link: 'The documents that describe this service.' },
    handler: () =>
      Promise.resolve(
        createJsonResponse(addAppPaths((document ??= buildOpenApi(site.endpoints, site.baseUrl)), site), {
          headers: { link: formatLinkHeader(site), 'cache-control': 'no-store' },
        }),
      ),
  });
}

function createCardEndpoint(site: Site): Endpoint {
  return defineEndpoint({
    method: 'GET',
    head: 'as GET',
    path: '/.well-known/agent-card.json',
    operation: 'getAgentCard',
    tag: 'discovery',
    summary: 'The agent card (A2A 1.0 and 0.3)',
    description: 'Describes the endpoint for the Agent2Agent protocol, with a skill for each tool and each live app.',
    query: ignoredFields,
    output: z.looseObject({
      name: z.string(),
      description: z.string(),
      version: z.string(),
      supportedInterfaces: z.array(
        z.looseObject({ url: z.string(), protocolBinding: z.string(), protocolVersion: z.string() }),
      ),
      capabilities: z.looseObject({}),
      defaultInputModes: z.array(z.string()),
      defaultOutputModes: z.array(z.string()),
      skills: z.array(
        z.looseObject({ id: z.string(), name: z.string(), description: z.string(), tags: z.array(z.string()) }),
      ),
    }),
    outputDescription: 'The card.',
    responseHeaders: { Link: 'The documents that describe this service.' },
    handler: () =>
      Promise.resolve(
        createJsonResponse(buildCardJson(site), {
          headers: { link: formatLinkHeader(site), 'cache-control': 'no-store' },
        }),
      ),
  });
}

interface TextDocument {
  readonly path: string;
  readonly operation: string;
  readonly summary: string;
  readonly description: string;
  readonly write: () => string;
}

function createTextEndpoint({ write, ...document }: TextDocument): Endpoint {
  return defineEndpoint({
    method: 'GET',
    head: 'as GET',
    ...document,
    tag: 'discovery',
    query: ignoredFields,
    output: z.string(),
    outputDescription: 'The text.',
    responseHeaders: { Vary: 'Accept decides the media type.' },
    produces: ['text/plain', 'text/markdown'],
    handler: (_input, { mediaType }) =>
      Promise.resolve(
        createBufferedResponse(write(), {
          headers: { 'content-type': `${mediaType}; charset=utf-8`, 'cache-control': 'no-store', vary: 'accept' },
        }),
      ),
  });
}

function createCapabilitiesEndpoint(site: Site): Endpoint {
  return defineEndpoint({
    method: 'GET',
    head: 'as GET',
    path: '/agent-capabilities.json',
    operation: 'getCapabilities',
    tag: 'discovery',
    summary: 'All capabilities for agents',
    description: 'Endpoints, tools with JSON Schemas and prices, and live apps, in one document.',
    query: ignoredFields,
    output: capabilities,
    outputDescription: 'The capabilities.',
    handler: () => Promise.resolve(describeCapabilities(site)),
  });
}

function createProblemEndpoint({ baseUrl, endpoints }: Site): Endpoint {
  const listTypes = (): ReturnType<typeof collectDocumentedProblems> => collectDocumentedProblems(endpoints);
  return defineEndpoint({
    method: 'GET',
    head: 'as GET',
    path: '/problems/{slug}',
    operation: 'getProblemType',
    tag: 'discovery',
    summary: 'Explain a problem type',
    description: 'The `type` of every problem is a URL of this endpoint.',
    params: z.strictObject({ slug: z.string().max(60).describe('Last segment of the type of a problem.') }),
    output: z.object({ type: z.string(), status: z.int(), title: z.string(), description: z.string() }),
    outputDescription: 'What the problem means and how to resolve it.',
    problems: [notFound],
    handler({ params }) {
      const type = listTypes().get(params.slug);
      if (type === undefined)
        throw new Problem(
          notFound,
          `There is no problem type with this name. The types are: ${[...listTypes().keys()].join(', ')}.`,
        );
      const { status, title, description } = type;
      return Promise.resolve({ type: buildProblemUrl(type, baseUrl), status, title, description });
    },
  });
}

const html = 'text/html';

const paths: Readonly<Record<string, string>> = {
  ask: '/api/ask',
  compare: '/api/compare',
  models: '/api/models',
  submit: '/api/submit',
  submit_status: '/api/submit-status/{owner}/{name}',
  call_app: '/api/projects/{slug}/call',
  agent_guides: '/api/agent-guides',
  tools: '/t',
  mcp: '/mcp',
  a2a: '/a2a',
  openapi: '/openapi.json',
  agent_card: '/.well-known/agent-card.json',
  llms: '/llms.txt',
  llms_full: '/llms-full.txt',
  capabilities: '/agent-capabilities.json',
};

/** Renders `/` for a browser. The pages room, which is created later, provides it. @param headers to answer with */
export type FrontPage = (
  query: RequestFields,
  context: RequestContext,
  headers: Readonly<Record<string, string>>,
) => Promise<Response>;

const ofThePage = z.strictObject({
  lang: z.string().optional().describe('Language of the page: en or zh; default: by Accept-Language.'),
  q: z.string().optional().describe('On the HTML page: only apps that match this search.'),
  category: z.string().optional().describe('On the HTML page: only apps in this category.'),
  cursor: z.string().optional().describe('On the HTML page: cursor of the next page of apps.'),
});

/**
 * Defines the front page: HTML for browsers, JSON for programs, and a Link header with every document. @param page if
 * absent, browsers get JSON too
 */
function createFrontEndpoint(site: Site, page?: FrontPage): Endpoint {
  return defineEndpoint({
    method: 'GET',
    head: 'as GET',
    path: '/',
    operation: 'getFront',
    tag: 'discovery',
    summary: 'The front page',
    description:
      'HTML for people, JSON for programs. The Link header points to the documents that describe this service. Query parameters apply only to the HTML page.',
    query: ofThePage,
    // Shared links carry all kinds of query parameters: the HTML page ignores unknown ones, but a program gets an
    // error.
    read: ({ query }: RawInput) => query,
    output: z.record(z.string(), z.string()),
    responseHeaders: {
      Link: 'The documents that describe this service.',
      Vary: 'Accept decides between page and JSON.',
    },
    outputDescription: 'Name, description and URLs of this service.',
    produces: page === undefined ? ['application/json'] : ['application/json', html],
    async handler(query, context) {
      const headers = { link: formatLinkHeader(site) };
      if (page !== undefined && context.mediaType === html) return page(query, context, headers);
      readPart('query', ofThePage, query);
      return createJsonResponse(describeSite(site), {
        headers: { ...headers, vary: 'accept', 'cache-control': 'no-store' },
      });
    },
  });
}

function describeSite(site: Site): Record<string, string> {
  const known = Object.entries(paths).filter(([, path]) => isOffered(site, path));
  return {
    name: serviceName,
    description: serviceDescription,
    ...Object.fromEntries(known.map(([key, path]) => [key, `${site.baseUrl}${path}`])),
  };
}

interface Link {
  readonly path: string;
  readonly rel: string;
  readonly type: string;
  readonly title: string;
}

const links: readonly Link[] = [
  { path: '/openapi.json', rel: 'service-desc', type: 'application/json', title: 'OpenAPI document' },
  { path: '/llms.txt', rel: 'service-doc', type: 'text/plain', title: 'Overview for language models' },
  { path: '/llms-full.txt', rel: 'service-doc', type: 'text/plain', title: 'Everything for language models' },
  { path: '/.well-known/agent-card.json', rel: 'service-meta', type: 'application/json', title: 'A2A agent card' },
  {
    path: '/agent-capabilities.json',
    rel: 'service-meta',
    type: 'application/json',
    title: 'Endpoints, tools and apps',
  },
  { path: '/mcp', rel: 'service', type: 'application/json', title: 'Model Context Protocol' },
];

/** Formats the Link header (RFC 8288) that points programs to the documents of this installation. */
function formatLinkHeader(site: Site): string {
  return links
    .filter(({ path }) => isOffered(site, path))
    .map(({ path, rel, type, title }) => `<${path}>; rel="${rel}"; type="${type}"; title="${title}"`)
    .join(', ');
}

/**
 * Collects every documented problem type, by slug: those of the endpoints, and those of programs and ports without an
 * endpoint here.
 */
export function collectDocumentedProblems(endpoints: readonly Endpoint[]): ReadonlyMap<string, ProblemType> {
  const others = [...Object.values(activatorProblems), ...internalProblems, ...signInProblems];
  return new Map([...others.map((type) => [type.slug, type] as const), ...collectProblemTypes(endpoints)]);
}
