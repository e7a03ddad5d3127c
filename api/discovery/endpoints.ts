// The endpoints by which a person or a program finds out what there is: the front page, the OpenAPI document, the kinds of problems.
import { z } from 'zod';
import { problemUrl } from '../../lib/problem.ts';
import { defineEndpoint, type Endpoint } from '../endpoint.ts';
import { invalid } from '../validation.ts';
import { problemTypes } from '../problems.ts';
import { openApi } from './openapi.ts';

const html = 'text/html';

/** Endpoints that describe `others` and themselves. */
export function discoveryEndpoints(others: readonly Endpoint[], baseUrl: string): Endpoint[] {
  const described = (): Record<string, unknown> => (document ??= openApi([...others, ...own], baseUrl));
  let document: Record<string, unknown> | undefined;
  const own = [front(baseUrl), openApiEndpoint(described), problemEndpoint(baseUrl)];
  return own;
}

function front(baseUrl: string): Endpoint {
  const about = {
    name: 'Moorage',
    description: 'Hosts open-source AI applications from their git repositories, each on its own subdomain over HTTPS.',
    ask: `${baseUrl}/api/ask`,
    compare: `${baseUrl}/api/compare`,
    models: `${baseUrl}/api/models`,
    submit: `${baseUrl}/api/submit`,
    submit_status: `${baseUrl}/api/submit-status/{owner}/{name}`,
    openapi: `${baseUrl}/openapi.json`,
  };
  return defineEndpoint({
    method: 'GET',
    path: '/',
    operation: 'getFront',
    tag: 'discovery',
    summary: 'What this is',
    description: 'As a page for a person, as JSON for a program.',
    output: z.record(z.string(), z.string()),
    outputDescription: 'What this is and where to go on.',
    produces: ['application/json', html],
    handler(_input, { mediaType }) {
      return Promise.resolve(mediaType === html ? new Response(page(baseUrl), { headers: pageHeaders }) : about);
    },
  });
}

function openApiEndpoint(described: () => Record<string, unknown>): Endpoint {
  return defineEndpoint({
    method: 'GET',
    path: '/openapi.json',
    operation: 'getOpenApi',
    tag: 'discovery',
    summary: 'The OpenAPI document',
    description: 'OpenAPI 3.1, derived from the definitions that also validate the requests.',
    output: z.record(z.string(), z.unknown()),
    outputDescription: 'The document.',
    handler: () => Promise.resolve(described()),
  });
}

function problemEndpoint(baseUrl: string): Endpoint {
  return defineEndpoint({
    method: 'GET',
    path: '/problems/{slug}',
    operation: 'getProblemType',
    tag: 'discovery',
    summary: 'What a kind of problem means',
    description: 'The `type` of every problem leads here.',
    params: z.strictObject({ slug: z.string().max(60).describe('Last part of the type of a problem') }),
    output: z.object({ type: z.string(), status: z.int(), title: z.string(), description: z.string() }),
    outputDescription: 'What it means and how to get past it.',
    handler({ params }) {
      const type = problemTypes.find(({ slug }) => slug === params.slug);
      if (type === undefined) throw invalid([{ in: 'path', field: 'slug', message: 'there is no such kind of problem', mend: `the kinds are: ${problemTypes.map(({ slug }) => slug).join(', ')}` }]);
      const { status, title, description } = type;
      return Promise.resolve({ type: problemUrl(type, baseUrl), status, title, description });
    },
  });
}

const pageHeaders = {
  'content-type': `${html}; charset=utf-8`,
  'content-security-policy': "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'",
  'referrer-policy': 'no-referrer',
  vary: 'accept',
};

/** The front page. `baseUrl` is configuration, checked to be a plain origin, so it needs no escaping. */
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
<h2>See how it stands</h2>
<pre>curl ${baseUrl}/api/submit-status/owner/name
curl -N -H 'Accept: text/plain' ${baseUrl}/api/submit-status/owner/name/log</pre>
<p>Everything that answers here: <a href="/openapi.json">openapi.json</a>.</p>
</html>
`;
}
