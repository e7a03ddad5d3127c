// The address of a call: what a GET of the same tool with the same input looks like, where it is short enough for one.
import { isDeepStrictEqual } from 'node:util';
import { coerceQuery } from './coerce.ts';
import type { Tool } from './tool.ts';

export interface Addressed {
  readonly tool: Tool;
  /** Validated, so that defaults stand in it too. */
  readonly input: Record<string, unknown>;
  readonly session: string | undefined;
  readonly baseUrl: string;
}

/** Longest address that is given out: every client and proxy takes it. */
const longest = 2_000;

/** undefined when it would be too long, or would not read back as the same input. */
export function addressOf({ tool, input, session, baseUrl }: Addressed, { raw }: { readonly raw: boolean }): string | undefined {
  const fields = Object.entries(input).filter(([, value]) => value !== undefined);
  if (fields.reduce((total, [name, value]) => total + name.length + (typeof value === 'string' ? value.length : 0), 0) > longest) return undefined;
  const query = new URLSearchParams();
  for (const [name, value] of fields) {
    for (const one of Array.isArray(value) ? (value as unknown[]) : [value]) query.append(name, textOf(one));
  }
  if (!isDeepStrictEqual(readBack(tool, query), { ...input })) return undefined;
  if (session !== undefined) query.set('s', session);
  if (raw) query.set('raw', '1');
  const text = query.toString();
  const address = `${baseUrl}/t/${tool.name}${text === '' ? '' : `?${text}`}`;
  return address.length > longest ? undefined : address;
}

function textOf(value: unknown): string {
  return typeof value === 'object' && value !== null ? JSON.stringify(value) : String(value);
}

function readBack(tool: Tool, query: URLSearchParams): unknown {
  const fields = Object.fromEntries([...new Set(query.keys())].map((name) => {
    const [first, ...more] = query.getAll(name);
    return [name, more.length === 0 && first !== undefined ? first : [first ?? '', ...more]];
  }));
  return tool.input.safeParse(coerceQuery(tool.input, fields)).data;
}
