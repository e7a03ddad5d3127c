// The Link header (RFC 8288), which leads a program from any page to the documents.
import { isOffered, type Site } from '../../apps/index.ts';

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

/** Links to those of the documents that exist here. */
export function linkHeader(site: Site): string {
  return links
    .filter(({ path }) => isOffered(site, path))
    .map(({ path, rel, type, title }) => `<${path}>; rel="${rel}"; type="${type}"; title="${title}"`)
    .join(', ');
}
