// Asks an app what it can do: its MCP endpoint, and where none answers its OpenAPI document.
import { z } from 'zod';
import { Problem } from '../../../lib/problem.ts';
import type { Workers } from '../../tools/engine/workers/workers.ts';
import { readWhole, type Whole } from '../calls/response.ts';
import { appPath, type Courier } from '../calls/app-client.ts';
import type { Described, Target } from '../directory.ts';
import { listMcpTools } from './app-mcp.ts';
import { learnt, type Learnt } from './operation.ts';
import type { Told } from './worker.ts';

const module = new URL('worker.ts', import.meta.url);
const read = learnt.extend({ fault: z.string().optional() });
/** Bytes of what an app says of itself. */
const mostBytes = 2 * 1_048_576;
/** An app that does not speak MCP may let the question hang; what it says over HTTP is then still to be asked. */
const mcpLimitMs = 5_000;

export interface LearnOptions {
  readonly courier: Courier;
  readonly workers: Workers;
}

export type Learn = (target: Target, described: Described, signal: AbortSignal) => Promise<Learnt>;

/** Thrown when an app says nothing of itself that can be read; the message says why, for its author. */
export class Unlearnt extends Error {
  override readonly name = 'Unlearnt';
}

/** @returns what asks an app. It throws Unlearnt. */
export function learner({ courier, workers }: LearnOptions): Learn {
  return async (target, described, signal) => {
    const { slug } = target;
    const tools = await listMcpTools({
      courier,
      target,
      path: described.mcp,
      id: 'operations',
      signal,
      mostBytes,
      limitMs: mcpLimitMs,
    }).catch(() => undefined);
    if (Array.isArray(tools) && tools.length > 0) return understood({ kind: 'mcp', slug, tools }, signal);
    const none = `no MCP endpoint answers at ${described.mcp}, and`;
    const { status, bytes } = await openApiOf(target, described, signal).catch((error: unknown) => {
      throw new Unlearnt(
        `${none} ${described.openapi} was not answered: ${error instanceof Error ? error.message : 'it failed'}`,
      );
    });
    if (status !== 200) throw new Unlearnt(`${none} ${described.openapi} answers with status ${status}`);
    return understood(
      { kind: 'openapi', slug, text: new TextDecoder().decode(bytes) },
      signal,
      `${none} of ${described.openapi}:`,
    );
  };

  async function openApiOf(target: Target, { openapi }: Described, signal: AbortSignal): Promise<Whole> {
    const brought = await courier.carry(target, {
      method: 'GET',
      path: appPath(openapi) ?? '/openapi.json',
      headers: { accept: 'application/json, application/yaml;q=0.8, */*;q=0.5' },
      id: 'operations',
      signal,
    });
    return readWhole(target, brought);
  }

  async function understood(told: Told, signal: AbortSignal, where = ''): Promise<Learnt> {
    const { fault, ...found } = read.parse(
      await workers.run({ module, input: told, timeoutMs: 5_000, memoryMb: 128, signal }).catch((error: unknown) => {
        if (error instanceof Problem)
          throw new Unlearnt(`what it says of itself cannot be read: ${error.message}`, { cause: error });
        throw error;
      }),
    );
    if (fault !== undefined) throw new Unlearnt(`${where} ${fault}`.trim());
    return found;
  }
}
