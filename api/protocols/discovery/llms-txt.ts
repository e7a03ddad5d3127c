// /llms.txt: an overview in Markdown for language models (llmstxt.org).
import { serviceAuthentication, serviceDescription, type Endpoint, serviceName } from '../../http/index.ts';
import { exampleUrl, type HostedAppSummary, type Tool } from '../../tools/index.ts';
import { formatMoney, parseMoney, zero } from '../../billing/index.ts';
import { requiredFields } from './fields.ts';
import { isOffered, formatCallUrl, type Site } from '../../apps/index.ts';

export function llmsText(site: Site): string {
  const { baseUrl, tools } = site;
  const sections = [
    `# ${serviceName}\n\n> ${serviceDescription}`,
    `Authentication: ${serviceAuthentication}\n\nEverything in one file, with all fields, errors and models: ${baseUrl}/llms-full.txt\n\nErrors are RFC 9457 problems: \`detail\` says what went wrong, \`errors\` lists each invalid field with a fix, and \`actions\` lists ways to continue.`,
    section(
      'Tools',
      tools.length === 0 ? undefined : howToCall(site),
      tools.map((tool) => toolLine(tool, site)),
    ),
    section(
      'Hosted apps',
      howToCallApps(site),
      site.apps().map((app) => appLine(app, site)),
    ),
    section(
      'Guides',
      'Each answers a question with the tool that applies, steps to execute and measured evidence.',
      site.guides.map(({ question, machine_readable }) => `- [${question}](${machine_readable})`),
    ),
    section(
      'Endpoints',
      isOffered(site, '/v1/chat/completions')
        ? `OpenAI clients work with the base URL ${baseUrl}/v1: with your own API key for the model router as their key, or with the key "anonymous" for models in the free tier on the free quota.`
        : undefined,
      site.endpoints.filter(isOfInterest).map((endpoint) => endpointLine(endpoint, baseUrl)),
    ),
    section(
      'Machine-readable',
      undefined,
      site.endpoints
        .filter(({ path }) => /\.(json|txt)$/.test(path))
        .map((endpoint) => endpointLine(endpoint, baseUrl)),
    ),
  ];
  return `${sections.filter((text) => text !== '').join('\n\n')}\n`;
}

function section(title: string, intro: string | undefined, lines: readonly string[]): string {
  if (lines.length === 0) return '';
  return [`## ${title}`, ...(intro === undefined ? [] : [intro]), lines.join('\n')].join('\n\n');
}

function howToCall(site: Site): string {
  const mcp = isOffered(site, '/mcp')
    ? ` The same tools are available over MCP at ${site.baseUrl}/mcp, where search_tools and call_tool also reach the operations of hosted apps.`
    : '';
  return `Call a tool with GET ${site.baseUrl}/t/<tool> and query parameters, or with POST and the same fields as JSON. No client, signup or key is needed. Every response includes its cost. Add raw=1 to get the bytes of a created file; otherwise, download it from artifact.url in the response, free of charge, for one hour, or send that URL as artifact to another tool.${mcp}`;
}

function toolLine(tool: Tool, site: Site): string {
  const required = requiredFields(tool.input);
  const fields = Object.keys(tool.input.shape).map((field) =>
    required.includes(field) ? `${field} (required)` : field,
  );
  const taken = fields.length === 0 ? '' : ` Parameters: ${fields.join(', ')}.`;
  const off = site.off(tool);
  return `- [${tool.name}](${exampleUrl(tool, site.baseUrl)}): ${line(tool.description)}${taken} Price: ${priceText(tool)}.${off === undefined ? '' : ` Not available here. ${line(off)}`}`;
}

function priceText({ price, asksModels }: Tool): string {
  const own = parseMoney(price);
  const billed = 'the billed cost of its model calls';
  if (own === zero) return asksModels === true ? billed : 'free';
  return `$${formatMoney(own)}${asksModels === true ? ` plus ${billed}` : ''}`;
}

function howToCallApps(site: Site): string | undefined {
  const at = formatCallUrl(site, '<slug>');
  return at === undefined
    ? undefined
    : `Each app has its own URL. For metered calls, send POST ${at} with {"method", "path", "query", "headers", "body"} as JSON, or send any request to ${at}/<path>.`;
}

/** Operations of an app that are named; search_tools finds the others. */
const maxNames = 10;

function appLine({ slug, title, url, description: about, category, repo }: HostedAppSummary, site: Site): string {
  const kind = category === undefined ? '' : `${category}; `;
  const names = site.operations(slug)?.names ?? [];
  const more = names.length > maxNames ? ` and ${names.length - maxNames} more` : '';
  const tools =
    names.length === 0
      ? ''
      : ` Operations (call_tool on /mcp, or /mcp/${slug}): ${names.slice(0, maxNames).join(', ')}${more}.`;
  // Models read this document: what an author wrote gets no markup and no line of its own.
  return `- [${plain(title)}](${url}): ${about === '' ? '' : `${plain(about)} `}(${kind}slug: ${slug}; source: ${repo})${tools}`;
}

function endpointLine({ method, path, summary }: Endpoint, baseUrl: string): string {
  return `- [${method} ${path}](${baseUrl}${path}): ${line(summary)}`;
}

/** Tools have lines of their own. */
function isOfInterest({ path }: Endpoint): boolean {
  return path.startsWith('/api/') || path.startsWith('/v1/') || path === '/mcp' || path === '/a2a';
}

function line(text: string): string {
  return text.replaceAll(/\s+/g, ' ').trim();
}

function plain(text: string): string {
  return line(text).replaceAll(/[[\]()<>`*_#!|\\]/g, '');
}
