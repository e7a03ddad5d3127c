// Grades an answer: a score from 0 to 1, and the reason when it fails.
import { Ajv2020 } from 'ajv/dist/2020.js';
import { RE2JS } from 're2js';
import { z } from 'zod';
import { runCodeModule, type Workers } from '../../tools/index.ts';
import type { Grader } from './tasks/task.ts';
import { parseJson, type Values } from './tasks/template.ts';

/** Characters of an answer that are graded; the rest is ignored. */
export const maxAnswer = 100_000;

export interface Grade {
  /** 0 to 1; passed is 1. */
  readonly score: number;
  /** Why it did not pass. `malformed`: not of the form that was asked for. `grader`: the grader failed, not the answer. */
  readonly error?: 'wrong' | 'malformed' | 'grader';
  readonly detail?: string;
}

/** Runs code of a task in a sandbox, with `input` for it. @returns the value of its last expression. @throws Error */
export type RunScript = (code: string, input: unknown) => Promise<unknown>;

export interface AnswerToGrade {
  readonly answer: string;
  readonly grader: Grader;
  readonly values: Values;
}

const passedGrade: Grade = { score: 1 };
const createWrongGrade = (detail: string): Grade => ({ score: 0, error: 'wrong', detail });

/** Never throws: a grader that fails gives the error `grader`. */
export async function grade({ answer, grader, values }: AnswerToGrade, runScript: RunScript): Promise<Grade> {
  const text = answer.slice(0, maxAnswer);
  try {
    return grader.kind === 'script'
      ? await gradeByScript(grader.code, { answer: text, values }, runScript)
      : gradeByRule(text, grader);
  } catch (error) {
    return { score: 0, error: 'grader', detail: error instanceof Error ? error.message : String(error) };
  }
}

function gradeByRule(text: string, grader: Exclude<Grader, { kind: 'script' }>): Grade {
  switch (grader.kind) {
    case 'contains':
      return gradeContains(text, grader.values, grader.ignore_case);
    case 'regex':
      return RE2JS.compile(grader.pattern, RE2JS.DOTALL | (grader.ignore_case ? RE2JS.CASE_INSENSITIVE : 0)).matches(
        text.trim(),
      )
        ? passedGrade
        : createWrongGrade('the answer does not match the pattern');
    case 'json_schema':
      return gradeSchema(text, grader.schema);
    case 'number':
      return gradeNumber(text, Number(grader.value), grader.tolerance);
  }
}

function gradeContains(text: string, values: readonly string[], ignoreCase: boolean): Grade {
  const toComparable = (part: string): string => (ignoreCase ? part.toLowerCase() : part);
  const missing = values.filter((value) => !toComparable(text).includes(toComparable(value)));
  return missing.length === 0
    ? passedGrade
    : {
        ...createWrongGrade(`${missing.length} of ${values.length} texts are missing`),
        score: 1 - missing.length / values.length,
      };
}

function gradeSchema(text: string, schema: Record<string, unknown>): Grade {
  const data = parseJson(stripCodeFence(text));
  if (data === undefined) return { score: 0, error: 'malformed', detail: 'the answer is not JSON' };
  const ajv = new Ajv2020({ strict: false });
  const check = ajv.compile(schema);
  return check(data)
    ? passedGrade
    : createWrongGrade(`the JSON is not the one asked for: ${ajv.errorsText(check.errors)}`.slice(0, 300));
}

/** Models put JSON into a code fence, and people read it as JSON all the same. */
function stripCodeFence(text: string): string {
  const trimmed = text.trim();
  const open = /^```[a-z]{0,10}\r?\n/.exec(trimmed);
  return open !== null && trimmed.endsWith('```') ? trimmed.slice(open[0].length, -3) : trimmed;
}

function gradeNumber(text: string, expected: number, tolerance: number): Grade {
  if (!Number.isFinite(expected)) throw new Error('the task compares with something that is not a number');
  // Marks between thousands are not part of a number.
  const last = text
    .replaceAll(/(?<=\d),(?=\d{3})/g, '')
    .match(/-?\d{1,30}(?:\.\d{1,30})?/g)
    ?.at(-1);
  if (last === undefined) return { score: 0, error: 'malformed', detail: 'the answer has no number' };
  return Math.abs(Number(last) - expected) <= tolerance
    ? passedGrade
    : createWrongGrade('the last number of the answer is another one');
}

async function gradeByScript(
  code: string,
  input: { answer: string; values: Values },
  runScript: RunScript,
): Promise<Grade> {
  const value = await runScript(code, input);
  const score = typeof value === 'boolean' ? Number(value) : value;
  if (typeof score !== 'number' || !(score >= 0 && score <= 1))
    throw new Error('the script of the task gave neither true, false nor a score from 0 to 1');
  return score === 1 ? passedGrade : { ...createWrongGrade('the script of the task says no'), score };
}

const outcome = z.looseObject({
  ok: z.boolean(),
  value: z.unknown(),
  error: z.looseObject({ name: z.string(), message: z.string() }).nullable(),
});

export function createScriptRunner(workers: Workers): RunScript {
  return async (code, input) => {
    const task = { module: runCodeModule, input: { code, input }, timeoutMs: 8_000, memoryMb: 192 };
    const { ok, value, error } = outcome.parse(await workers.run(task, { owner: 'benchmarks' }));
    if (!ok) throw new Error(`the script of the task failed: ${error?.name ?? 'Error'}: ${error?.message ?? ''}`);
    return value;
  };
}
