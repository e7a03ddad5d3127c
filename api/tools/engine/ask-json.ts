// Asks a model for JSON of a given schema, and once more with the faults of its first answer.
import type { z } from 'zod';
import { Problem } from '../../../lib/problem.ts';
import { toolFailed } from '../problems.ts';
import type { Prompt, Reply } from './spender.ts';

export interface JsonQuestion<Answer> extends Prompt {
  readonly schema: z.ZodType<Answer>;
}

/** @throws Problem (tool-failed) when the second answer is wrong too, and what `ask` throws */
export async function askJson<Answer>(
  ask: (prompt: Prompt) => Promise<Reply>,
  { schema, ...question }: JsonQuestion<Answer>,
): Promise<{ readonly value: Answer; readonly model: string }> {
  const first = await ask(question);
  const read = readJson(schema, first.text);
  if (read.faults === undefined) return { value: read.value, model: first.model };
  const again = await ask({
    ...question,
    prompt: `${question.prompt}\n\nYou answered this before:\n${first.text.slice(0, 8_000)}\n\nIt is not what was asked for: ${read.faults}. Answer again, with the whole JSON and nothing else.`,
  });
  const repaired = readJson(schema, again.text);
  if (repaired.faults === undefined) return { value: repaired.value, model: again.model };
  throw new Problem(
    toolFailed,
    `The model ${again.model} did not answer in the required format (${repaired.faults}). Try again, or use another model.`,
    { members: { model: again.model } },
  );
}

type JsonReading<Answer> = { readonly value: Answer; readonly faults?: undefined } | { readonly faults: string };

/** Models put words and fences around JSON, however they are asked. */
function readJson<Answer>(schema: z.ZodType<Answer>, text: string): JsonReading<Answer> {
  const json = text.slice(text.indexOf('{'), text.lastIndexOf('}') + 1);
  if (json === '') return { faults: 'there is no JSON object in it' };
  let parsed: unknown;
  try {
    parsed = JSON.parse(json);
  } catch (error) {
    return { faults: `it is not JSON: ${error instanceof Error ? error.message : 'malformed'}` };
  }
  const read = schema.safeParse(parsed);
  if (read.success) return { value: read.data };
  return {
    faults: read.error.issues
      .slice(0, 5)
      .map(({ path, message }) => `${path.join('.')}: ${message}`)
      .join('; '),
  };
}
