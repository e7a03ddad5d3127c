// An instance of a task: its prompt and what the grader compares with, from a seed and the number of the run.
import { canonicalJson, sha256 } from './canonical.ts';
import { generators } from './generators/index.ts';
import { randomFrom } from './random.ts';
import type { Grader, Task, TaskFile } from './task.ts';
import { render, renderText, type Values } from './template.ts';

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
export function instanceOf(task: Task, number: number, { seed, heldBack }: Seeds): Instance {
  return instanceFrom(task, task.hash, `${isHeldBack(number) ? heldBack : seed}/${task.slug}/${number}`);
}

/** @throws Error where the prompt or the grader names a value that the generator does not give */
export function instanceFrom(task: Omit<TaskFile, 'steps'>, taskHash: string, seed: string): Instance {
  const values = generators[task.generator](randomFrom(seed));
  return {
    values,
    prompt: renderText(task.prompt, values),
    grader: gradedWith(task.grader, values),
    hash: sha256(canonicalJson({ task: taskHash, seed, values })),
  };
}

/** Code is never a template: values reach it as input. */
function gradedWith(grader: Grader, values: Values): Grader {
  return grader.kind === 'script' ? grader : (render(grader, values) as Grader);
}
