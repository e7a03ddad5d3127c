// The protocol between the API and a workers' pod: POST /run with the task's limits in the query and `Expect: 100-continue`.
// The pod answers 100 when a worker is free, so that a waiting task has not sent its input yet; then input and reply follow.
import { relative } from 'node:path';
import type { Readable } from 'node:stream';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { deserialize, serialize } from 'node:v8';
import { z } from 'zod';
import { Problem } from '../../../../../lib/problem.ts';
import { toolLimit } from '../../../problems.ts';
import { programFolder } from '../worker-process.ts';
import { defaultMemoryMb, defaultTimeoutMs, type WorkerTask } from '../workers.ts';

const mb = 1_048_576;
/** Limit of an input and of a reply: both processes hold it in memory. */
export const maxMessageMb = 64;

/** A task without its input. */
export const taskHead = z.object({
  /** Path of the module relative to the root folder, which is the same in both images. */
  module: z.string(),
  owner: z.string(),
  timeoutMs: z.number().positive().max(600_000),
  memoryMb: z.int().positive().max(8_192),
  quickStart: z.boolean(),
  // Earlier versions of the API do not send these.
  startsProgram: z.boolean().default(false),
  warm: z.boolean().default(false),
});
export type TaskHead = z.output<typeof taskHead>;

export function toTaskHead(
  {
    module,
    timeoutMs = defaultTimeoutMs,
    memoryMb = defaultMemoryMb,
    quickStart = false,
    startsProgram = false,
    warm = false,
  }: WorkerTask,
  owner: string,
): TaskHead {
  const path = relative(programFolder, fileURLToPath(module));
  return { module: path, owner, timeoutMs, memoryMb, quickStart, startsProgram, warm };
}

export function formatTaskPath(head: TaskHead): string {
  return `/run?task=${encodeURIComponent(JSON.stringify(head))}`;
}

/** @returns undefined for anything but a task */
export function parseTaskPath(path: string): TaskHead | undefined {
  const { pathname, searchParams } = new URL(path, 'http://workers');
  try {
    const head = taskHead.safeParse(JSON.parse(searchParams.get('task') ?? ''));
    return pathname === '/run' && head.success ? head.data : undefined;
  } catch {
    return undefined;
  }
}

/** @returns undefined for a module outside `folder` */
export function resolveModule(folder: URL, { module }: TaskHead): URL | undefined {
  const url = new URL(module, `${pathToFileURL(programFolder).href}/`);
  return url.href.startsWith(folder.href) && url.href.endsWith('.ts') ? url : undefined;
}

/**
 * Serializes a value with Node's structured clone format. @throws Problem (tool-limit) if it is too large, RangeError if it
 * is nested too deeply
 */
export function serializeMessage(value: unknown, what: 'input' | 'result'): Buffer {
  const bytes = serialize(value);
  if (bytes.length > maxMessageMb * mb) throw createTooLargeProblem(what);
  return bytes;
}

/** Reads a value from a stream. @throws Problem (tool-limit) if it is too large, Error if the stream ends early */
export async function readMessage(stream: Readable, what: 'input' | 'result'): Promise<unknown> {
  const chunks: Buffer[] = [];
  let length = 0;
  for await (const chunk of stream) {
    chunks.push(chunk as Buffer);
    length += (chunk as Buffer).length;
    if (length > maxMessageMb * mb) throw createTooLargeProblem(what);
  }
  return deserialize(Buffer.concat(chunks, length)) as unknown;
}

function createTooLargeProblem(what: string): Problem {
  return new Problem(toolLimit, `The ${what} of the call is larger than ${maxMessageMb} MB.`, {
    members: { limit: 'size', limit_mb: maxMessageMb },
  });
}
