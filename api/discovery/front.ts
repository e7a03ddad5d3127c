// The front page: HTML for a person, JSON for a program, and a Link header to every document.
import { z } from 'zod';
import { bufferedResponse, defineEndpoint, description, type Endpoint, jsonResponse, name } from '../http/index.ts';
import { linkHeader } from './links.ts';
import { answersAt, type Site } from '../apps/index.ts';

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
  capabilities: '/agent-capabilities.json',
};

export function frontEndpoint(site: Site): Endpoint {
  return defineEndpoint({
    method: 'GET',
    head: 'as GET',
    path: '/',
    operation: 'getFront',
    tag: 'discovery',
    summary: 'The front page',
    description:
      'HTML for people, JSON for programs. The Link header points to the documents that describe this service.',
    output: z.record(z.string(), z.string()),
    outputDescription: 'Name, description and URLs of this service.',
    produces: ['application/json', html],
    handler(_input, { mediaType }) {
      const headers = { link: linkHeader(site), vary: 'accept', 'cache-control': 'no-store' };
      return Promise.resolve(
        mediaType === html
          ? bufferedResponse(page(site.baseUrl), { headers: { ...headers, ...pageHeaders } })
          : jsonResponse(about(site), { headers }),
      );
    },
  });
}

function about(site: Site): Record<string, string> {
  const known = Object.entries(paths).filter(([, path]) => answersAt(site, path));
  return { name, description, ...Object.fromEntries(known.map(([key, path]) => [key, `${site.baseUrl}${path}`])) };
}

const pageHeaders = {
  'content-type': `${html}; charset=utf-8`,
  'content-security-policy':
    "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'",
  'referrer-policy': 'no-referrer',
};

/** The page. `baseUrl` is configuration, checked to be a plain origin, so it needs no escaping. */
function page(baseUrl: string): string {
  return `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Moorage</title>
<style>body{font:1rem/1.6 system-ui,sans-serif;max-width:42rem;margin:3rem auto;padding:0 1rem;color-scheme:light dark}pre{overflow:auto;padding:.8rem 1rem;border:1px solid;border-radius:.4rem}</style>
<h1>Moorage</h1>
<p>Hosts open-source AI applications from their git repositories: each is reviewed, built in a sandbox, and served on its own subdomain over HTTPS.</p>
<h2>Submit a repository</h2>
<pre>curl ${baseUrl}/api/submit --json '{"repo": "owner/name"}'</pre>
<h2>Check its status</h2>
<pre>curl ${baseUrl}/api/submit-status/owner/name
curl -N -H 'Accept: text/plain' ${baseUrl}/api/submit-status/owner/name/log</pre>
<p>All endpoints: <a href="/openapi.json">openapi.json</a>. For agents: <a href="/llms.txt">llms.txt</a>, <a href="/agent-capabilities.json">agent-capabilities.json</a>.</p>
</html>
`;
}
