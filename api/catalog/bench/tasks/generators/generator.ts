// What makes the instances of a task.
import type { Random } from '../random.ts';
import type { Values } from '../template.ts';

/** Gives the values that the prompt and the grader of a task name. */
export type Generator = (random: Random) => Values;
