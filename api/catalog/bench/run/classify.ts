// Why a run did not pass: what /v1 noted of its model calls comes first, since apps show failures of models as they like.
import type { Grade } from '../grade/grade.ts';
import type { ErrorClass } from '../store/shapes.ts';
import type { AppFailure, AppReply } from './ask-app.ts';

export interface Classification {
  readonly passed: boolean;
  readonly score: number;
  readonly error: ErrorClass | undefined;
  readonly detail: string | undefined;
}

/** Classes by how the last model call ended, as api/models/v1 notes it. */
const ofCall: Readonly<Record<string, ErrorClass>> = {
  unreachable: 'outage',
  busy: 'outage',
  credit: 'outage',
  key: 'outage',
  model: 'outage',
  broken: 'outage',
  interrupted: 'outage',
  unsent: 'outage',
  limit: 'limit',
  request: 'refused',
  malformed: 'malformed',
  timeout: 'timeout',
  cancelled: 'timeout',
};

/** What statuses of a gateway mean as long as the app has called no model: it did not wake up or was not there. */
const asleep: ReadonlySet<number> = new Set([502, 503, 504]);

/** `calls`: how the model calls of the run ended, the first one first; null for one in progress. */
export function classify(reply: AppReply, grade: Grade | undefined, calls: readonly (string | null)[]): Classification {
  if (grade !== undefined && grade.error === undefined)
    return { passed: true, score: 1, error: undefined, detail: undefined };
  const called = ofLastCall(calls);
  if (called !== undefined) return failed(called.error, `the last model call ended with: ${called.outcome}`);
  if (reply.failure !== undefined) return failed(ofReply(reply.failure, calls.length), reply.failure.detail);
  return notPassed(grade);
}

function ofLastCall(calls: readonly (string | null)[]): { outcome: string; error: ErrorClass } | undefined {
  const outcome = calls.at(-1) ?? '';
  const error = Object.hasOwn(ofCall, outcome) ? ofCall[outcome] : undefined;
  return error === undefined ? undefined : { outcome, error };
}

/** An answer that did not pass. */
function notPassed({ score, error = 'grader', detail }: Grade = { score: 0 }): Classification {
  return { passed: false, score, error, detail: detail?.slice(0, 500) };
}

function ofReply(failure: AppFailure, calls: number): ErrorClass {
  switch (failure.kind) {
    case 'timeout':
      return 'timeout';
    case 'unreadable':
      return 'malformed';
    case 'unreachable':
      return calls === 0 ? 'wake' : 'app-5xx';
    case 'status':
      return ofStatus(failure.status, calls);
  }
}

function ofStatus(status: number, calls: number): ErrorClass {
  if (status === 429) return 'limit';
  if (status < 500) return 'refused';
  return calls === 0 && asleep.has(status) ? 'wake' : 'app-5xx';
}

function failed(error: ErrorClass, detail: string): Classification {
  return { passed: false, score: 0, error, detail: detail.slice(0, 500) };
}
