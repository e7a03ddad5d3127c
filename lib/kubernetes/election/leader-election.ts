// Lets one replica of several act at a time, through a Lease that the leader keeps renewing.
import type { V1Lease } from '@kubernetes/client-node';
import { z } from 'zod';
import type { Client } from '../client/client.ts';
import { type Clock, sleep, systemClock } from '../clock.ts';
import { LeadershipLostError, toErrorMessage, ApiError, isApiStatus } from '../errors.ts';
import { type Logger, silentLogger } from '../observability.ts';
import { type KubeType, type Manifest, defineResource, formatMicroTime } from '../object.ts';

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
  /** How long the leader continues without a renewal; below `leaseDurationMs`; default 7 000. */
  renewDeadlineMs?: number;
  /** Between tries, before jitter; default 2 000. */
  retryPeriodMs?: number;
  /** Called when this replica starts to lead. Its signal is aborted when it ceases to. */
  onAcquired?: (signal: AbortSignal) => void;
  /**
   * Called when leadership is lost involuntarily: stop acting immediately (best: exit). Not called after `signal` of
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

/** Creates a candidate, which sends nothing to the server until `run`. Throws if the durations do not fit together. */
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
      // Part of the wait is random, so that candidates do not all try at the same time.
      await this.#record.waitUntilFree(this.#retryMs * (1 + Math.random() / 2), signal);
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
      const remainingMs = last + this.#deadlineMs - began;
      if (remainingMs <= 0) return `The lease could not be renewed within ${this.#deadlineMs} ms.`;
      if (await this.#try(remainingMs, signal)) last = began;
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
          { lease: this.#options.name, error: toErrorMessage(error) },
          'The lease could not be read or written; retrying.',
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
      this.#log.info({ lease: this.#options.name }, 'The lease was released.');
    } catch (error) {
      this.#log.warn(
        { lease: this.#options.name, error: toErrorMessage(error) },
        'The lease could not be released; other replicas wait until it expires.',
      );
    }
  }
}

type Lease = KubeType<V1Lease>;

export const leases = defineResource<Lease>({
  group: 'coordination.k8s.io',
  version: 'v1',
  kind: 'Lease',
  plural: 'leases',
  namespaced: true,
});

const LeaseSpec = z.looseObject({
  holderIdentity: z.string().nullish(),
  leaseDurationSeconds: z.number().nullish(),
  acquireTime: z.string().nullish(),
  renewTime: z.string().nullish(),
  leaseTransitions: z.number().nullish(),
});

/** The Lease as this replica sees it: who holds it, since when it has not changed, and how to take and release it. */
class LeaseRecord {
  readonly #client: Client;
  readonly #ref: { namespace: string; name: string };
  readonly #identity: string;
  readonly #clock: Clock;
  readonly #durationMs: number;
  #seen: Lease | undefined;
  /** When we last saw the lease change, by our own clock: the clocks of other replicas cannot be trusted. */
  #changedAt = 0;

  constructor(
    options: { client: Client; namespace: string; name: string; identity: string },
    clock: Clock,
    durationMs: number,
  ) {
    this.#client = options.client;
    this.#ref = { namespace: options.namespace, name: options.name };
    this.#identity = options.identity;
    this.#clock = clock;
    this.#durationMs = durationMs;
  }

  /** The holder as last seen; `undefined` if the lease is free. */
  get holder(): string | undefined {
    const holder = this.#parseSpec().holderIdentity;
    return holder === null || holder === '' ? undefined : holder;
  }

  /** Whether someone else holds it, ended or not. */
  isOthers(): boolean {
    return this.holder !== undefined && this.holder !== this.#identity;
  }

  /** Milliseconds until the lease that we saw has run out. */
  #computeLeftMs(): number {
    if (this.holder === undefined) return 0;
    const seconds = this.#parseSpec().leaseDurationSeconds;
    return this.#changedAt + (seconds == null ? this.#durationMs : seconds * 1000) - this.#clock.now();
  }

  /** Gets or renews the lease, if it is ours, free or run out. False when it is not, or when another was faster. */
  async take(signal: AbortSignal): Promise<boolean> {
    // A leader has what it wrote itself; only when that turns out stale is a read needed.
    if (this.#seen === undefined || this.holder !== this.#identity) await this.#read(signal);
    if (this.isOthers() && this.#computeLeftMs() > 0) return false;
    try {
      this.#observe(
        this.#seen === undefined
          ? await this.#client.create(leases, this.#buildManifest(undefined), { signal })
          : await this.#client.replace(leases, this.#buildManifest(this.#seen), { signal }),
      );
      return true;
    } catch (error) {
      if (!isApiStatus(error, 409) && !isApiStatus(error, 404)) throw error;
      await this.#read(signal);
      return false;
    }
  }

  /** Makes the lease free, unless it is another's already. */
  async release(signal: AbortSignal): Promise<void> {
    try {
      await this.#giveBack(signal);
    } catch (error) {
      if (!isApiStatus(error, 409)) throw error;
      // A renewal that was aborted during shutdown may have reached the server all the same.
      await this.#read(signal);
      await this.#giveBack(signal);
    }
  }

  async #giveBack(signal: AbortSignal): Promise<void> {
    if (this.#seen === undefined || this.holder !== this.#identity) return;
    const manifest = this.#buildManifest(this.#seen);
    const spec = {
      ...this.#parseSpec(),
      holderIdentity: '',
      leaseDurationSeconds: 1,
      renewTime: formatMicroTime(this.#clock.getDate()),
    };
    this.#observe(await this.#client.replace(leases, { ...manifest, spec }, { signal }));
  }

  /**
   * Waits until the lease looks free, `ms` at most and no longer than what is left of it. Watches it, so that a release
   * is seen immediately.
   */
  async waitUntilFree(ms: number, signal: AbortSignal): Promise<void> {
    const end = new AbortController();
    const stop = (): void => {
      end.abort();
    };
    signal.addEventListener('abort', stop);
    try {
      // A little more than what is left, or the next try would come just too early.
      const wait = this.holder === undefined ? ms : Math.min(ms, Math.max(this.#computeLeftMs(), 0) + 20);
      await Promise.race([sleep(this.#clock, wait, end.signal), this.#watchUntilFree(ms, end.signal)]);
    } finally {
      signal.removeEventListener('abort', stop);
      end.abort();
    }
  }

  /**
   * Resolves once the watch shows the lease free. Stays pending if there is no watch: the timeout decides then.
   */
  async #watchUntilFree(ms: number, signal: AbortSignal): Promise<void> {
    const lease = this.#seen;
    if (lease !== undefined && this.holder !== undefined) {
      try {
        const selection = { namespace: this.#ref.namespace, fieldSelector: `metadata.name=${this.#ref.name}` };
        const timeoutSeconds = Math.ceil(ms / 1000) + 1;
        for await (const event of this.#client.watch(leases, {
          ...selection,
          resourceVersion: lease.metadata.resourceVersion,
          timeoutSeconds,
          signal,
        })) {
          if (event.type === 'BOOKMARK') continue;
          this.#observe(event.type === 'DELETED' ? undefined : event.object);
          if (this.#computeLeftMs() <= 0) return;
        }
      } catch {
        // Not allowed to watch, or cut off.
      }
    }
    await new Promise<never>(() => undefined);
  }

  async #read(signal: AbortSignal): Promise<void> {
    this.#observe(await this.#client.get(leases, this.#ref, { signal }));
  }

  #observe(lease: Lease | undefined): void {
    if (lease?.metadata.resourceVersion !== this.#seen?.metadata.resourceVersion) this.#changedAt = this.#clock.now();
    this.#seen = lease;
  }

  #parseSpec(): z.infer<typeof LeaseSpec> {
    const parsed = LeaseSpec.safeParse(this.#seen?.spec ?? {});
    if (!parsed.success)
      throw new ApiError(
        0,
        'Malformed',
        `Lease ${this.#ref.namespace}/${this.#ref.name} has no valid spec: ${z.prettifyError(parsed.error)}`,
      );
    return parsed.data;
  }

  /** The lease with us as its holder. Carries the version that we saw, so that only one of two candidates succeeds. */
  #buildManifest(lease: Lease | undefined): Manifest {
    const now = formatMicroTime(this.#clock.getDate());
    const spec = this.#parseSpec();
    const ours = spec.holderIdentity === this.#identity;
    return {
      apiVersion: 'coordination.k8s.io/v1',
      kind: 'Lease',
      metadata: { ...(lease?.metadata ?? {}), ...this.#ref },
      spec: {
        ...spec,
        holderIdentity: this.#identity,
        leaseDurationSeconds: Math.ceil(this.#durationMs / 1000),
        acquireTime: ours ? (spec.acquireTime ?? now) : now,
        renewTime: now,
        leaseTransitions: (spec.leaseTransitions ?? 0) + (ours || lease === undefined ? 0 : 1),
      },
    };
  }
}
