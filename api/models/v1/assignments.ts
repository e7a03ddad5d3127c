// The model that a benchmark run has assigned to an app: for the time of the run it answers instead of the one that the
// app asks for, and its calls are noted, so that the ledger's sum over them is the cost of the run.
import { z } from 'zod';
import { Problem } from '../../../lib/problem.ts';
import { type Database, quotaExhausted, type Statement } from '../../billing/index.ts';
import type { ModelCallResult } from '../metered-router.ts';

/** Noted in the statement that finds the assignment: before money is reserved, so that no call of a run is missed. */
const begin: Statement<{ model: string }> = {
  name: 'v1-begin-assigned',
  text: `with assigned as (
      select run, model from bench.assignment where app = $1 and marker = any ($2) and until > clock_timestamp() order by marker desc limit 1
    ), noted as (insert into bench.call (hold, run) select $3, run from assigned)
    select model from assigned`,
  row: z.object({ model: z.string() }),
};
const end: Statement<unknown> = {
  name: 'v1-end-assigned',
  text: 'update bench.call set outcome = $2 where hold = $1',
  row: z.unknown(),
};

/** The call of an app, as far as it can belong to a benchmark run. */
export interface AssignableCall {
  readonly app: string;
  /** Id of its hold. */
  readonly hold: string;
  /** Request fields that carry an app's run marker. */
  readonly fields: readonly unknown[];
}

/** What a call is assigned to. */
export interface Assignment {
  readonly model: string;
  /** Notes how the call ended. */
  end(outcome: string): Promise<void>;
}

export class Assignments {
  readonly #database: Database;

  constructor(database: Database) {
    this.#database = database;
  }

  /**
   * Undefined for every call that belongs to no run. @throws Problem (ledger-unavailable): answering without knowing would
   * charge a run for another model, or a visitor's call to a run
   */
  async begin({ app, hold, fields }: AssignableCall): Promise<Assignment | undefined> {
    const markers = fields.filter((field): field is string => typeof field === 'string' && marker.test(field));
    const [found] = await this.#database.query(begin, [app, ['', ...markers], hold]);
    if (found === undefined) return undefined;
    return {
      model: found.model,
      end: async (outcome) => {
        await this.#database.replay(end, [hold, outcome]);
      },
    };
  }
}

const marker = /^bench-[0-9a-f-]{36}$/;

/** Makes a call, and notes how it ended before its caller can know. */
export async function noteOutcome(
  assignment: Assignment | undefined,
  call: () => Promise<ModelCallResult>,
): Promise<ModelCallResult> {
  try {
    const result = await call();
    await assignment?.end(formatOutcome(result));
    return result;
  } catch (error) {
    await assignment?.end(formatRefusal(error));
    throw error;
  }
}

/** `answered`, or how it failed. */
export function formatOutcome({ failure }: ModelCallResult): string {
  return failure === undefined ? 'answered' : failure.kind;
}

/** What is thrown was never sent to a model: a limit of ours, or a fault of ours. */
export function formatRefusal(error: unknown): string {
  return error instanceof Problem && error.type === quotaExhausted ? 'limit' : 'unsent';
}
