// Recognizes the commonest message, a call of a tool that asks for nothing else, so that it can be answered without a
// server and a transport of its own: those are most of what a cheap call costs. All else is the library's.
import {
  CLIENT_CAPABILITIES_META_KEY,
  CLIENT_INFO_META_KEY,
  PROTOCOL_VERSION_META_KEY,
  SERVER_INFO_META_KEY,
  SUPPORTED_PROTOCOL_VERSIONS,
  type CallToolResult,
} from '@modelcontextprotocol/server';
import { z } from 'zod';

/** The revision whose messages carry an envelope, and whose headers repeat what they ask. */
const modernVersion = '2026-07-28';

const meta = z.strictObject({
  [PROTOCOL_VERSION_META_KEY]: z.literal(modernVersion),
  [CLIENT_INFO_META_KEY]: z.looseObject({ name: z.string(), version: z.string() }),
  [CLIENT_CAPABILITIES_META_KEY]: z.looseObject({}),
});
const fields = z.record(z.string(), z.unknown());
const message = z.strictObject({
  jsonrpc: z.literal('2.0'),
  id: z.union([z.string(), z.int()]),
  method: z.literal('tools/call'),
  params: z.strictObject({ name: z.string(), arguments: fields.optional(), _meta: meta.optional() }),
});

export interface PlainCall {
  readonly id: string | number;
  readonly params: { readonly name: string; readonly arguments?: Record<string, unknown> | undefined };
  readonly modern: boolean;
}

/**
 * A call that the library would answer with its result alone; undefined for everything else, valid or not, among it
 * calls that ask for progress.
 */
export function plainCallOf(headers: Headers, body: unknown): PlainCall | undefined {
  if (!acceptsBoth(headers.get('accept'))) return undefined;
  const read = message.safeParse(body);
  if (!read.success) return undefined;
  const { id, params } = read.data;
  const modern = params._meta !== undefined;
  const fits = modern ? repeats(headers, params.name) : isEarlier(headers);
  return fits ? { id, params: { name: params.name, arguments: params.arguments }, modern } : undefined;
}

/** What the library would write, with the server's identity in results of the newer revision. */
export function plainAnswer({ id, modern }: PlainCall, result: CallToolResult, serverInfo: object): string {
  const answered = modern
    ? { ...result, resultType: 'complete', _meta: { [SERVER_INFO_META_KEY]: serverInfo } }
    : result;
  return JSON.stringify({ result: answered, jsonrpc: '2.0', id });
}

function acceptsBoth(accept: string | null): boolean {
  return accept !== null && accept.includes('application/json') && accept.includes('text/event-stream');
}

/** Names that a header cannot hold as they are arrive encoded, and differ here. */
function repeats(headers: Headers, name: string): boolean {
  return (
    headers.get('mcp-protocol-version') === modernVersion &&
    headers.get('mcp-method') === 'tools/call' &&
    headers.get('mcp-name') === name
  );
}

function isEarlier(headers: Headers): boolean {
  const version = headers.get('mcp-protocol-version');
  return version !== null && version !== modernVersion && SUPPORTED_PROTOCOL_VERSIONS.includes(version);
}
