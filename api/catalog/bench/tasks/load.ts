// Reads the benchmarks in manifests/bench, and checks that each task can be asked and graded.
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'yaml';
import type { z } from 'zod';
import { canonicalJson, sha256 } from './canonical.ts';
import { instanceFrom } from './instance.ts';
import { benchmarkFile, type BenchmarkManifest, type Step, taskFile, type Task } from './task.ts';

export const benchFolder = join(import.meta.dirname, '..', '..', '..', '..', 'manifests', 'bench');
const manifest = 'benchmark.yaml';

/** All benchmarks, by the app's slug. @throws Error that names the file and each field that is wrong */
export function loadBenchmarks(folder: string = benchFolder): BenchmarkManifest[] {
  return readdirSync(folder, { withFileTypes: true })
    .filter((entry) => entry.isDirectory() && existsSync(join(folder, entry.name, manifest)))
    .map(({ name }) => loadBenchmark(folder, name))
    .sort((one, other) => (one.app < other.app ? -1 : 1));
}

function loadBenchmark(folder: string, app: string): BenchmarkManifest {
  const file = join(folder, app, manifest);
  const { sets, transport, ...benchmark } = read(file, benchmarkFile);
  const tasks = [...sets.map((set) => join(folder, 'sets', set)), join(folder, app)].flatMap((from) =>
    loadTasks(from, transport),
  );
  if (tasks.length === 0) throw new Error(`${file} has no tasks: name a set, or add task files beside it`);
  const twice = tasks.find(({ slug }, index) => tasks.findIndex((other) => other.slug === slug) !== index);
  if (twice !== undefined) throw new Error(`${file} is not valid: the task ${twice.slug} is there twice`);
  return { ...benchmark, app, transport, tasks };
}

function loadTasks(folder: string, transport: readonly Step[]): Task[] {
  return readdirSync(folder)
    .filter((name) => name.endsWith('.yaml') && name !== manifest)
    .sort()
    .map((name) => {
      const file = join(folder, name);
      const { steps = transport, ...fields } = read(file, taskFile);
      const task = { ...fields, steps, hash: sha256(canonicalJson({ ...fields, steps })) };
      checkTask(file, task);
      return task;
    });
}

function checkTask(file: string, task: Task): void {
  if (!task.steps.some(({ capture }) => Object.hasOwn(capture, 'answer')))
    throw new Error(`${file} is not valid: no step captures "answer"`);
  try {
    instanceFrom(task, task.hash, 'check');
  } catch (error) {
    throw new Error(`${file} is not valid: ${error instanceof Error ? error.message : String(error)}`, {
      cause: error,
    });
  }
}

function read<Schema extends z.ZodType>(file: string, schema: Schema): z.output<Schema> {
  const parsed = schema.safeParse(parse(readFileSync(file, 'utf8')));
  if (parsed.success) return parsed.data;
  const lines = parsed.error.issues.map((issue) => `  ${issue.path.join('.')}: ${issue.message}`);
  throw new Error(`${file} is not valid:\n${lines.join('\n')}`);
}
