// Operations of apps as MCP tools, beside our own: listed under `<slug>.<operation>`, called, and charged like any call
// of the app.
import type { CallToolResult, ContentBlock, Tool as ListedTool } from '@modelcontextprotocol/server';
import { z } from 'zod';
import { formatMoney, parseMoney } from '../../billing/ledger/money.ts';
import type { ExternalTools, ExternalToolCall } from '../../tools/engine/external-tools.ts';
import type { PayerFor } from '../../models/callers/payers.ts';
import { mostAnswerBytes, paidFields, readWhole, toldAnswer, toldPaid, type Whole } from '../response.ts';
import type { AppCall, AppCalls, Paid } from '../calls.ts';
import type { Courier } from '../app-client.ts';
import type { Target } from '../directory.ts';
import { callMcpTool } from './app-mcp.ts';
import type { OperationBook } from './operation-cache.ts';
import type { HttpWay, Operation } from './operation.ts';
import { requestOf } from './request.ts';

export interface OperationToolsOptions {
  readonly book: OperationBook;
  readonly calls: AppCalls;
  readonly courier: Courier;
  readonly payerFor: PayerFor;
}

const outputSchema = z.toJSONSchema(
  z.object({
    tool: z.string().optional(),
    result: z
      .looseObject({})
      .optional()
      .describe(
        'What the app answered: of an operation over HTTP its status, media_type and body; of an MCP tool its structured content',
      ),
    ...Object.fromEntries(
      Object.entries({ ...paidFields }).map(([name, field]) => [
        name,
        name === 'request_id' ? field : field.optional(),
      ]),
    ),
    problem: z.looseObject({}).optional().describe('RFC 9457 problem, when the call failed'),
  }),
  { io: 'input' },
);
delete outputSchema.$schema;

export function operationTools({ book, calls, courier, payerFor }: OperationToolsOptions): ExternalTools {
  const price = formatMoney(calls.price);
  return {
    list: () => book.all().map(({ target, operation }) => listed(target, operation, price)),
    async find(name) {
      const found = await book.find(name);
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
    const { value, ...paid } = await calls.send(call, requestOf(operation, way, given), (brought) =>
      readWhole(call.target, brought),
    );
    const { base64, ...told } = toldAnswer(value);
    const shown = shownAs(value);
    return result(
      operation,
      paid,
      call.id,
      { ...told, ...(base64 === undefined || shown !== undefined ? {} : { base64 }) },
      { isError: value.status >= 400, content: shown === undefined ? [] : [shown] },
    );
  }

  async function overMcp(
    call: AppCall,
    operation: Operation,
    tool: string,
    given: Readonly<Record<string, unknown>>,
  ): Promise<CallToolResult> {
    const path = call.target.described?.mcp ?? '/mcp';
    const { value, ...paid } = await calls.charged(call, async (signal, leave) => {
      try {
        return {
          value: await callMcpTool(
            {
              courier,
              target: call.target,
              path,
              id: call.id,
              signal,
              mostBytes: mostAnswerBytes,
              limitMs: courier.limitMs,
            },
            tool,
            given,
          ),
          due: true,
        };
      } catch (error) {
        throw courier.failure(error, call.target, signal);
      } finally {
        leave();
      }
    });
    const texts = value.content.flatMap((block) => (block.type === 'text' ? [block.text] : []));
    const told = {
      ...(value.structuredContent === undefined ? {} : { structured: value.structuredContent }),
      ...(texts.length === 0 ? {} : { text: texts.join('\n') }),
    };
    return result(operation, paid, call.id, told, {
      isError: value.isError === true,
      content: value.content.filter(({ type }) => type !== 'text'),
    });
  }
}

function result(
  { name }: Operation,
  paid: Paid,
  id: string,
  told: object,
  { isError, content }: { isError: boolean; content: readonly ContentBlock[] },
): CallToolResult {
  const structuredContent = { tool: name, result: { ...told }, ...toldPaid(paid, id) };
  return {
    ...(isError ? { isError } : {}),
    structuredContent,
    content: [{ type: 'text', text: JSON.stringify(structuredContent) }, ...content],
  };
}

/** What clients can show by themselves, and so need not get as base64. */
function shownAs({ mediaType, bytes }: Whole): ContentBlock | undefined {
  const data = (): string => Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('base64');
  if (/^image\/(png|jpeg|gif|webp)$/.test(mediaType)) return { type: 'image', data: data(), mimeType: mediaType };
  return mediaType.startsWith('audio/') ? { type: 'audio', data: data(), mimeType: mediaType } : undefined;
}

/** Says first whose words these are, so that nobody takes them for ours. */
function listed(
  { slug, title }: Target,
  { name, title: own, description, inputSchema, reads, way }: Operation,
  price: string,
): ListedTool {
  const files = way.kind === 'http' && way.body?.type === 'multipart/form-data' ? ' Files are given as base64.' : '';
  return {
    name,
    title: `${title.slice(0, 80)}: ${own}`,
    description: `Operation of the hosted app ${slug}; what follows is said by its author. ${own}${description === '' ? '' : `: ${description}`}${/[.!?…]$/.test(description) ? '' : '.'}${files} Price: ${parseMoney(price) === 0n ? 'nothing' : `${price} USD a call`}.`,
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
