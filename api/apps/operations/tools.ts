// Offers operations of apps as MCP tools next to the built-in ones: lists them by app, searches, calls and charges them
// like any call of the app.
import type { CallToolResult, ContentBlock, Tool as ListedTool } from '@modelcontextprotocol/server';
import { z } from 'zod';
import { mcpEnvironmentHeader } from '../../../crds/names.ts';
import type { Problem } from '../../../lib/problem.ts';
import { createValidationProblem } from '../../http/index.ts';
import { formatMoney, parseMoney, type Payer, type Quota } from '../../billing/index.ts';
import type { ExternalSearch, ExternalTool, ExternalToolCall, ExternalTools, FoundTool } from '../../tools/index.ts';
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
import { type McpSessions, toSessionProblem } from './mcp-sessions.ts';
import type { OperationCache } from './operation-cache.ts';
import { type HttpBinding, type Operation, removePrefix, toPlainText } from './operation.ts';
import { toAppRequest } from './request.ts';

export interface OperationToolsOptions {
  readonly directory: Pick<Directory, 'get'>;
  readonly operationCache: OperationCache;
  readonly calls: AppCalls;
  readonly appClient: AppClient;
  readonly payerFor: PayerFor;
  readonly sessions: McpSessions;
}

/** The outcome of a call of an operation. */
export interface OperationResult {
  readonly view: { readonly tool: string; readonly result: Record<string, unknown> } & ReturnType<typeof toReceiptView>;
  /** The operation says that it failed. Such a call is free. */
  readonly isError: boolean;
  /** What does not fit into the view, such as images. */
  readonly content: readonly ContentBlock[];
  readonly quota: Quota | undefined;
}

export interface OperationTool extends ExternalTool {
  /** Calls it as `call` does, for an endpoint that has resolved the payer. @throws Problem */
  run(payer: Payer, call: ExternalToolCall): Promise<OperationResult>;
}

export interface OperationTools extends ExternalTools {
  find(name: string): Promise<OperationTool | undefined>;
}

export function createOperationTools({
  directory,
  operationCache,
  calls,
  appClient,
  payerFor,
  sessions,
}: OperationToolsOptions): OperationTools {
  const price = formatMoney(calls.price);
  const listCandidates = (slug: string): Candidate[] => {
    const target = directory.get(slug);
    const { operations, fault } = operationCache.getOperations(target) ?? { operations: [], fault: undefined };
    return operations.map((operation) => ({ target, operation, fault }));
  };
  return {
    async ready(app) {
      await operationCache.waitForDiscovery(app);
      return directory.get(app).slug;
    },
    list: (app) => listCandidates(app).map((candidate) => toListedTool(candidate, price)),
    search({ query, app, limit }: ExternalSearch) {
      const matches = rankCandidates(app === undefined ? operationCache.listAll() : listCandidates(app), query);
      const page = matches
        .slice(0, limit)
        .map((candidate): FoundTool => ({ ...toListedTool(candidate, price), app: candidate.target.slug }));
      return { found: page, total: matches.length };
    },
    names: () => operationCache.listAll().map(({ operation }) => operation.name),
    async endSession(session, context) {
      await sessions.end({ caller: formatCaller(await payerFor(context)), session });
    },
    async find(name) {
      const entry = await operationCache.find(name);
      if (entry === undefined) return undefined;
      const { target, operation } = entry;
      const run = (payer: Payer, request: ExternalToolCall): Promise<OperationResult> => {
        const { given, context, signal } = request;
        const call: AppCall = { target, payer, via: 'mcp', id: context.id, signal };
        return operation.way.kind === 'http'
          ? callOverHttp(call, operation, operation.way, given)
          : callOverMcp(call, operation, operation.way.tool, request);
      };
      return {
        app: target.slug,
        run,
        call: async (request) => toCallResult(await run(await payerFor(request.context), request)),
      };
    },
  };

  async function callOverHttp(
    call: AppCall,
    operation: Operation,
    way: HttpBinding,
    args: Readonly<Record<string, unknown>>,
  ): Promise<OperationResult> {
    const { value, ...receipt } = await calls.send(
      call,
      toAppRequest(operation, way, args),
      (response) => readContent(call.target, response),
      // MCP shows such a response as an error, and a failed tool call is free.
      ({ status }) => status < 400,
    );
    const { base64, ...view } = toContentView(value);
    const shown = toContentBlock(value);
    return toOperationResult(
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
    { given: args, context, session, report }: ExternalToolCall,
  ): Promise<OperationResult> {
    const { target, payer, id } = call;
    const environment = readCallerEnvironment(context.headers, target);
    const { value, ...receipt } = await calls.runCharged(call, async (signal, leave) => {
      try {
        const endpoint = {
          ...{ appClient, target, id, maxBytes: maxBufferedBytes, limitMs: appClient.limitMs },
          path: target.agentPaths?.mcp ?? '/mcp',
          environment,
        };
        const owner = { caller: formatCaller(payer), session };
        const answer = await sessions.call({ endpoint, owner, name: tool, args, id, signal, report });
        return { value: answer, due: answer.isError !== true };
      } catch (error) {
        throw toSessionProblem(error, target) ?? appClient.toProblem(error, target, signal);
      } finally {
        leave();
      }
    });
    const texts = value.content.flatMap((block) => (block.type === 'text' ? [block.text] : []));
    const view = {
      ...(value.structuredContent === undefined ? {} : { structured: value.structuredContent }),
      ...(texts.length === 0 ? {} : { text: texts.join('\n') }),
    };
    return toOperationResult(operation, receipt, call.id, view, {
      isError: value.isError === true,
      content: value.content.filter(({ type }) => type !== 'text'),
    });
  }
}

const maximumEnvironmentBytes = 8_192;

/**
 * Reads the values of a caller for variables of its session. @throws Problem (invalid-request) for a variable that the
 * server does not ask for
 */
function readCallerEnvironment(
  headers: Headers,
  { slug, callerVariables = [] }: Target,
): Readonly<Record<string, string>> | undefined {
  const text = headers.get(mcpEnvironmentHeader);
  if (text === null) return undefined;
  const values = callerEnvironment.safeParse(text);
  // Neither text repeats a value.
  if (!values.success) throw createEnvironmentProblem('must be a JSON object whose values are text');
  const names = callerVariables.map(({ name }) => name);
  const unknown = Object.keys(values.data).find((name) => !names.includes(name));
  if (unknown === undefined) return values.data;
  const known = names.length === 0 ? 'It takes none.' : `It takes ${names.join(', ')}.`;
  throw createEnvironmentProblem(
    `names a variable that ${slug} does not take from callers: ${toPlainText(unknown, 80)}. ${known}`,
  );
}

const callerEnvironment = z
  .string()
  .max(maximumEnvironmentBytes)
  .transform((text, context): unknown => {
    try {
      return JSON.parse(text);
    } catch {
      context.addIssue('must be JSON');
      return z.NEVER;
    }
  })
  .pipe(z.record(z.string(), z.string().regex(/^[^\0]*$/)));

function createEnvironmentProblem(message: string): Problem {
  const fix = 'Send the variables that the page of the app lists, such as {"API_KEY": "…"}, or leave the header out.';
  return createValidationProblem([{ in: 'header', field: mcpEnvironmentHeader, message, fix }]);
}

/** Identifies the caller in the sessions that are kept for it. */
function formatCaller({ kind, owner }: Payer): string {
  return `${kind} ${owner}`;
}

function toOperationResult(
  { name }: Operation,
  receipt: CallReceipt,
  id: string,
  result: object,
  { isError, content }: Pick<OperationResult, 'isError' | 'content'>,
): OperationResult {
  const view = { tool: name, result: { ...result }, ...toReceiptView(receipt, id) };
  return { view, isError, content, quota: receipt.quota };
}

function toCallResult({ view, isError, content }: OperationResult): CallToolResult {
  return {
    ...(isError ? { isError } : {}),
    structuredContent: view,
    content: [{ type: 'text', text: JSON.stringify(view) }, ...content],
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
function toListedTool({ target: { slug }, operation, fault }: Candidate, price: string): ListedTool {
  const { name, title, description, inputSchema, way } = operation;
  const files = way.kind === 'http' && way.body?.type === 'multipart/form-data' ? ' Send files as base64.' : '';
  const words = [title, description].filter((text) => text !== '').join(': ');
  const quoted = words === '' ? 'The author does not describe it.' : `${byAuthor} "${words.replaceAll('"', "'")}"`;
  return {
    name,
    title: `${slug}: ${removePrefix(name)}`,
    description: `Operation of the hosted app ${slug}. ${quoted}${files}${fault === undefined ? '' : ' The app does not answer at the moment.'} Price: ${parseMoney(price) === 0n ? 'free' : `${price} USD per call`}.`,
    inputSchema,
    annotations: { readOnlyHint: false, destructiveHint: true, idempotentHint: false, openWorldHint: true },
  };
}

const byAuthor = 'In the words of its author, not of Moorage:';

interface Candidate {
  readonly target: Target;
  readonly operation: Operation;
  /** Why the app does not answer. */
  readonly fault: string | undefined;
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
