// Renders /llms.txt (llmstxt.org), an overview for language models, and /llms-full.txt. Both are generated from the
// endpoint and tool definitions.
import { z } from 'zod';
import {
  serviceAuthentication,
  serviceDescription,
  type Endpoint,
  serviceName,
  collectProblemTypes,
} from '../../http/index.ts';
import { buildExampleUrl, type HostedAppSummary, type Tool, describeTool } from '../../tools/index.ts';
import { formatMoney, parseMoney, zero } from '../../billing/index.ts';
import { isOffered, formatCallUrl, type Site } from '../../apps/index.ts';
import { activatorProblems } from '../../../crds/reports.ts';

export function buildLlmsText(site: Site): string {
  const { baseUrl, tools } = site;
  const sections = [
    `# ${serviceName}\n\n> ${serviceDescription}`,
    `Authentication: ${serviceAuthentication}\n\nEverything in one file, with all fields, errors and models: ${baseUrl}/llms-full.txt\n\nErrors are RFC 9457 problems: \`detail\` says what went wrong, \`errors\` lists each invalid field with a fix, and \`actions\` lists ways to continue.`,
    formatSection(
      'Tools',
      tools.length === 0 ? undefined : explainCalls(site),
      tools.map((tool) => formatToolLine(tool, site)),
    ),
    formatSection(
      'Hosted apps',
      explainAppCalls(site),
      site.listApps().map((app) => formatAppLine(app, site)),
    ),
    formatSection(
      'Guides',
      'Each answers a question with the tool that applies, steps to execute and measured evidence.',
      site.guides.map(({ question, machine_readable }) => `- [${question}](${machine_readable})`),
    ),
    formatSection(
      'Endpoints',
      isOffered(site, '/v1/chat/completions')
        ? `OpenAI clients work with the base URL ${baseUrl}/v1: with your own API key for the model router as their key, or with the key "anonymous" for models in the free tier on the free quota.`
        : undefined,
      site.endpoints.filter(isOfInterest).map((endpoint) => formatEndpointLine(endpoint, baseUrl)),
    ),
    formatSection(
      'Machine-readable',
      undefined,
      site.endpoints
        .filter(({ path }) => /\.(json|txt)$/.test(path))
        .map((endpoint) => formatEndpointLine(endpoint, baseUrl)),
    ),
  ];
  return `${sections.filter((text) => text !== '').join('\n\n')}\n`;
}

function formatSection(title: string, intro: string | undefined, lines: readonly string[]): string {
  if (lines.length === 0) return '';
  return [`## ${title}`, ...(intro === undefined ? [] : [intro]), lines.join('\n')].join('\n\n');
}

function explainCalls(site: Site): string {
  const mcp = isOffered(site, '/mcp')
    ? ` The same tools are available over MCP at ${site.baseUrl}/mcp, where search_tools and call_tool also reach the operations of hosted apps.`
    : '';
  return `Call a tool with GET ${site.baseUrl}/t/<tool> and query parameters, or with POST and the same fields as JSON. No client, signup or key is needed. Every response includes its cost. Add raw=1 to get the bytes of a created file; otherwise, download it from artifact.url in the response, free of charge, for one hour, or send that URL as artifact to another tool.${mcp}`;
}

function formatToolLine(tool: Tool, site: Site): string {
  const required = listRequiredFields(tool.input);
  const fields = Object.keys(tool.input.shape).map((field) =>
    required.includes(field) ? `${field} (required)` : field,
  );
  const taken = fields.length === 0 ? '' : ` Parameters: ${fields.join(', ')}.`;
  const off = site.explainOff(tool);
  return `- [${tool.name}](${buildExampleUrl(tool, site.baseUrl)}): ${toOneLine(tool.description)}${taken} Price: ${formatPrice(tool)}.${off === undefined ? '' : ` Not available here. ${toOneLine(off)}`}`;
}

function formatPrice({ price, asksModels }: Tool): string {
  const own = parseMoney(price);
  const billed = 'the billed cost of its model calls';
  if (own === zero) return asksModels === true ? billed : 'free';
  return `$${formatMoney(own)}${asksModels === true ? ` plus ${billed}` : ''}`;
}

function explainAppCalls(site: Site): string | undefined {
  const at = formatCallUrl(site, '<slug>');
  return at === undefined
    ? undefined
    : `Each app has its own URL. For metered calls, send POST ${at} with {"method", "path", "query", "headers", "body"} as JSON, or send any request to ${at}/<path>.`;
}

/** Maximum number of operations listed per app; search_tools finds the others. */
const maxNames = 10;

function formatAppLine({ slug, title, url, description: about, category, repo }: HostedAppSummary, site: Site): string {
  const kind = category === undefined ? '' : `${category}; `;
  const names = site.findOperations(slug)?.names ?? [];
  const more = names.length > maxNames ? ` and ${names.length - maxNames} more` : '';
  const tools =
    names.length === 0
      ? ''
      : ` Operations (call_tool on /mcp, or /mcp/${slug}): ${names.slice(0, maxNames).join(', ')}${more}.`;
  // Models read this document, so text from authors must not contain markup or line breaks.
  return `- [${toPlainText(title)}](${url}): ${about === '' ? '' : `${toPlainText(about)} `}(${kind}slug: ${slug}; source: ${repo})${tools}`;
}

function formatEndpointLine({ method, path, summary }: Endpoint, baseUrl: string): string {
  return `- [${method} ${path}](${baseUrl}${path}): ${toOneLine(summary)}`;
}

/** Excludes the tools, which are listed separately. */
function isOfInterest({ path }: Endpoint): boolean {
  return path.startsWith('/api/') || path.startsWith('/v1/') || path === '/mcp' || path === '/a2a';
}

/**
 * Renders /llms-full.txt: everything that an agent needs in one file, so that it requests no other document. It covers
 * tools with all fields, quota, errors, models and endpoints.
 */
export function buildLlmsFullText(site: Site): string {
  return `${[
    `# ${serviceName}\n\n> ${serviceDescription}`,
    `Base URL: ${site.baseUrl}`,
    joinSection('Authentication', serviceAuthentication),
    joinSection('Quota and cost', explainQuota(site)),
    joinSection('Errors', errorText),
    joinSection('Tools', explainToolCalls(site), ...site.tools.map((tool) => formatTool(tool, site))),
    joinSection('Models', listModels(site)),
    joinSection('Protocols', explainProtocols(site)),
    joinSection('Hosted apps', listAppLinks(site)),
    joinSection(
      'Guides',
      site.guides.map(({ question, machine_readable }) => `- [${question}](${machine_readable})`).join('\n'),
    ),
    joinSection(
      'Endpoints',
      ...site.endpoints.filter(({ path }) => !path.startsWith('/t/')).map((one) => formatEndpoint(one, site)),
    ),
    joinSection('Problem types', listProblemTypes(site)),
  ]
    .filter((text) => text !== '')
    .join('\n\n')}\n`;
}

function joinSection(title: string, ...parts: readonly string[]): string {
  const full = parts.filter((part) => part !== '');
  return full.length === 0 ? '' : [`## ${title}`, ...full].join('\n\n');
}

function explainQuota({ freeQuotaUsd }: Site): string {
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

function explainToolCalls({ baseUrl }: Site): string {
  return [
    `GET ${baseUrl}/t/<tool> with query parameters, or POST with the same fields as JSON. No client, signup or key is needed.`,
    'Every tool also takes `s` (a session name of your choice) and, if it creates a file, `raw=1` (the bytes of the file instead of JSON). Without raw, download the file from `artifact.url`, free of charge, for one hour.',
    'Tools that run as jobs return `job` with `poll_url`; send `wait=60` to wait for the result, or `job=<id>` to ask again.',
    'Send an Idempotency-Key header to repeat a call safely: within 24 hours it is run and charged once.',
  ].join('\n');
}

function formatTool(tool: Tool, site: Site): string {
  const off = site.explainOff(tool);
  return [
    `### ${tool.name}`,
    ...(off === undefined ? [] : [`**Not available here.** ${toOneLine(off)}`]),
    toOneLine(describeTool(tool)),
    formatLines('Fields:', describeFields(tool.input, 'input')),
    `Example: GET ${buildExampleUrl(tool, site.baseUrl)}`,
    `The same: POST ${site.baseUrl}/t/${tool.name} ${JSON.stringify(tool.example)}`,
    formatLines('Fields of `result`:', describeFields(tool.output, 'output')),
    ...(tool.artifacts === undefined ? [] : [`Creates a file: ${tool.artifacts.join(', ')}.`]),
  ]
    .filter((text) => text !== '')
    .join('\n\n');
}

function formatLines(title: string, given: readonly string[]): string {
  return given.length === 0 ? '' : `${title}\n${given.join('\n')}`;
}

function listModels({ models = [] }: Site): string {
  return models
    .map(
      ({ id, label, tier, in_per_m: input, out_per_m: output }) =>
        `- \`${id}\` (${label}): ${tier === 'premium' ? 'requires your own key' : 'free quota or your own key'}; $${input} per million input tokens, $${output} per million output tokens`,
    )
    .join('\n');
}

function explainProtocols(site: Site): string {
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

function listAppLinks(site: Site): string {
  return site
    .listApps()
    .map(({ slug, title, url }) => {
      const at = formatCallUrl(site, slug);
      return `- ${toPlainText(title)} (\`${slug}\`): ${url}${at === undefined ? '' : `; metered calls: POST ${at}`}`;
    })
    .join('\n');
}

function formatEndpoint(
  { method, path, summary, description: about, params, query, body }: Endpoint,
  { baseUrl }: Site,
): string {
  return [
    `### ${method} ${baseUrl}${path}`,
    `${toOneLine(summary)}. ${toOneLine(about)}`,
    ...(params === undefined ? [] : [formatLines('In the path:', describeFields(params, 'input'))]),
    ...(query === undefined ? [] : [formatLines('Query:', describeFields(query, 'input'))]),
    ...(body === undefined ? [] : [formatLines('JSON body:', describeFields(body, 'input'))]),
  ]
    .filter((text) => text !== '')
    .join('\n\n');
}

function listProblemTypes({ endpoints }: Site): string {
  const types = new Map([
    ...collectProblemTypes(endpoints),
    ...Object.values(activatorProblems).map((type) => [type.slug, type] as const),
  ]);
  return [...types.values()]
    .map(({ slug, status, title, description: about }) => `- ${status} \`${slug}\` (${title}): ${toOneLine(about)}`)
    .join('\n');
}

/** Removes markup and line breaks from authors' text, because models read this document. */
function toPlainText(text: string): string {
  return toOneLine(text).replaceAll(/[[\]()<>`*_#!|\\]/g, '');
}

/** The parts of a JSON Schema that the Markdown describes: name, type, whether it is required, and description. */
interface FieldSchema {
  readonly type?: string | readonly string[];
  readonly enum?: readonly unknown[];
  readonly const?: unknown;
  readonly anyOf?: readonly FieldSchema[];
  readonly items?: FieldSchema;
  readonly default?: unknown;
  readonly description?: string;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly minLength?: number;
  readonly maxLength?: number;
  readonly minItems?: number;
  readonly maxItems?: number;
  readonly properties?: Readonly<Record<string, FieldSchema>>;
  readonly required?: readonly string[];
}

/** Formats one line per field of an object; returns nothing for other schemas. */
function describeFields(schema: z.ZodType, io: 'input' | 'output'): string[] {
  const { properties = {}, required = [] } = z.toJSONSchema(schema, { io }) as FieldSchema;
  return Object.entries(properties).map(([name, field]) => {
    const kind = [
      describeType(field),
      ...(io === 'input' ? [required.includes(name) ? '**required**' : 'optional'] : []),
      ...(io === 'output' && !required.includes(name) ? ['may be absent'] : []),
      ...(field.default === undefined ? [] : [`default ${JSON.stringify(field.default)}`]),
    ].join(', ');
    const about = toOneLine(field.description ?? '');
    return `- \`${name}\` (${kind})${about === '' ? '' : `: ${about}`}`;
  });
}

/** Lists the required fields, in order. */
function listRequiredFields(schema: z.ZodType): readonly string[] {
  return (z.toJSONSchema(schema, { io: 'input' }) as FieldSchema).required ?? [];
}

function toOneLine(text: string): string {
  return text.replaceAll(/\s+/g, ' ').trim();
}

function describeType(field: FieldSchema): string {
  if (field.const !== undefined) return JSON.stringify(field.const);
  if (field.enum !== undefined) return `one of ${field.enum.map((value) => JSON.stringify(value)).join(', ')}`;
  if (field.anyOf !== undefined) return field.anyOf.map(describeType).join(' or ');
  if (field.type === 'array')
    return `list of ${field.items === undefined ? 'values' : describeType(field.items)}${formatBounds(field.minItems, field.maxItems, ' entries')}`;
  const type = [field.type ?? 'any JSON'].flat().join(' or ');
  return `${type}${formatBounds(field.minLength, field.maxLength, ' characters')}${formatBounds(field.minimum, field.maximum, '')}`;
}

function formatBounds(from: number | undefined, to: number | undefined, unit: string): string {
  const [low, high] = [
    from === Number.MIN_SAFE_INTEGER ? undefined : from,
    to === Number.MAX_SAFE_INTEGER ? undefined : to,
  ];
  if (low !== undefined && high !== undefined) return ` of ${low} to ${high}${unit}`;
  if (high !== undefined) return ` of at most ${high}${unit}`;
  return low === undefined ? '' : ` of at least ${low}${unit}`;
}
