// Loads the benchmarks in manifests/bench, and creates the instances of their tasks.
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'yaml';
import { z } from 'zod';
import { generatorNames, generators, createRandom } from './generators.ts';
import { toCanonicalJson, render, renderText, hashSha256, type Values } from './template.ts';

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
  const { sets, transport, ...benchmark } = readFile(file, benchmarkFile);
  const tasks = [...sets.map((set) => join(folder, 'sets', set)), join(folder, app)].flatMap((from) =>
    loadTasks(from, transport),
  );
  if (tasks.length === 0) throw new Error(`${file} has no tasks: name a set, or add task files to its folder`);
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
      const { steps = transport, ...fields } = readFile(file, taskFile);
      const task = { ...fields, steps, hash: hashSha256(toCanonicalJson({ ...fields, steps })) };
      checkTask(file, task);
      return task;
    });
}

function checkTask(file: string, task: Task): void {
  if (!task.steps.some(({ capture }) => Object.hasOwn(capture, 'answer')))
    throw new Error(`${file} is not valid: no step captures "answer"`);
  try {
    createInstanceFromSeed(task, task.hash, 'check');
  } catch (error) {
    throw new Error(`${file} is not valid: ${error instanceof Error ? error.message : String(error)}`, {
      cause: error,
    });
  }
}

function readFile<Schema extends z.ZodType>(file: string, schema: Schema): z.output<Schema> {
  const parsed = schema.safeParse(parse(readFileSync(file, 'utf8')));
  if (parsed.success) return parsed.data;
  const lines = parsed.error.issues.map((issue) => `  ${issue.path.join('.')}: ${issue.message}`);
  throw new Error(`${file} is not valid:\n${lines.join('\n')}`);
}

export interface Instance {
  readonly values: Values;
  readonly prompt: string;
  readonly grader: Grader;
  /** Names the instance without giving it away. */
  readonly hash: string;
}

/** Two seeds: the instances of one can be published, those of the other are held back. */
export interface Seeds {
  readonly seed: string;
  readonly heldBack: string;
}

/** Every second run has an instance that is held back. */
export function isHeldBack(number: number): boolean {
  return number % 2 === 0;
}

/** The same for every model, so that models are compared on the same instances. */
export function createInstance(task: Task, number: number, { seed, heldBack }: Seeds): Instance {
  return createInstanceFromSeed(task, task.hash, `${isHeldBack(number) ? heldBack : seed}/${task.slug}/${number}`);
}

/** @throws Error where the prompt or the grader names a value that the generator does not give */
export function createInstanceFromSeed(task: Omit<TaskFile, 'steps'>, taskHash: string, seed: string): Instance {
  const values = generators[task.generator](createRandom(seed));
  return {
    values,
    prompt: renderText(task.prompt, values),
    grader: fillGrader(task.grader, values),
    hash: hashSha256(toCanonicalJson({ task: taskHash, seed, values })),
  };
}

/** Code is never a template: values reach it as input. */
function fillGrader(grader: Grader, values: Values): Grader {
  return grader.kind === 'script' ? grader : (render(grader, values) as Grader);
}

const slug = z
  .string()
  .regex(/^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/, 'must consist of lower-case letters, digits and "-"');
const title = z.string().min(1).max(120);
/** The location of a value in a JSON answer. After "#", the pointer continues inside a string that is itself JSON. */
const pointer = z
  .string()
  .max(300)
  .regex(/^(\/[^/#]+)*(#(\/[^/#]+)*)?$/, 'must be a JSON Pointer such as /choices/0/message/content');
const name = z.string().regex(/^[a-z][a-z0-9_]{0,40}$/, 'must consist of lower-case letters, digits and "_"');

/** One HTTP request to the app; every string may name values as {{name}}. */
const step = z.strictObject({
  method: z.enum(['GET', 'POST', 'PUT']),
  path: z.string().regex(/^\/[^\s]{0,500}$/, 'must be a path that starts with /'),
  headers: z.record(z.string().max(100), z.string().max(500)).default({}),
  body: z.unknown().optional(),
  /** Values to take out of the JSON answer, for later steps; `answer` is what is graded. Of repeated ones, the last that is there. */
  capture: z.record(name, pointer).default({}),
  /** Sends it again until a member of the answer has this value. */
  repeat: z
    .strictObject({
      until: pointer,
      equals: z.unknown(),
      times: z.int().min(1).max(10_000),
      wait_ms: z.int().min(0).max(10_000),
    })
    .optional(),
});
export type Step = z.output<typeof step>;

const grader = z.discriminatedUnion('kind', [
  /** Each of these texts stands in the answer. */
  z.strictObject({
    kind: z.literal('contains'),
    values: z.array(z.string().min(1)).min(1),
    ignore_case: z.boolean().default(false),
  }),
  /** The answer, without space around it, matches the pattern (RE2) as a whole. */
  z.strictObject({
    kind: z.literal('regex'),
    pattern: z.string().min(1).max(2_000),
    ignore_case: z.boolean().default(false),
  }),
  /** The answer is JSON, perhaps in a code fence, and keeps the schema (draft 2020-12). */
  z.strictObject({ kind: z.literal('json_schema'), schema: z.record(z.string(), z.unknown()) }),
  /** The last number in the answer is this one, within a tolerance. */
  z.strictObject({
    kind: z.literal('number'),
    value: z.union([z.number(), z.string()]),
    tolerance: z.number().min(0).default(0),
  }),
  /** JavaScript in a sandbox: `input` has `answer` and `values`; its last expression is true, false or a score from 0 to 1. */
  z.strictObject({ kind: z.literal('script'), code: z.string().min(1).max(20_000) }),
]);
export type Grader = z.output<typeof grader>;

export const taskFile = z.strictObject({
  slug,
  title,
  title_zh: title,
  born: z.iso.date().describe('When the task was created: training data from before that cannot contain it.'),
  generator: z.enum(generatorNames),
  prompt: z.string().min(1).max(10_000),
  grader,
  /** Replaces the app's own transport. */
  steps: z.array(step).min(1).max(20).optional(),
});
export type TaskFile = z.output<typeof taskFile>;

export const benchmarkFile = z.strictObject({
  title,
  title_zh: title,
  /** Sets of tasks in manifests/bench/sets. */
  sets: z.array(slug).default([]),
  /**
   * marker: the app passes on the field `user` or `model` of a request, in which the marker of the run stands. app: it
   * passes on neither, and every call that it makes during a run counts, so nobody else may use it then.
   */
  attribution: z.enum(['marker', 'app']),
  timeout_seconds: z.int().min(1).max(900).default(120),
  /** What is sent with each prompt, kept with each run. */
  parameters: z.record(name, z.union([z.number(), z.string().max(200), z.boolean()])).default({}),
  transport: z.array(step).min(1).max(20),
});
export type BenchmarkFile = z.output<typeof benchmarkFile>;

/** A task of an app's benchmark. */
export interface Task extends Omit<TaskFile, 'steps'> {
  readonly steps: readonly Step[];
  /** Hash of all that the task is. */
  readonly hash: string;
}

/** What is measured at an app, and how it is asked. */
export interface BenchmarkManifest extends Omit<BenchmarkFile, 'sets'> {
  readonly app: string;
  readonly tasks: readonly Task[];
}
