// Operations of apps as MCP tools, beside our own: listed under `<slug>.<operation>`, called, and charged like any call
// of the app.
import type { CallToolResult, ContentBlock, Tool as ListedTool } from '@modelcontextprotocol/server';
import { z } from 'zod';
import { formatMoney, parseMoney } from '../../billing/index.ts';
import type { ExternalToolCall, ExternalTools } from '../../tools/index.ts';
import type { PayerFor } from '../../models/index.ts';
import {
  maxBufferedBytes,
  receiptFields,
  readContent,
  contentView,
  receiptView,
  type ResponseContent,
} from '../calls/response.ts';
import type { AppCall, AppCalls, CallReceipt } from '../calls/app-calls.ts';
import type { AppClient } from '../calls/app-client.ts';
import type { Target } from '../directory.ts';
import { callMcpTool } from './app-mcp.ts';
import type { OperationCache } from './operation-cache.ts';
import type { HttpWay, Operation } from './operation.ts';
import { requestOf } from './request.ts';

export interface OperationToolsOptions {
  readonly operationCache: OperationCache;
  readonly calls: AppCalls;
  readonly appClient: AppClient;
  readonly payerFor: PayerFor;
}

const outputSchema = z.toJSONSchema(
  z.object({
    tool: z.string().optional(),
    result: z
      .looseObject({})
      .optional()
      .describe(
        'The response of the app: status, media_type and body of an HTTP operation, structured content of an MCP tool.',
      ),
    ...Object.fromEntries(
      Object.entries({ ...receiptFields }).map(([name, field]) => [
        name,
        name === 'request_id' ? field : field.optional(),
      ]),
    ),
    problem: z.looseObject({}).optional().describe('RFC 9457 problem, if the call failed.'),
  }),
  { io: 'input' },
);
delete outputSchema.$schema;

export function operationTools({ operationCache, calls, appClient, payerFor }: OperationToolsOptions): ExternalTools {
  const price = formatMoney(calls.price);
  return {
    list: () => operationCache.all().map(({ target, operation }) => listed(target, operation, price)),
    async find(name) {
      const found = await operationCache.find(name);
      if (found === undefined) return undefined;
      const { target, operation } = found;
      return {
        async call({ given, context, signal }: ExternalToolCall): Promise<CallToolResult> {
          const call: AppCall = { target, payer: await payerFor(context), via: 'mcp', id: context.id, signal };
          return operation.way.kind === 'http'
            ? overHttp(call, operation, operation.way, given)
            : overMcp(call, operation, operation.way.tool, given);
        },
      };
    },
  };

  async function overHttp(
    call: AppCall,
    operation: Operation,
    way: HttpWay,
    given: Readonly<Record<string, unknown>>,
  ): Promise<CallToolResult> {
    const { value, ...receipt } = await calls.send(call, requestOf(operation, way, given), (response) =>
      readContent(call.target, response),
    );
    const { base64, ...view } = contentView(value);
    const shown = shownAs(value);
    return result(
      operation,
      receipt,
      call.id,
      { ...view, ...(base64 === undefined || shown !== undefined ? {} : { base64 }) },
      { isError: value.status >= 400, content: shown === undefined ? [] : [shown] },
    );
  }

  async function overMcp(
    call: AppCall,
    operation: Operation,
    tool: string,
    given: Readonly<Record<string, unknown>>,
  ): Promise<CallToolResult> {
    const path = call.target.agentPaths?.mcp ?? '/mcp';
    const { value, ...receipt } = await calls.charged(call, async (signal, leave) => {
      try {
        return {
          value: await callMcpTool(
            {
              appClient,
              target: call.target,
              path,
              id: call.id,
              signal,
              maxBytes: maxBufferedBytes,
              limitMs: appClient.limitMs,
            },
            tool,
            given,
          ),
          due: true,
        };
      } catch (error) {
        throw appClient.failure(error, call.target, signal);
      } finally {
        leave();
      }
    });
    const texts = value.content.flatMap((block) => (block.type === 'text' ? [block.text] : []));
    const view = {
      ...(value.structuredContent === undefined ? {} : { structured: value.structuredContent }),
      ...(texts.length === 0 ? {} : { text: texts.join('\n') }),
    };
    return result(operation, receipt, call.id, view, {
      isError: value.isError === true,
      content: value.content.filter(({ type }) => type !== 'text'),
    });
  }
}

function result(
  { name }: Operation,
  receipt: CallReceipt,
  id: string,
  view: object,
  { isError, content }: { isError: boolean; content: readonly ContentBlock[] },
): CallToolResult {
  const structuredContent = { tool: name, result: { ...view }, ...receiptView(receipt, id) };
  return {
    ...(isError ? { isError } : {}),
    structuredContent,
    content: [{ type: 'text', text: JSON.stringify(structuredContent) }, ...content],
  };
}

/** What clients can show by themselves, so that base64 is not needed. */
function shownAs({ mediaType, bytes }: ResponseContent): ContentBlock | undefined {
  const data = (): string => Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('base64');
  if (/^image\/(png|jpeg|gif|webp)$/.test(mediaType)) return { type: 'image', data: data(), mimeType: mediaType };
  return mediaType.startsWith('audio/') ? { type: 'audio', data: data(), mimeType: mediaType } : undefined;
}

/** Says first who wrote the description, so that nobody takes it for ours. */
function listed(
  { slug, title }: Target,
  { name, title: own, description, inputSchema, reads, way }: Operation,
  price: string,
): ListedTool {
  const files = way.kind === 'http' && way.body?.type === 'multipart/form-data' ? ' Send files as base64.' : '';
  return {
    name,
    title: `${title.slice(0, 80)}: ${own}`,
    description: `Operation of the hosted app ${slug}, described by the author of the app: ${own}${description === '' ? '' : `: ${description}`}${/[.!?…]$/.test(description) ? '' : '.'}${files} Price: ${parseMoney(price) === 0n ? 'free' : `${price} USD per call`}.`,
    inputSchema,
    outputSchema,
    annotations: {
      title: own,
      readOnlyHint: reads,
      destructiveHint: !reads,
      idempotentHint: reads,
      openWorldHint: true,
    },
  };
}
