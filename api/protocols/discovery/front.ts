// The front page: HTML for a person, JSON for a program, and a Link header to every document.
import { z } from 'zod';
import {
  defineEndpoint,
  serviceDescription,
  type Endpoint,
  type RequestFields,
  createJsonResponse,
  serviceName,
  type RawInput,
  readPart,
  type RequestContext,
} from '../../http/index.ts';
import { linkHeader } from './links.ts';
import { isOffered, type Site } from '../../apps/index.ts';

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

/**
 * Answers a person at `/`. It is made by the room of pages, which comes after this one.
 * @param headers to answer with
 */
export type FrontPage = (
  query: RequestFields,
  context: RequestContext,
  headers: Readonly<Record<string, string>>,
) => Promise<Response>;

const ofThePage = z.strictObject({
  lang: z.string().optional().describe('Language of the page: en or zh; default: by Accept-Language.'),
  q: z.string().optional().describe('On the page, only apps that match this search.'),
  category: z.string().optional().describe('On the page, only apps of this category.'),
  cursor: z.string().optional().describe('On the page, where the list of apps goes on.'),
});

/** @param page without it, a person gets what programs get */
export function frontEndpoint(site: Site, page?: FrontPage): Endpoint {
  return defineEndpoint({
    method: 'GET',
    head: 'as GET',
    path: '/',
    operation: 'getFront',
    tag: 'discovery',
    summary: 'The front page',
    description:
      'HTML for people, JSON for programs. The Link header points to the documents that describe this service. Query parameters apply to the page alone.',
    query: ofThePage,
    // Links to a page are shared with fields of all kinds: a page lets them pass, a program learns of its mistake.
    read: ({ query }: RawInput) => query,
    output: z.record(z.string(), z.string()),
    responseHeaders: {
      Link: 'The documents that describe this service.',
      Vary: 'Accept decides between page and JSON.',
    },
    outputDescription: 'Name, description and URLs of this service.',
    produces: page === undefined ? ['application/json'] : ['application/json', html],
    async handler(query, context) {
      const headers = { link: linkHeader(site) };
      if (page !== undefined && context.mediaType === html) return page(query, context, headers);
      readPart('query', ofThePage, query);
      return createJsonResponse(about(site), { headers: { ...headers, vary: 'accept', 'cache-control': 'no-store' } });
    },
  });
}

function about(site: Site): Record<string, string> {
  const known = Object.entries(paths).filter(([, path]) => isOffered(site, path));
  return {
    name: serviceName,
    description: serviceDescription,
    ...Object.fromEntries(known.map(([key, path]) => [key, `${site.baseUrl}${path}`])),
  };
}
