// The walks through this repository that `npm run show:walks` measures: one request each, and how to make it.
import { accountingWalks } from './accounting-walk.ts';
import { apiWalks } from './api-walks.ts';
import type { EnteredFiles, MeasureOptions } from './entered.ts';
import { hostingWalks } from './hosting-walk.ts';

/** What is running, so that the walk can be taken. */
export interface StartedWalk {
  /** Takes the walk once. Warms up with the first call; the next one is measured. @throws Error when it does not succeed */
  take(): Promise<void>;
  stop(): Promise<void>;
}

/** A walk through this process, or through programs that it starts and measures itself. */
export type Walk = WalkHere | WalkElsewhere;

interface WalkView {
  readonly name: string;
  /** From where to where. */
  readonly title: string;
  /** The number of source files that it should not exceed. */
  readonly target: number;
}

export interface WalkHere extends WalkView, MeasureOptions {
  start(): Promise<StartedWalk>;
}

export interface WalkElsewhere extends WalkView {
  measure(): Promise<EnteredFiles>;
}

export const walks: readonly Walk[] = [...apiWalks, ...accountingWalks, ...hostingWalks];
