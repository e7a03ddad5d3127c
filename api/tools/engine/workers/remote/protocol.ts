// How the API hands a task to a workers' pod: POST /run with the task's limits in the query and `Expect: 100-continue`.
// The pod answers 100 when a worker is free, so that what waits is not sent yet; then the input goes, and a reply comes.
import { relative } from 'node:path';
import type { Readable } from 'node:stream';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { deserialize, serialize } from 'node:v8';
import { z } from 'zod';
import { Problem } from '../../../../../lib/problem.ts';
import { toolLimit } from '../../../problems.ts';
import { programFolder } from '../worker-process.ts';
import { usualMb, usualMs, type WorkerTask } from '../workers.ts';

const mb = 1_048_576;
/** Of an input and of a reply: both processes hold it in memory. */
export const maxMessageMb = 64;

/** What a task is, without its input. */
export const taskHead = z.object({
  /** Path of its module below the program's folder, which is the same one in both pods. */
  module: z.string(),
  owner: z.string(),
  timeoutMs: z.number().positive().max(600_000),
  memoryMb: z.int().positive().max(8_192),
  quickStart: z.boolean(),
  // An API of an earlier version does not send these.
  startsProgram: z.boolean().default(false),
  warm: z.boolean().default(false),
});
export type TaskHead = z.output<typeof taskHead>;

export function headOf(
  {
    module,
    timeoutMs = usualMs,
    memoryMb = usualMb,
    quickStart = false,
    startsProgram = false,
    warm = false,
  }: WorkerTask,
  owner: string,
): TaskHead {
  const path = relative(programFolder, fileURLToPath(module));
  return { module: path, owner, timeoutMs, memoryMb, quickStart, startsProgram, warm };
}

export function pathOf(head: TaskHead): string {
  return `/run?task=${encodeURIComponent(JSON.stringify(head))}`;
}

/** @returns undefined for what is no task */
export function headIn(path: string): TaskHead | undefined {
  const { pathname, searchParams } = new URL(path, 'http://workers');
  try {
    const read = taskHead.safeParse(JSON.parse(searchParams.get('task') ?? ''));
    return pathname === '/run' && read.success ? read.data : undefined;
  } catch {
    return undefined;
  }
}

/** @returns undefined for a module outside of that folder */
export function moduleIn(folder: URL, { module }: TaskHead): URL | undefined {
  const url = new URL(module, `${pathToFileURL(programFolder).href}/`);
  return url.href.startsWith(folder.href) && url.href.endsWith('.ts') ? url : undefined;
}

/**
 * A value as bytes, as processes of Node exchange it. @throws Problem (tool-limit) when it is too large, RangeError when
 * it is nested too deeply
 */
export function bytesOf(value: unknown, what: 'input' | 'result'): Buffer {
  const bytes = serialize(value);
  if (bytes.length > maxMessageMb * mb) throw tooLarge(what);
  return bytes;
}

/** The value that a stream carries. @throws Problem (tool-limit) when it is too large, Error when it ends early */
export async function valueIn(stream: Readable, what: 'input' | 'result'): Promise<unknown> {
  const chunks: Buffer[] = [];
  let length = 0;
  for await (const chunk of stream) {
    chunks.push(chunk as Buffer);
    length += (chunk as Buffer).length;
    if (length > maxMessageMb * mb) throw tooLarge(what);
  }
  return deserialize(Buffer.concat(chunks, length)) as unknown;
}

function tooLarge(what: string): Problem {
  return new Problem(toolLimit, `The ${what} of the call is larger than ${maxMessageMb} MB.`, {
    members: { limit: 'size', limit_mb: maxMessageMb },
  });
}
