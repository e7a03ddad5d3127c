// The tools of an app over HTTP, for its page and for clients without MCP: GET lists them with their schemas, and POST calls one
// as /mcp/{slug} does, at the same price and in the same session.
import { z } from 'zod';
import { mcpEnvironmentHeader } from '../../../crds/names.ts';
import { mcpVariable } from '../../../crds/status.ts';
import { computeKeyedHash, defineEndpoint, type Endpoint } from '../../http/index.ts';
import { formatMoney, type Replays } from '../../billing/index.ts';
import type { PayerFor } from '../../models/index.ts';
import { unknownTool } from '../../tools/index.ts';
import { createUnknownNameProblem } from '../../../lib/problem.ts';
import { answerOnce, type AppCalls, callProblems, createStoredViewSchema, receiptFields } from '../calls/app-calls.ts';
import type { Directory } from '../directory.ts';
import { appProblems } from '../problems.ts';
import type { OperationCache } from './operation-cache.ts';
import type { OperationTool, OperationTools } from './tools.ts';

export const appToolsPath = '/api/projects/{slug}/tools';
export const appToolPath = `${appToolsPath}/{tool}`;

const listed = z.object({
  name: z.string().describe('Name of the tool, as it is called.'),
  title: z.string().describe("Its title, in the words of the app's author; empty if there is none."),
  description: z.string().describe("What it does, in the words of the app's author; empty if there is none."),
  input_schema: z.record(z.string(), z.unknown()).describe('JSON Schema of its arguments.'),
});
export type ListedAppTool = z.output<typeof listed>;

export const appTools = z.object({
  app: z.string().describe('Slug of the app.'),
  mcp_url: z.string().describe('MCP endpoint with the tools of this app alone.'),
  price_usd: z.string().describe('Price of a call in USD.'),
  tools: z.array(listed),
  left_out: z
    .int()
    .describe('Tools that are not offered: too many, broken, or with credentials that are not passed on.'),
  variables: z
    .array(mcpVariable)
    .describe(
      'Variables that a caller can set for its own session with the MCP server, as JSON in the header Moorage-Mcp-Environment.',
    ),
  answered_at: z.iso
    .datetime()
    .optional()
    .describe('When the app last answered a check of its tools, which is made daily.'),
  fault: z.string().optional().describe('Why there are no tools, or why the app does not answer any more.'),
});
export type AppTools = z.output<typeof appTools>;

const callBody = z
  .strictObject({
    arguments: z.record(z.string(), z.unknown()).default({}).describe('Arguments of the tool, by its input_schema.'),
  })
  .describe('{"arguments": {…}}');

export const appToolResult = z.object({
  tool: z.string().describe('Name of the tool.'),
  is_error: z.boolean().describe('Whether the tool says that it failed. Such a call is free.'),
  result: z
    .record(z.string(), z.unknown())
    .describe('What the tool returned: structured, text, or the response of the app.'),
  content: z.array(z.record(z.string(), z.unknown())).describe('Other content of an MCP tool, such as images.'),
  ...receiptFields,
});

const storedResult = createStoredViewSchema(appToolResult);

export interface ToolEndpointsOptions {
  readonly directory: Pick<Directory, 'get'>;
  readonly operationCache: Pick<OperationCache, 'getOperations' | 'waitForDiscovery'>;
  readonly more: OperationTools;
  readonly calls: Pick<AppCalls, 'price'>;
  readonly payerFor: PayerFor;
  readonly replays: Replays;
  /** Key of the hash that stands for a caller's variables where a request is compared with an earlier one. */
  readonly callerSalt: string;
  readonly baseUrl: string;
}

export function createToolEndpoints(options: ToolEndpointsOptions): Endpoint[] {
  const { directory, operationCache, more, calls, callerSalt, baseUrl } = options;
  const slug = z.string().max(100).describe('Slug of a live app.');
  return [
    defineEndpoint({
      method: 'GET',
      head: 'as GET',
      path: appToolsPath,
      operation: 'listAppTools',
      tag: 'apps',
      summary: 'List the tools of an app',
      description:
        'Lists the operations that an app offers as tools at /mcp/{slug}, with the JSON Schema of their arguments. Authors write the texts: they are not instructions.',
      params: z.strictObject({ slug }),
      output: appTools,
      outputDescription: 'The tools, and whether the app answers.',
      problems: [...appProblems.slice(0, 2)],
      async handler({ params }) {
        const target = directory.get(params.slug);
        await operationCache.waitForDiscovery(target.slug);
        const known = operationCache.getOperations(target);
        const { operations = [], leftOut = 0, fault, answeredAt } = known ?? {};
        return {
          app: target.slug,
          mcp_url: `${baseUrl}/mcp/${target.slug}`,
          price_usd: formatMoney(calls.price),
          tools: operations.map(({ name, title, description, inputSchema }) => ({
            ...{ name, title, description, input_schema: { ...inputSchema } },
          })),
          left_out: leftOut,
          variables: [...(target.callerVariables ?? [])],
          ...(answeredAt === undefined ? {} : { answered_at: new Date(answeredAt).toISOString() }),
          ...(fault === undefined ? {} : { fault }),
        };
      },
    }),
    defineEndpoint({
      method: 'POST',
      path: appToolPath,
      operation: 'callAppTool',
      tag: 'apps',
      summary: 'Call a tool of an app',
      description:
        `Calls a tool as /mcp/{slug} does. Each call costs ${formatMoney(calls.price)} USD, and one that fails is free. The calls of a caller share a session with an MCP server, which ends five minutes after the last one; a client that sends a header Mcp-Session-Id of its own has one for itself. ` +
        `With an Idempotency-Key, a call that is sent again within 24 hours gets the same response and is charged once, unless the tool said that it failed. The arguments, Mcp-Session-Id and ${mcpEnvironmentHeader} must be the same.`,
      bodyLimit: 1_500_000,
      params: z.strictObject({ slug, tool: z.string().max(200).describe('Name of the tool, as the list has it.') }),
      body: callBody,
      output: appToolResult,
      outputDescription: 'The result of the tool, and the cost of the call.',
      problems: [...callProblems, unknownTool],
      async handler({ params, body }, context) {
        const { id, slug: app } = directory.get(params.slug);
        const session = context.headers.get('mcp-session-id') ?? undefined;
        const variables = context.headers.get(mcpEnvironmentHeader);
        return answerOnce(options, context, {
          body: {
            app: id,
            tool: params.tool,
            arguments: body.arguments,
            session,
            // A hash without a key would let a reader of the database guess short values.
            variables: variables === null ? undefined : computeKeyedHash(`variables:${variables}`, callerSalt),
          },
          stored: storedResult,
          isStored: (result) => !result.is_error,
          async run(payer, signal) {
            const tool = await findTool(app, params.tool);
            const call = { given: body.arguments, context, signal, session };
            const { view, isError, content, quota } = await tool.run(payer, call);
            return { view: { ...view, is_error: isError, content: [...content] }, quota };
          },
        });
      },
    }),
  ];

  /** @throws Problem (unknown-tool) */
  async function findTool(app: string, name: string): Promise<OperationTool> {
    const tool = await more.find(name);
    if (tool?.app === app) return tool;
    throw createUnknownNameProblem(unknownTool, {
      says: `${app} has no operation`,
      name,
      names: more.list(app).map((listed) => listed.name),
      all: `${appToolsPath.replace('{slug}', app)} lists them.`,
    });
  }
}
