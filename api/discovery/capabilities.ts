// /agent-capabilities.json: every endpoint, tool and live app with how to call it, in one document.
import { z } from 'zod';
import { answersAt, callUrl, type Site } from '../apps/offer.ts';
import { authentication, description, name, version } from '../http/service.ts';
import { exampleUrl } from '../tools/example-url.ts';

const url = z.string();

export const capabilities = z.object({
  name: z.string(),
  description: z.string(),
  version: z.string().describe('Version of the interface'),
  base_url: url,
  authentication: z.object({ required: z.boolean(), scheme: z.string(), description: z.string() }),
  documents: z.record(z.string(), url).describe('Other documents of this kind'),
  protocols: z
    .array(z.object({ name: z.string(), url, transport: z.string() }))
    .describe('Protocols by which the tools can be called beside plain HTTP'),
  tools: z.array(
    z.object({
      name: z.string(),
      title: z.string(),
      description: z.string(),
      url: url.describe('Takes GET with query parameters, and POST with JSON'),
      input_schema: z.record(z.string(), z.unknown()).describe('JSON Schema of the parameters'),
      aliases: z.record(z.string(), z.string()).optional().describe('Other names of parameters'),
      price_usd: z.string().describe('Cost of a call, beside what the models cost that it asks'),
      artifacts: z.array(z.string()).optional().describe('Media types of what raw=1 answers with'),
      long: z.boolean().describe('Whether a call is answered with the handle of a job'),
      available: z.boolean(),
      unavailable_because: z.string().optional().describe('What it lacks here, and how that is switched on'),
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
            'Takes POST with {"method", "path", "query", "headers", "body"}, and below it any request that the app itself takes',
          ),
        operations: z
          .array(z.string())
          .optional()
          .describe('What the app can do, as tools on /mcp; absent where its author has not switched that on'),
        operations_fault: z.string().optional().describe('Why there are none although that is on'),
      }),
    )
    .describe('Hosted apps that are live now'),
  endpoints: z.array(z.object({ operation: z.string(), method: z.string(), path: z.string(), summary: z.string() })),
});

const documents: Readonly<Record<string, string>> = {
  openapi: '/openapi.json',
  llms: '/llms.txt',
  agent_card: '/.well-known/agent-card.json',
};
const protocols = [
  { name: 'mcp', path: '/mcp', transport: 'streamable HTTP' },
  { name: 'a2a', path: '/a2a', transport: 'JSON-RPC' },
];

export function describeCapabilities(site: Site): z.input<typeof capabilities> {
  const { baseUrl } = site;
  const here = (path: string): boolean => answersAt(site, path);
  return {
    name,
    description,
    version,
    base_url: baseUrl,
    authentication: { required: false, scheme: 'bearer', description: authentication },
    documents: Object.fromEntries(
      Object.entries(documents)
        .filter(([, path]) => here(path))
        .map(([key, path]) => [key, `${baseUrl}${path}`]),
    ),
    protocols: protocols
      .filter(({ path }) => here(path))
      .map((protocol) => ({ name: protocol.name, url: `${baseUrl}${protocol.path}`, transport: protocol.transport })),
    tools: site.tools.map((tool) => {
      const off = site.off(tool);
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
        example: exampleUrl(tool, baseUrl),
      };
    }),
    apps: site.apps().map(({ slug, title, description: about, category, url: address, repo }) => {
      const offered = site.operations(slug);
      return {
        slug,
        title,
        description: about,
        category,
        url: address,
        repo,
        call_url: callUrl(site, slug),
        operations: offered === undefined ? undefined : [...offered.names],
        operations_fault: offered?.fault,
      };
    }),
    endpoints: site.endpoints.map(({ operation, method, path, summary }) => ({ operation, method, path, summary })),
  };
}
