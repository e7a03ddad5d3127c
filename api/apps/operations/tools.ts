// Offers operations of apps as MCP tools next to the built-in ones: lists them by app, searches, calls and charges them
// like any call of the app.
import type { CallToolResult, ContentBlock, Tool as ListedTool } from '@modelcontextprotocol/server';
import { formatMoney, parseMoney } from '../../billing/index.ts';
import type { ExternalSearch, ExternalToolCall, ExternalTools, FoundTool } from '../../tools/index.ts';
import type { PayerFor } from '../../models/index.ts';
import {
  maxBufferedBytes,
  readContent,
  toContentView,
  type ResponseContent,
  type AppClient,
} from '../calls/app-client.ts';
import { type AppCall, type AppCalls, type CallReceipt, toReceiptView } from '../calls/app-calls.ts';
import type { Directory, Target } from '../directory.ts';
import { callMcpTool } from './app-mcp.ts';
import type { OperationCache } from './operation-cache.ts';
import { type HttpBinding, type Operation, nameSeparator } from './operation.ts';
import { toAppRequest } from './request.ts';

export interface OperationToolsOptions {
  readonly directory: Pick<Directory, 'get'>;
  readonly operationCache: OperationCache;
  readonly calls: AppCalls;
  readonly appClient: AppClient;
  readonly payerFor: PayerFor;
}

export function createOperationTools({
  directory,
  operationCache,
  calls,
  appClient,
  payerFor,
}: OperationToolsOptions): ExternalTools {
  const price = formatMoney(calls.price);
  const listCandidates = (slug: string): Candidate[] => {
    const target = directory.get(slug);
    return (operationCache.getOperations(target)?.operations ?? []).map((operation) => ({ target, operation }));
  };
  return {
    list: (app) => listCandidates(app).map(({ target, operation }) => toListedTool(target, operation, price)),
    search({ query, app, limit }: ExternalSearch) {
      const matches = rankCandidates(app === undefined ? operationCache.listAll() : listCandidates(app), query);
      const page = matches
        .slice(0, limit)
        .map(({ target, operation }): FoundTool => ({ ...toListedTool(target, operation, price), app: target.slug }));
      return { found: page, total: matches.length };
    },
    names: () => operationCache.listAll().map(({ operation }) => operation.name),
    async find(name) {
      const entry = await operationCache.find(name);
      if (entry === undefined) return undefined;
      const { target, operation } = entry;
      return {
        app: target.slug,
        async call({ given, context, signal }: ExternalToolCall): Promise<CallToolResult> {
          const call: AppCall = { target, payer: await payerFor(context), via: 'mcp', id: context.id, signal };
          return operation.way.kind === 'http'
            ? callOverHttp(call, operation, operation.way, given)
            : callOverMcp(call, operation, operation.way.tool, given);
        },
      };
    },
  };

  async function callOverHttp(
    call: AppCall,
    operation: Operation,
    way: HttpBinding,
    args: Readonly<Record<string, unknown>>,
  ): Promise<CallToolResult> {
    const { value, ...receipt } = await calls.send(
      call,
      toAppRequest(operation, way, args),
      (response) => readContent(call.target, response),
      // MCP shows such a response as an error, and a failed tool call is free.
      ({ status }) => status < 400,
    );
    const { base64, ...view } = toContentView(value);
    const shown = toContentBlock(value);
    return toCallResult(
      operation,
      receipt,
      call.id,
      { ...view, ...(base64 === undefined || shown !== undefined ? {} : { base64 }) },
      { isError: value.status >= 400, content: shown === undefined ? [] : [shown] },
    );
  }

  async function callOverMcp(
    call: AppCall,
    operation: Operation,
    tool: string,
    args: Readonly<Record<string, unknown>>,
  ): Promise<CallToolResult> {
    const path = call.target.agentPaths?.mcp ?? '/mcp';
    const { value, ...receipt } = await calls.runCharged(call, async (signal, leave) => {
      try {
        const visit = {
          appClient,
          target: call.target,
          path,
          id: call.id,
          signal,
          maxBytes: maxBufferedBytes,
          limitMs: appClient.limitMs,
        };
        const answer = await callMcpTool(visit, tool, args);
        return { value: answer, due: answer.isError !== true };
      } catch (error) {
        throw appClient.toProblem(error, call.target, signal);
      } finally {
        leave();
      }
    });
    const texts = value.content.flatMap((block) => (block.type === 'text' ? [block.text] : []));
    const view = {
      ...(value.structuredContent === undefined ? {} : { structured: value.structuredContent }),
      ...(texts.length === 0 ? {} : { text: texts.join('\n') }),
    };
    return toCallResult(operation, receipt, call.id, view, {
      isError: value.isError === true,
      content: value.content.filter(({ type }) => type !== 'text'),
    });
  }
}

function toCallResult(
  { name }: Operation,
  receipt: CallReceipt,
  id: string,
  view: object,
  { isError, content }: { isError: boolean; content: readonly ContentBlock[] },
): CallToolResult {
  const structuredContent = { tool: name, result: { ...view }, ...toReceiptView(receipt, id) };
  return {
    ...(isError ? { isError } : {}),
    structuredContent,
    content: [{ type: 'text', text: JSON.stringify(structuredContent) }, ...content],
  };
}

/** Content that clients can display themselves, so that the view needs no base64. */
function toContentBlock({ mediaType, bytes }: ResponseContent): ContentBlock | undefined {
  const encodeBytes = (): string => Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('base64');
  if (/^image\/(png|jpeg|gif|webp)$/.test(mediaType))
    return { type: 'image', data: encodeBytes(), mimeType: mediaType };
  return mediaType.startsWith('audio/') ? { type: 'audio', data: encodeBytes(), mimeType: mediaType } : undefined;
}

/**
 * Names and hints are set here, not by the author: a title or hint of theirs could make a client skip asking its user.
 * The description starts by saying who wrote it.
 */
function toListedTool(
  { slug }: Target,
  { name, title, description, inputSchema, way }: Operation,
  price: string,
): ListedTool {
  const files = way.kind === 'http' && way.body?.type === 'multipart/form-data' ? ' Send files as base64.' : '';
  const words = [title, description].filter((text) => text !== '').join(': ');
  const quoted = words === '' ? 'The author does not describe it.' : `${byAuthor} "${words.replaceAll('"', "'")}"`;
  return {
    name,
    title: `${slug}: ${removePrefix(name)}`,
    description: `Operation of the hosted app ${slug}. ${quoted}${files} Price: ${parseMoney(price) === 0n ? 'free' : `${price} USD per call`}.`,
    inputSchema,
    annotations: { readOnlyHint: false, destructiveHint: true, idempotentHint: false, openWorldHint: true },
  };
}

const byAuthor = 'In the words of its author, not of Moorage:';

function removePrefix(name: string): string {
  return name.slice(name.indexOf(nameSeparator) + nameSeparator.length);
}

interface Candidate {
  readonly target: Target;
  readonly operation: Operation;
}

/** Selects candidates with any of the words, best first: a word in a name counts most, the exact name above all. */
function rankCandidates(candidates: readonly Candidate[], query: string): Candidate[] {
  const words = query.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? [];
  if (words.length === 0) return [...candidates];
  return candidates
    .map((candidate) => ({ candidate, score: scoreMatch(candidate, query.trim(), words) }))
    .filter(({ score }) => score > 0)
    .toSorted((one, other) => other.score - one.score)
    .map(({ candidate }) => candidate);
}

function scoreMatch({ target, operation }: Candidate, query: string, words: readonly string[]): number {
  const { name, formerName, title, description } = operation;
  if (query === name || query === formerName) return Number.POSITIVE_INFINITY;
  const fields: readonly (readonly [text: string, weight: number])[] = [
    [name.toLowerCase(), 4],
    [title.toLowerCase(), 3],
    [target.title.toLowerCase(), 2],
    [description.toLowerCase(), 1],
  ];
  return words.reduce(
    (sum, word) => sum + Math.max(0, ...fields.map(([text, weight]) => (text.includes(word) ? weight : 0))),
    0,
  );
}
