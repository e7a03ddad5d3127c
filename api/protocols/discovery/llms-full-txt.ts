// /llms-full.txt: everything that an agent needs in one file, so that it asks for no other document: tools with all
// fields, how quota and errors work, models, endpoints. Derived from the same definitions as all else.
import { activatorProblems } from '../../../crds/reports.ts';
import { isOffered, formatCallUrl, type Site } from '../../apps/index.ts';
import {
  serviceAuthentication,
  serviceDescription,
  type Endpoint,
  serviceName,
  collectProblemTypes,
} from '../../http/index.ts';
import { describe, exampleUrl, type Tool } from '../../tools/index.ts';
import { fieldLines, oneLine } from './fields.ts';

export function llmsFullText(site: Site): string {
  return `${[
    `# ${serviceName}\n\n> ${serviceDescription}`,
    `Base URL: ${site.baseUrl}`,
    section('Authentication', serviceAuthentication),
    section('Quota and cost', quotaText(site)),
    section('Errors', errorText),
    section('Tools', howToCall(site), ...site.tools.map((tool) => toolText(tool, site))),
    section('Models', modelText(site)),
    section('Protocols', protocolText(site)),
    section('Hosted apps', appText(site)),
    section(
      'Guides',
      site.guides.map(({ question, machine_readable }) => `- [${question}](${machine_readable})`).join('\n'),
    ),
    section(
      'Endpoints',
      ...site.endpoints.filter(({ path }) => !path.startsWith('/t/')).map((one) => endpointText(one, site)),
    ),
    section('Problem types', problemText(site)),
  ]
    .filter((text) => text !== '')
    .join('\n\n')}\n`;
}

function section(title: string, ...parts: readonly string[]): string {
  const full = parts.filter((part) => part !== '');
  return full.length === 0 ? '' : [`## ${title}`, ...full].join('\n\n');
}

function quotaText({ freeQuotaUsd }: Site): string {
  const size = freeQuotaUsd === undefined ? 'a free quota' : `a free quota of $${freeQuotaUsd}`;
  return [
    `Each caller without a key has ${size} a day (UTC). A call is made only if what is left covers the most that it can cost; afterwards, only what it really cost is taken.`,
    '- `RateLimit` and `RateLimit-Policy` in the response say what is left, in millionths of a dollar.',
    '- When less than a fifth is left, the response has `quota` and `hint`, and the header `X-Quota-Hint`.',
    '- 402 `quota-exhausted` is refused before anything is done. Its `actions` say how to continue: with your own key (`Authorization: Bearer sk-…`), with a cheaper call, or after the reset.',
    '- `cost_usd` is what a call cost, `charged_usd` what you are charged for it. `cost_source` is `pending` until the router has reported the cost; then `cost_usd` is absent or incomplete, never invented.',
    '- A call that fails is not charged, apart from model calls that were already made.',
  ].join('\n');
}

const errorText =
  'Errors are RFC 9457 problems (application/problem+json): `type` (a URL that explains it), `title`, `status`, `detail` (what went wrong and what to do), `instance`, `request_id`; `errors` lists each invalid field with `in`, `field`, `message` and `fix`; `actions` lists ways to continue. Where `Retry-After` is sent, wait as many seconds. The types are at the end of this file.';

function howToCall({ baseUrl }: Site): string {
  return [
    `GET ${baseUrl}/t/<tool> with query parameters, or POST with the same fields as JSON. No client, signup or key is needed.`,
    'Every tool also takes `s` (a session name of your choice) and, if it creates a file, `raw=1` (the bytes of the file instead of JSON). Without raw, download the file from `artifact.url`, free of charge, for one hour.',
    'Tools that run as jobs return `job` with `poll_url`; send `wait=60` to wait for the result, or `job=<id>` to ask again.',
    'Send an Idempotency-Key header to repeat a call safely: within 24 hours it is run and charged once.',
  ].join('\n');
}

function toolText(tool: Tool, site: Site): string {
  const off = site.off(tool);
  return [
    `### ${tool.name}`,
    ...(off === undefined ? [] : [`**Not available here.** ${oneLine(off)}`]),
    oneLine(describe(tool)),
    lines('Fields:', fieldLines(tool.input, 'input')),
    `Example: GET ${exampleUrl(tool, site.baseUrl)}`,
    `The same: POST ${site.baseUrl}/t/${tool.name} ${JSON.stringify(tool.example)}`,
    lines('Fields of `result`:', fieldLines(tool.output, 'output')),
    ...(tool.artifacts === undefined ? [] : [`Creates a file: ${tool.artifacts.join(', ')}.`]),
  ]
    .filter((text) => text !== '')
    .join('\n\n');
}

function lines(title: string, given: readonly string[]): string {
  return given.length === 0 ? '' : `${title}\n${given.join('\n')}`;
}

function modelText({ models = [] }: Site): string {
  return models
    .map(
      ({ id, label, tier, in_per_m: input, out_per_m: output }) =>
        `- \`${id}\` (${label}): ${tier === 'premium' ? 'requires your own key' : 'free quota or your own key'}; $${input} per million input tokens, $${output} per million output tokens`,
    )
    .join('\n');
}

function protocolText(site: Site): string {
  const protocols = [
    [
      '/mcp',
      'the same tools over the Model Context Protocol (streamable HTTP); add ?off=hide to leave out tools that are not available here. Operations of hosted apps are found by search_tools and called by call_tool, or listed for one app at /mcp/{slug}',
    ],
    [
      '/a2a',
      'the same tools over Agent2Agent (JSON-RPC): send a data part {"tool": name, "arguments": {…}}; long tools are tasks, with streams, SubscribeToTask and push notifications',
    ],
  ] as const;
  return protocols
    .filter(([path]) => isOffered(site, path))
    .map(([path, about]) => `- ${site.baseUrl}${path}: ${about}`)
    .join('\n');
}

function appText(site: Site): string {
  return site
    .apps()
    .map(({ slug, title, url }) => {
      const at = formatCallUrl(site, slug);
      return `- ${plain(title)} (\`${slug}\`): ${url}${at === undefined ? '' : `; metered calls: POST ${at}`}`;
    })
    .join('\n');
}

function endpointText(
  { method, path, summary, description: about, params, query, body }: Endpoint,
  { baseUrl }: Site,
): string {
  return [
    `### ${method} ${baseUrl}${path}`,
    `${oneLine(summary)}. ${oneLine(about)}`,
    ...(params === undefined ? [] : [lines('In the path:', fieldLines(params, 'input'))]),
    ...(query === undefined ? [] : [lines('Query:', fieldLines(query, 'input'))]),
    ...(body === undefined ? [] : [lines('JSON body:', fieldLines(body, 'input'))]),
  ]
    .filter((text) => text !== '')
    .join('\n\n');
}

function problemText({ endpoints }: Site): string {
  const types = new Map([
    ...collectProblemTypes(endpoints),
    ...Object.values(activatorProblems).map((type) => [type.slug, type] as const),
  ]);
  return [...types.values()]
    .map(({ slug, status, title, description: about }) => `- ${status} \`${slug}\` (${title}): ${oneLine(about)}`)
    .join('\n');
}

/** Models read this document: what an author wrote gets no markup and no line of its own. */
function plain(text: string): string {
  return oneLine(text).replaceAll(/[[\]()<>`*_#!|\\]/g, '');
}
