// How much of the history of a task is sent, as its reader asks for it.
import type { Task } from '@a2a-js/sdk';
import { RequestMalformedError } from '@a2a-js/sdk/errors';

interface HistoryWish {
  readonly historyLength?: number | undefined;
}

/** @throws RequestMalformedError */
export function checkHistoryLength(wish: HistoryWish | undefined): void {
  if ((wish?.historyLength ?? 0) < 0) throw new RequestMalformedError('historyLength must be 0 or more.');
}

/** A history has one message at most: the call. @throws RequestMalformedError */
export function withHistory(task: Task, wish: HistoryWish | undefined): Task {
  checkHistoryLength(wish);
  return wish?.historyLength === 0 ? { ...task, history: [] } : task;
}
