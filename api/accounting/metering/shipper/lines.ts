// Lines of an access log: what of them is sent.
import { z } from 'zod';
import type { Attributes } from '../otlp/messages.ts';
import { attributeNames, withoutQuery } from '../records/record.ts';

const newline = 0x0a;
const line = z.record(z.string(), z.unknown());

export interface Chunk {
  /** Records of the whole lines. */
  readonly records: Attributes[];
  /** Lines that are none. */
  readonly unreadable: number;
  /** Bytes of the whole lines. */
  readonly bytes: number;
}

/** Reads the first whole lines, at most so many. */
export function readLines(bytes: Buffer, limit: number): Chunk {
  const records: Attributes[] = [];
  let [from, unreadable] = [0, 0];
  for (let lines = 0; lines < limit; lines += 1) {
    const end = bytes.indexOf(newline, from);
    if (end === -1) break;
    const record = recordOf(bytes.toString('utf8', from, end));
    if (record === undefined) unreadable += 1;
    else records.push(record);
    from = end + 1;
  }
  return { records, unreadable, bytes: from };
}

/** Only what the receiver reads: addresses of backends, ports and ciphers stay here, and so does a query, which may hold keys. */
function recordOf(text: string): Attributes | undefined {
  const given = parsed(text);
  if (given === undefined) return undefined;
  return Object.fromEntries(
    attributeNames.flatMap((name): [string, string | number][] => {
      const value = given[name];
      if (typeof value === 'string') return [[name, name === 'RequestPath' ? withoutQuery(value) : value]];
      return typeof value === 'number' ? [[name, value]] : [];
    }),
  );
}

function parsed(text: string): z.output<typeof line> | undefined {
  try {
    return line.safeParse(JSON.parse(text)).data;
  } catch {
    return undefined;
  }
}
