// The endpoints that describe this service to people and programs. Every document is derived; none is written by hand.
import { z } from 'zod';
import { Problem, problemUrl } from '../../../lib/problem.ts';
import {
  createBufferedResponse,
  defineEndpoint,
  type Endpoint,
  ignoredFields,
  createJsonResponse,
  notFound,
} from '../../http/index.ts';
import { a2aPath, cardJson } from '../a2a/index.ts';
import { capabilities, describeCapabilities } from './capabilities.ts';
import { type FrontPage, frontEndpoint } from './front.ts';
import { linkHeader } from './links.ts';
import { llmsFullText } from './llms-full-txt.ts';
import { llmsText } from './llms-txt.ts';
import { buildOpenApi, addAppPaths } from './openapi.ts';
import { collectDocumentedProblems } from './problem-types.ts';
import { isOffered, type Offer, type Site } from '../../apps/index.ts';

/** What is described beside the endpoints; what is left out does not exist. */
export type OfferOptions = Partial<Omit<Offer, 'baseUrl'>>;

/** What other rooms show of this one. */
export interface DiscoveryPages {
  readonly front?: FrontPage;
}

/** Endpoints that describe `others` and themselves. */
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
    off: () => undefined,
    apps: () => [],
    operations: () => undefined,
    protocols: [],
    guides: [],
    ...offer,
  };
  const card = isOffered(site, a2aPath) ? [cardEndpoint(site)] : [];
  const own = [
    frontEndpoint(site, front),
    openApiEndpoint(site),
    ...card,
    textEndpoint({
      path: '/llms.txt',
      operation: 'getLlmsText',
      summary: 'Overview for language models',
      description: 'Markdown in the llms.txt format: tools with an example call each, live apps, guides and endpoints.',
      write: () => llmsText(site),
    }),
    textEndpoint({
      path: '/llms-full.txt',
      operation: 'getLlmsFullText',
      summary: 'Everything for language models in one file',
      description:
        'Markdown: each tool with all fields, examples and prices; quota, errors and problem types; models; and every endpoint.',
      write: () => llmsFullText(site),
    }),
    capabilitiesEndpoint(site),
    problemEndpoint(site),
  ];
  endpoints.push(...own);
  return own;
}

function openApiEndpoint(site: Site): Endpoint {
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
          headers: { link: linkHeader(site), 'cache-control': 'no-store' },
        }),
      ),
  });
}

function cardEndpoint(site: Site): Endpoint {
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
        createJsonResponse(cardJson(site), { headers: { link: linkHeader(site), 'cache-control': 'no-store' } }),
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

function textEndpoint({ write, ...document }: TextDocument): Endpoint {
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

function capabilitiesEndpoint(site: Site): Endpoint {
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

function problemEndpoint({ baseUrl, endpoints }: Site): Endpoint {
  const types = (): ReturnType<typeof collectDocumentedProblems> => collectDocumentedProblems(endpoints);
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
      const type = types().get(params.slug);
      if (type === undefined)
        throw new Problem(
          notFound,
          `There is no problem type with this name. The types are: ${[...types().keys()].join(', ')}.`,
        );
      const { status, title, description } = type;
      return Promise.resolve({ type: problemUrl(type, baseUrl), status, title, description });
    },
  });
}
