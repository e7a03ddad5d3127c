// Model calls in flight with the platform's key: calls that may not be made yet wait for their turn, in order, for a while. The ledger
// decides for all replicas; this is the queue of one process.
import { setTimeout as sleep } from 'node:timers/promises';
import { Problem } from '../../lib/problem.ts';
import type { FlightLimits } from './ledger/ledger.ts';
import { isFlightReason, isStopReason, type ReserveAnswer } from './ledger/shapes.ts';
import type { Usage } from './ledger/usage.ts';
import { callsInFlight, callsStopped } from './problems.ts';

/** Calls of one caller that may wait in this process. */
const maxWaiting = 256;
/** The end of another replica's call is not reported here, so the ledger is asked again after this time. */
const lookMs = 500;

export interface CallsInFlightOptions {
  readonly limits: FlightLimits;
  /** Longest wait of a call; default 20 s. */
  readonly waitMs?: number;
}

interface Line {
  readonly queue: (() => void)[];
  taken: number;
}

export class CallsInFlight {
  readonly limits: FlightLimits;
  readonly #waitMs: number;
  /** By caller; only callers with a call in progress. */
  readonly #lines = new Map<string, Line>();
  /** Those that the ledger has asked to wait. */
  #ended = Promise.withResolvers<undefined>();

  constructor({ limits, waitMs = 20_000 }: CallsInFlightOptions) {
    this.limits = limits;
    this.#waitMs = waitMs;
  }

  /**
   * Waits for the turn of a call, then reserves. @returns what was reserved, and a function to call when the call has ended.
   * @throws Problem (calls-in-flight) after a while, and what `reserve` throws
   */
  async begin<Reserved>(
    owner: string,
    signal: AbortSignal,
    reserve: () => Promise<Reserved>,
  ): Promise<{ reserved: Reserved; end: () => void }> {
    const until = performance.now() + this.#waitMs;
    const leave = await this.#enter(owner, AbortSignal.any([signal, AbortSignal.timeout(this.#waitMs)]));
    try {
      return { reserved: await this.#reserve(reserve, until, signal), end: leave };
    } catch (error) {
      leave();
      throw error;
    }
  }

  async #reserve<Reserved>(reserve: () => Promise<Reserved>, until: number, signal: AbortSignal): Promise<Reserved> {
    for (;;) {
      const { promise: ended } = this.#ended;
      try {
        return await reserve();
      } catch (error) {
        const isFull = error instanceof Problem && error.type === callsInFlight;
        if (!isFull || signal.aborted || performance.now() >= until) throw error;
      }
      await Promise.race([ended, sleep(lookMs, undefined, { ref: false })]);
      // Calls that end together let others begin together.
      await sleep(10);
    }
  }

  /** Takes one of the calls that a caller may have in this process. */
  async #enter(owner: string, signal: AbortSignal): Promise<() => void> {
    const line = this.#lines.get(owner) ?? { queue: [], taken: 0 };
    this.#lines.set(owner, line);
    if (line.taken < this.limits.caller) line.taken += 1;
    else if (line.queue.length >= maxWaiting) throw createInFlightProblem('in_flight_caller');
    else await waitInQueue(line.queue, signal);
    let isTaken = true;
    return () => {
      if (!isTaken) return;
      isTaken = false;
      this.#leave(owner, line);
    };
  }

  #leave(owner: string, line: Line): void {
    // The turn is handed on, so that no other call comes in between.
    const next = line.queue.shift();
    if (next !== undefined) next();
    else if ((line.taken -= 1) === 0) this.#lines.delete(owner);
    this.#ended.resolve(undefined);
    this.#ended = Promise.withResolvers();
  }
}

async function waitInQueue(queue: (() => void)[], signal: AbortSignal): Promise<void> {
  const turn = Promise.withResolvers<undefined>();
  const take = (): void => {
    turn.resolve(undefined);
  };
  const give = (): void => {
    const at = queue.indexOf(take);
    if (at === -1) return;
    queue.splice(at, 1);
    turn.reject(createInFlightProblem('in_flight_caller'));
  };
  queue.push(take);
  signal.addEventListener('abort', give, { once: true });
  try {
    await turn.promise;
  } finally {
    signal.removeEventListener('abort', give);
  }
}

/** The refusal of a call that is stopped, or has to wait; undefined for any other one. */
export function toFlightProblem(
  { refused_by: reason, day_ends_at: until }: ReserveAnswer,
  usage: Pick<Usage, 'model'> | undefined,
  now: number,
): Problem | undefined {
  if (isFlightReason(reason)) return createInFlightProblem(reason);
  if (!isStopReason(reason)) return undefined;
  const isCaller = reason === 'stopped_caller';
  const model = usage?.model ?? 'This model';
  return new Problem(
    callsStopped,
    `${isCaller ? 'One of your calls' : `A call of ${model}`} cost more than was reserved for it, so ${isCaller ? 'your calls on the free quota are' : 'this model is'} stopped until ${until.toISOString().slice(11, 16)} UTC. To continue now, ${isCaller ? '' : 'choose another model, or '}send your own API key for the model router: Authorization: Bearer sk-…`,
    {
      headers: { 'retry-after': String(Math.max(1, Math.ceil((until.getTime() - now) / 1000))) },
      members: { stopped: isCaller ? 'caller' : 'model', until: until.toISOString() },
    },
  );
}

function createInFlightProblem(reason: 'in_flight_caller' | 'in_flight_all' | 'in_flight_model'): Problem {
  const whose = {
    in_flight_caller: 'You have too many model calls in progress on the key of this installation.',
    in_flight_all: 'This installation has too many model calls in progress.',
    in_flight_model: 'The first call of this model on this day is in progress, and others wait for it.',
  }[reason];
  return new Problem(callsInFlight, `${whose} Try again in 2 seconds.`, {
    headers: { 'retry-after': '2' },
    members: { scope: reason === 'in_flight_caller' ? 'caller' : 'everyone' },
  });
}
