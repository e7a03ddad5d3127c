// The walks through this repository that `npm run show:walks` measures: one request each, and how to make it.
import { accountingWalks } from './accounting-walk.ts';
import { apiWalks } from './api-walks.ts';
import type { MeasureOptions } from './entered.ts';

/** What is running, so that the walk can be taken. */
export interface StartedWalk {
  /** Takes the walk once. Warms up with the first call; the next one is measured. @throws Error when it does not succeed */
  take(): Promise<void>;
  stop(): Promise<void>;
}

export interface Walk extends MeasureOptions {
  readonly name: string;
  /** From where to where. */
  readonly title: string;
  /** The number of source files that it should not exceed. */
  readonly target: number;
  start(): Promise<StartedWalk>;
}

export const walks: readonly Walk[] = [...apiWalks, ...accountingWalks];
