// Lets one replica of several act at a time, by a Lease that the leader keeps renewing.
import type { Client } from '../client/client.ts';
import type { Clock } from '../clock.ts';
import { sleep, systemClock } from '../clock.ts';
import { LeadershipLostError, messageOf } from '../errors.ts';
import { LeaseRecord } from './lease.ts';
import type { Logger } from '../logger.ts';
import { silentLogger } from '../logger.ts';

/** Settings of an election. All replicas must use the same durations. */
export interface LeaderElectionOptions {
  client: Client;
  /** The Lease. */
  namespace: string;
  name: string;
  /** Unlike any other replica's; the pod's name with something random. */
  identity: string;
  /** How long others wait after the last renewal that they saw; default 10 000. */
  leaseDurationMs?: number;
  /** How long the leader goes on without a renewal; below `leaseDurationMs`; default 7 000. */
  renewDeadlineMs?: number;
  /** Between tries, before jitter; default 2 000. */
  retryPeriodMs?: number;
  /** Called when this replica starts to lead. Its signal is aborted when it ceases to. */
  onAcquired?: (signal: AbortSignal) => void;
  /**
   * Called when leadership is lost against our will: stop acting at once (best: exit). Not called after `signal` of
   * `run` is aborted.
   */
  onLost: (reason: string) => void;
  clock?: Clock;
  log?: Logger;
}

/** One replica's part in the election. */
export interface LeaderElection {
  readonly isLeader: boolean;
  /** Identity of the leader last seen. */
  readonly leader: string | undefined;
  /** Takes part until `signal` is aborted (then the lease is released) or leadership is lost. Never rejects. */
  run(signal: AbortSignal): Promise<void>;
}

/** Makes a candidate; nothing is asked of the server until `run`. Throws when the durations do not fit together. */
export function createLeaderElection(options: LeaderElectionOptions): LeaderElection {
  return new LeaseElection(options);
}

class LeaseElection implements LeaderElection {
  readonly #options: LeaderElectionOptions;
  readonly #clock: Clock;
  readonly #log: Logger;
  readonly #durationMs: number;
  readonly #deadlineMs: number;
  readonly #retryMs: number;
  readonly #record: LeaseRecord;
  #leading = false;

  constructor(options: LeaderElectionOptions) {
    this.#options = options;
    this.#clock = options.clock ?? systemClock;
    this.#log = options.log ?? silentLogger;
    this.#durationMs = options.leaseDurationMs ?? 10_000;
    this.#deadlineMs = options.renewDeadlineMs ?? 7_000;
    this.#retryMs = options.retryPeriodMs ?? 2_000;
    if (this.#deadlineMs >= this.#durationMs || this.#retryMs >= this.#deadlineMs || options.identity === '') {
      throw new Error(
        'Leader election needs an identity, and retryPeriodMs < renewDeadlineMs < leaseDurationMs: a leader must give up before others may take over.',
      );
    }
    this.#record = new LeaseRecord(options, this.#clock, this.#durationMs);
  }

  get isLeader(): boolean {
    return this.#leading;
  }

  get leader(): string | undefined {
    return this.#record.holder;
  }

  async run(signal: AbortSignal): Promise<void> {
    const renewedAt = await this.#acquire(signal);
    if (renewedAt === undefined) return;
    const term = new AbortController();
    this.#leading = true;
    this.#log.info({ lease: this.#options.name, identity: this.#options.identity }, 'This replica leads.');
    this.#options.onAcquired?.(term.signal);
    const lost = await this.#hold(renewedAt, signal);
    this.#leading = false;
    term.abort(new LeadershipLostError(lost ?? 'The process is ending.'));
    if (lost === undefined) {
      await this.#release();
    } else {
      this.#log.error({ lease: this.#options.name, reason: lost }, 'Leadership is lost.');
      this.#options.onLost(lost);
    }
  }

  /** Tries until the lease is ours. Returns when the winning try began, or `undefined` when aborted. */
  async #acquire(signal: AbortSignal): Promise<number | undefined> {
    while (!signal.aborted) {
      const began = this.#clock.now();
      if (await this.#try(this.#deadlineMs, signal)) return began;
      // Some of the wait is drawn by lot, so that candidates do not come all at once.
      await this.#record.untilFree(this.#retryMs * (1 + Math.random() / 2), signal);
    }
    return undefined;
  }

  /**
   * Renews until aborted (`undefined`) or lost (the reason). A renewal counts from when it was asked for, as others may
   * see it then.
   */
  async #hold(renewedAt: number, signal: AbortSignal): Promise<string | undefined> {
    let last = renewedAt;
    for (;;) {
      await sleep(this.#clock, Math.min(this.#retryMs, last + this.#deadlineMs - this.#clock.now()), signal);
      if (signal.aborted) return undefined;
      const began = this.#clock.now();
      const left = last + this.#deadlineMs - began;
      if (left <= 0) return `The lease could not be renewed within ${this.#deadlineMs} ms.`;
      if (await this.#try(left, signal)) last = began;
      else if (this.#record.isOthers()) return `Another replica holds the lease: ${this.#record.holder ?? ''}.`;
    }
  }

  /** One try to get or renew the lease, ended after `limitMs`. */
  async #try(limitMs: number, signal: AbortSignal): Promise<boolean> {
    const limit = new AbortController();
    const end = (): void => {
      limit.abort(new Error(`no answer within ${Math.round(limitMs)} ms`));
    };
    const timer = this.#clock.setTimer(end, limitMs);
    signal.addEventListener('abort', end);
    try {
      return await this.#record.take(limit.signal);
    } catch (error) {
      if (!signal.aborted)
        this.#log.warn(
          { lease: this.#options.name, error: messageOf(error) },
          'The lease could not be read or written; trying again.',
        );
      return false;
    } finally {
      this.#clock.clearTimer(timer);
      signal.removeEventListener('abort', end);
    }
  }

  async #release(): Promise<void> {
    try {
      // As long as a renewal may take: a lease that is not given back keeps the others waiting for longer than this.
      await this.#record.release(AbortSignal.timeout(this.#deadlineMs));
      this.#log.info({ lease: this.#options.name }, 'The lease is released.');
    } catch (error) {
      this.#log.warn(
        { lease: this.#options.name, error: messageOf(error) },
        'The lease could not be released; others wait until it ends.',
      );
    }
  }
}
