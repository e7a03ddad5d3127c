// GET /t: the list of tools, as a page for people and as JSON for programs.
import { z } from 'zod';
import {
  defineEndpoint,
  type Endpoint,
  ignoredFields,
  createBufferedResponse,
  type Html,
  html,
  trustHtml,
} from '../http/index.ts';
import { costHeaderFields } from './engine/response.ts';
import type { ToolRegistry } from './engine/tool-service.ts';
import { toDollarNumber, parseMoney } from '../billing/index.ts';
import { ToolReader } from './engine/reading.ts';
import type { Tool } from './tool.ts';

const htmlType = 'text/html';

export function defineListEndpoint(toolRegistry: ToolRegistry, baseUrl: string): Endpoint {
  const listed = {
    tools: toolRegistry.tools.map((tool) => toListedTool(tool, toolRegistry, baseUrl)),
    mcp: `${baseUrl}/mcp`,
  };
  return defineEndpoint({
    method: 'GET',
    head: 'as GET',
    path: '/t',
    operation: 'listTools',
    tag: 'tools',
    summary: 'List tools',
    description:
      'Returns every tool with its parameters, price and availability: as HTML for people, as JSON for programs.',
    query: ignoredFields,
    output: z.object({
      tools: z.array(listedTool),
      mcp: z.string().describe('URL of the same tools over the Model Context Protocol.'),
    }),
    outputDescription: 'The tools.',
    produces: ['application/json', htmlType],
    problemHeaders: costHeaderFields,
    handler: async (_input, { mediaType }) =>
      mediaType === htmlType ? renderListPage(listed.tools, baseUrl) : Promise.resolve(listed),
  });
}

/** A tool as GET /t lists it. */
export const listedTool = z.object({
  name: z.string(),
  title: z.string(),
  description: z.string(),
  url: z.string().describe('URL to call it at: GET with query parameters, or POST with JSON.'),
  example: z.string().describe('A working example call.'),
  input_schema: z.record(z.string(), z.unknown()).describe('JSON Schema of its parameters.'),
  aliases: z
    .record(z.string(), z.string())
    .describe('Alternative parameter names that are accepted, and the parameter each stands for.'),
  price_usd: z.number().describe('Price of a call in USD, without its model calls.'),
  asks_models: z.boolean().describe('Whether the billed cost of model calls is added to the price.'),
  artifacts: z.array(z.string()).describe('Media types of the file that it creates; empty if it creates none.'),
  long: z.boolean().describe('Whether it runs as a job to poll.'),
  on: z.boolean().describe('Whether it is available on this installation.'),
  off_because: z.string().optional().describe('Why it is not available, and which setting enables it.'),
});
export type ListedTool = z.output<typeof listedTool>;

export function toListedTool(tool: Tool, toolRegistry: ToolRegistry, baseUrl: string): ListedTool {
  const off = toolRegistry.explainOff(tool);
  const schema: Record<string, unknown> = z.toJSONSchema(new ToolReader(tool).shown, { io: 'input' });
  delete schema['$schema'];
  return {
    name: tool.name,
    title: tool.title,
    description: tool.description,
    url: `${baseUrl}/t/${tool.name}`,
    example: buildExampleUrl(tool, baseUrl),
    input_schema: schema,
    aliases: { ...tool.aliases },
    price_usd: toDollarNumber(parseMoney(tool.price)),
    asks_models: tool.asksModels === true,
    artifacts: [...(tool.artifacts ?? [])],
    long: tool.long === true,
    on: off === undefined,
    ...(off === undefined ? {} : { off_because: off }),
  };
}

const headers = {
  'content-type': 'text/html; charset=utf-8',
  'content-security-policy':
    "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'",
  'referrer-policy': 'no-referrer',
  vary: 'accept',
};
const style =
  'body{font:1rem/1.6 system-ui,sans-serif;max-width:46rem;margin:3rem auto;padding:0 1rem;color-scheme:light dark}' +
  'pre{overflow:auto;padding:.8rem 1rem;border:1px solid;border-radius:.4rem}h2{margin-top:2.5rem}.off{border-left:.3rem solid;padding-left:.8rem}dt{font-weight:600}';

export function renderListPage(tools: readonly ListedTool[], baseUrl: string): Response {
  const page = html`<!doctype html>
    <html lang="en">
      <meta charset="utf-8" />
      <meta name="viewport" content="width=device-width, initial-scale=1" />
      <title>Tools · Moorage</title>
      <style>
        ${trustHtml(style)}
      </style>
      <h1>Tools</h1>
      <p>
        Call these tools from any HTTP client, without an account or a key: GET with query parameters, or POST with
        JSON. Every response reports what the call cost. MCP clients find the same tools at <code>${baseUrl}/mcp</code>.
      </p>
      <ul>
        ${tools.map((tool) => html`<li><a href="#${tool.name}">${tool.name}</a>: ${tool.title}${tool.on ? '' : ' (not available here)'}</li>`)}
      </ul>
      ${tools.map(renderSection)}
    </html> `;
  return createBufferedResponse(page.toString(), { headers });
}

function renderSection(tool: ListedTool): Html {
  const { properties = {}, required = [] } = tool.input_schema as {
    properties?: Record<string, { description?: string }>;
    required?: string[];
  };
  return html`<section id="${tool.name}">
    <h2>
      ${tool.title} <small><code>${tool.name}</code></small>
    </h2>
    <p>${tool.description}</p>
    ${tool.off_because === undefined ? '' : html`<p class="off">Not available here. ${tool.off_because}</p>`}
    <pre>curl '${tool.example}'</pre>
    <dl>
      ${Object.entries(properties).map(
        ([name, { description = '' }]) =>
          html`<dt><code>${name}</code>${required.includes(name) ? ' (required)' : ''}</dt>
            <dd>${description}</dd>`,
      )}
    </dl>
    <p>
      Price:
      ${tool.price_usd === 0 ? 'free' : `${String(tool.price_usd)} USD per call`}${tool.asks_models ? ', plus the billed cost of its model calls' : ''}.
      ${tool.artifacts.length === 0 ? '' : html`Creates a file (${tool.artifacts.join(', ')}). Add <code>raw=1</code> to get its bytes.`}
      ${tool.long ? 'Runs as a job: the response is a handle to poll. Add wait=60 to wait up to 60 seconds for the result.' : ''}
    </p>
  </section>`;
}

/** The tool's example call as a URL. */
export function buildExampleUrl(tool: Tool, baseUrl: string): string {
  const query = new URLSearchParams();
  for (const [field, value] of Object.entries(tool.example)) {
    for (const one of Array.isArray(value) ? value : [value])
      query.append(field, typeof one === 'object' ? JSON.stringify(one) : String(one));
  }
  const text = query.toString();
  return `${baseUrl}/t/${tool.name}${text === '' ? '' : `?${text}`}`;
}
