// /agent-capabilities.json: every endpoint, tool and live app with how to call it, in one document.
import { z } from 'zod';
import { isOffered, formatCallUrl, type Site } from '../../apps/index.ts';
import { serviceAuthentication, serviceDescription, serviceName, serviceVersion } from '../../http/index.ts';
import { buildExampleUrl } from '../../tools/index.ts';

const url = z.string();

export const capabilities = z.object({
  name: z.string(),
  description: z.string(),
  version: z.string().describe('Version of the interface.'),
  base_url: url,
  authentication: z.object({ required: z.boolean(), scheme: z.string(), description: z.string() }),
  documents: z.record(z.string(), url).describe('Other machine-readable documents.'),
  protocols: z
    .array(z.object({ name: z.string(), url, transport: z.string() }))
    .describe('Protocols other than plain HTTP for calling the tools.'),
  tools: z.array(
    z.object({
      name: z.string(),
      title: z.string(),
      description: z.string(),
      url: url.describe('Call with GET and query parameters, or with POST and JSON.'),
      input_schema: z.record(z.string(), z.unknown()).describe('JSON Schema of the parameters.'),
      aliases: z
        .record(z.string(), z.string())
        .optional()
        .describe('Alternative parameter names, mapped to the names in input_schema.'),
      price_usd: z.string().describe('Price of a call in USD, in addition to the cost of model calls.'),
      artifacts: z.array(z.string()).optional().describe('Media types of the files returned with raw=1.'),
      long: z.boolean().describe('Whether a call runs as a job and returns its handle.'),
      available: z.boolean(),
      unavailable_because: z
        .string()
        .optional()
        .describe('What is missing, and how the operator of this installation enables it.'),
      example: url,
    }),
  ),
  apps: z
    .array(
      z.object({
        slug: z.string(),
        title: z.string(),
        description: z.string(),
        category: z.string().optional(),
        url,
        repo: url,
        call_url: url
          .optional()
          .describe(
            'Call with POST and {"method", "path", "query", "headers", "body"}, or append a path to send any request to the app.',
          ),
        operations: z
          .array(z.string())
          .optional()
          .describe(
            "Operations of the app: call them with call_tool on /mcp, or as tools at mcp_url; absent unless the app's author enables them.",
          ),
        mcp_url: url.optional().describe("MCP endpoint that lists only this app's operations."),
        operations_fault: z
          .string()
          .optional()
          .describe('Why no operations were found although they are enabled, or why they do not answer any more.'),
      }),
    )
    .describe('Hosted apps that are live now.'),
  guides: z
    .array(z.object({ slug: z.string(), question: z.string(), page: url, machine_readable: url }))
    .describe('Guides that each answer a question, with steps to execute.'),
  endpoints: z.array(z.object({ operation: z.string(), method: z.string(), path: z.string(), summary: z.string() })),
});

const documents: Readonly<Record<string, string>> = {
  openapi: '/openapi.json',
  llms: '/llms.txt',
  llms_full: '/llms-full.txt',
  agent_card: '/.well-known/agent-card.json',
};
const protocols = [
  { name: 'mcp', path: '/mcp', transport: 'streamable HTTP' },
  { name: 'a2a', path: '/a2a', transport: 'JSON-RPC' },
];

export function describeCapabilities(site: Site): z.input<typeof capabilities> {
  const { baseUrl } = site;
  const isHere = (path: string): boolean => isOffered(site, path);
  return {
    name: serviceName,
    description: serviceDescription,
    version: serviceVersion,
    base_url: baseUrl,
    authentication: { required: false, scheme: 'bearer', description: serviceAuthentication },
    documents: Object.fromEntries(
      Object.entries(documents)
        .filter(([, path]) => isHere(path))
        .map(([key, path]) => [key, `${baseUrl}${path}`]),
    ),
    protocols: protocols
      .filter(({ path }) => isHere(path))
      .map((protocol) => ({ name: protocol.name, url: `${baseUrl}${protocol.path}`, transport: protocol.transport })),
    tools: site.tools.map((tool) => {
      const off = site.explainOff(tool);
      return {
        name: tool.name,
        title: tool.title,
        description: tool.description,
        url: `${baseUrl}/t/${tool.name}`,
        input_schema: z.toJSONSchema(tool.input, { io: 'input' }),
        aliases: Object.keys(tool.aliases).length === 0 ? undefined : { ...tool.aliases },
        price_usd: tool.price,
        artifacts: tool.artifacts === undefined ? undefined : [...tool.artifacts],
        long: tool.long ?? false,
        available: off === undefined,
        unavailable_because: off,
        example: buildExampleUrl(tool, baseUrl),
      };
    }),
    apps: site.listApps().map(({ slug, title, description: about, category, url: address, repo }) => {
      const offered = site.findOperations(slug);
      return {
        slug,
        title,
        description: about,
        category,
        url: address,
        repo,
        call_url: formatCallUrl(site, slug),
        operations: offered === undefined ? undefined : [...offered.names],
        mcp_url: offered === undefined || !isHere('/mcp') ? undefined : `${baseUrl}/mcp/${slug}`,
        operations_fault: offered?.fault,
      };
    }),
    guides: site.guides.map(({ slug, question, page, machine_readable }) => ({
      slug,
      question,
      page,
      machine_readable,
    })),
    endpoints: site.endpoints.map(({ operation, method, path, summary }) => ({ operation, method, path, summary })),
  };
}
