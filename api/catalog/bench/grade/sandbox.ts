// Runs the scripts of graders in the sandbox of the tool run_code: QuickJS in a worker process.
import { z } from 'zod';
import { runCodeModule, type Workers } from '../../../tools/index.ts';
import type { RunScript } from './grade.ts';

const outcome = z.looseObject({
  ok: z.boolean(),
  value: z.unknown(),
  error: z.looseObject({ name: z.string(), message: z.string() }).nullable(),
});

export function sandbox(workers: Workers): RunScript {
  return async (code, input) => {
    const task = { module: runCodeModule, input: { code, input }, timeoutMs: 8_000, memoryMb: 192 };
    const { ok, value, error } = outcome.parse(await workers.run(task, { owner: 'benchmarks' }));
    if (!ok) throw new Error(`the script of the task failed: ${error?.name ?? 'Error'}: ${error?.message ?? ''}`);
    return value;
  };
}
