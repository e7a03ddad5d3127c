// Calls a tool as the runner does: input by its fields and aliases, output checked, and an artifact to look at.
import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import { readPart } from '../../../api/http/index.ts';
import { createWorkers } from '../../../api/tools/engine/workers/pool.ts';
import { defaultTimeoutMs, type Workers } from '../../../api/tools/engine/workers/workers.ts';
import type { ToolDependencies, Artifact, Tool, ToolContext } from '../../../api/tools/tool.ts';
import { Problem } from '../../../lib/problem.ts';
import { silent } from '../api/sample.ts';

/** Services of which only these are there; the others fail when they are used. */
export function createServices(some: Partial<ToolDependencies>): ToolDependencies {
  const absent = new Proxy(
    {},
    {
      get: (_, name) => {
        throw new Error(`the test gives no ${String(name)}`);
      },
    },
  );
  return {
    baseUrl: 'https://moorage.test',
    urls: {},
    speechModel: 'whisper-test',
    apps: () => [],
    maxTokens: { default: 1_000, max: 8_000 },
    fetcher: absent as ToolDependencies['fetcher'],
    artifacts: absent as ToolDependencies['artifacts'],
    workers: absent as ToolDependencies['workers'],
    catalog: absent as ToolDependencies['catalog'],
    database: () => {
      throw new Error('the test gives no database');
    },
    ...some,
  };
}

export function createContext(some: Partial<ToolContext> = {}): ToolContext {
  const absent = new Proxy(
    {},
    {
      get: () => {
        throw new Error('the test gives no models');
      },
    },
  );
  return {
    id: 'test',
    session: undefined,
    owner: 'someone',
    keyed: false,
    signal: new AbortController().signal,
    log: silent,
    waiting: (wait) => wait,
    models: absent as ToolContext['models'],
    report: () => undefined,
    ...some,
  };
}

/**
 * Workers that give each task less time than its tool asks for, which must be `fromMs` if given: for tasks that use up
 * their time.
 */
export function shortenTasks(
  workers: Workers,
  { fromMs, toMs }: { readonly fromMs?: number; readonly toMs: number },
): Workers {
  return {
    run(task, call) {
      if (fromMs !== undefined) assert.equal(task.timeoutMs, fromMs);
      return workers.run({ ...task, timeoutMs: Math.min(task.timeoutMs ?? toMs, toMs) }, call);
    },
    close: () => workers.close(),
  };
}

/** Workers for tests of what a tool finds, not of how long it takes: on a busy machine, each task has ten times as long. */
export function createPatientWorkers(): Workers {
  return extendTasks(createWorkers(patience));
}

/** For workers of tests: a busy machine starts a process late, which says nothing of the tool. */
export const patience = { startMs: 300_000, maxWaitMs: 300_000 };

/** Workers that give each task ten times as long. */
export function extendTasks(workers: Workers): Workers {
  return {
    run: (task, call) => workers.run({ ...task, timeoutMs: 10 * (task.timeoutMs ?? defaultTimeoutMs) }, call),
    close: () => workers.close(),
  };
}

/** How a machine that is too busy for a worker is reported: it says nothing about the tool. */
const isStarved = (error: unknown): boolean =>
  error instanceof Problem &&
  error.type.slug === 'tool-busy' &&
  /too little processor time|did not start within/.test(error.message);

/** Runs it again, as the answer asks, while the machine is too busy: for eight minutes at most. */
export async function retryWhileBusy<T>(run: () => Promise<T>): Promise<T> {
  const end = Date.now() + 480_000;
  for (;;) {
    try {
      return await run();
    } catch (error) {
      if (!isStarved(error) || Date.now() > end) throw error;
      await sleep(5_000);
    }
  }
}

export async function call(
  tool: Tool,
  input: Record<string, unknown>,
  context: Partial<ToolContext> = {},
): Promise<{ result: Record<string, unknown>; artifact: Artifact | undefined }> {
  const given = Object.fromEntries(Object.entries(input).map(([name, value]) => [tool.aliases[name] ?? name, value]));
  const answer = await retryWhileBusy(async () =>
    tool.run(readPart('query', tool.input, given), createContext(context)),
  );
  return { result: tool.output.parse(answer.result), artifact: answer.artifact };
}

/** A check that what was thrown is this problem, saying this. */
export function isProblem(slug: string, words: RegExp): (error: unknown) => boolean {
  return (error) => {
    assert.ok(error instanceof Problem, String(error));
    assert.equal(error.type.slug, slug, error.message);
    assert.match(error.message, words);
    return true;
  };
}
