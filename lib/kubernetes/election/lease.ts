// The Lease behind an election: who holds it, since when we have seen no change of it, and how to take and give it
// back.
import type { V1Lease } from '@kubernetes/client-node';
import { z } from 'zod';
import type { Client } from '../client/client.ts';
import type { Clock } from '../clock.ts';
import { sleep } from '../clock.ts';
import { ApiError, isApiStatus } from '../errors.ts';
import type { KubeType, Manifest } from '../object.ts';
import { defineResource, microTime } from '../object.ts';

type Lease = KubeType<V1Lease>;

export const leases = defineResource<Lease>({
  group: 'coordination.k8s.io',
  version: 'v1',
  kind: 'Lease',
  plural: 'leases',
  namespaced: true,
});

const Spec = z.looseObject({
  holderIdentity: z.string().nullish(),
  leaseDurationSeconds: z.number().nullish(),
  acquireTime: z.string().nullish(),
  renewTime: z.string().nullish(),
  leaseTransitions: z.number().nullish(),
});

/** What this replica knows of the lease. */
export class LeaseRecord {
  readonly #client: Client;
  readonly #ref: { namespace: string; name: string };
  readonly #identity: string;
  readonly #clock: Clock;
  readonly #durationMs: number;
  #seen: Lease | undefined;
  /** When we saw the lease change last, by our own clock: the clocks of others are not to be trusted. */
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

  /** Who holds it, as last seen; `undefined` when nobody does. */
  get holder(): string | undefined {
    const holder = this.#spec().holderIdentity;
    return holder === null || holder === '' ? undefined : holder;
  }

  /** Whether someone else holds it, ended or not. */
  isOthers(): boolean {
    return this.holder !== undefined && this.holder !== this.#identity;
  }

  /** Milliseconds until the lease that we saw has run out. */
  #leftMs(): number {
    if (this.holder === undefined) return 0;
    const seconds = this.#spec().leaseDurationSeconds;
    return this.#changedAt + (seconds == null ? this.#durationMs : seconds * 1000) - this.#clock.now();
  }

  /** Gets or renews the lease, if it is ours, free or run out. False when it is not, or when another was faster. */
  async take(signal: AbortSignal): Promise<boolean> {
    // A leader has what it wrote itself; only when that turns out stale is a read needed.
    if (this.#seen === undefined || this.holder !== this.#identity) await this.#read(signal);
    if (this.isOthers() && this.#leftMs() > 0) return false;
    try {
      this.#observe(
        this.#seen === undefined
          ? await this.#client.create(leases, this.#manifest(undefined), { signal })
          : await this.#client.replace(leases, this.#manifest(this.#seen), { signal }),
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
      // A renewal cut off on our way out may have been heard all the same.
      await this.#read(signal);
      await this.#giveBack(signal);
    }
  }

  async #giveBack(signal: AbortSignal): Promise<void> {
    if (this.#seen === undefined || this.holder !== this.#identity) return;
    const manifest = this.#manifest(this.#seen);
    const spec = {
      ...this.#spec(),
      holderIdentity: '',
      leaseDurationSeconds: 1,
      renewTime: microTime(this.#clock.date()),
    };
    this.#observe(await this.#client.replace(leases, { ...manifest, spec }, { signal }));
  }

  /**
   * Waits until the lease looks free, `ms` at most and no longer than what is left of it. Watches it, so that a release
   * is seen at once.
   */
  async untilFree(ms: number, signal: AbortSignal): Promise<void> {
    const end = new AbortController();
    const stop = (): void => {
      end.abort();
    };
    signal.addEventListener('abort', stop);
    try {
      // A little more than what is left, or the next try would come just too early.
      const wait = this.holder === undefined ? ms : Math.min(ms, Math.max(this.#leftMs(), 0) + 20);
      await Promise.race([sleep(this.#clock, wait, end.signal), this.#watchUntilFree(ms, end.signal)]);
    } finally {
      signal.removeEventListener('abort', stop);
      end.abort();
    }
  }

  /**
   * Resolves once the watch shows the lease free; stays pending when the watch cannot be had, as time decides then.
   */
  async #watchUntilFree(ms: number, signal: AbortSignal): Promise<void> {
    const seen = this.#seen;
    if (seen !== undefined && this.holder !== undefined) {
      try {
        const selection = { namespace: this.#ref.namespace, fieldSelector: `metadata.name=${this.#ref.name}` };
        const timeoutSeconds = Math.ceil(ms / 1000) + 1;
        for await (const event of this.#client.watch(leases, {
          ...selection,
          resourceVersion: seen.metadata.resourceVersion,
          timeoutSeconds,
          signal,
        })) {
          if (event.type === 'BOOKMARK') continue;
          this.#observe(event.type === 'DELETED' ? undefined : event.object);
          if (this.#leftMs() <= 0) return;
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

  #spec(): z.infer<typeof Spec> {
    const parsed = Spec.safeParse(this.#seen?.spec ?? {});
    if (!parsed.success)
      throw new ApiError(
        0,
        'Malformed',
        `Lease ${this.#ref.namespace}/${this.#ref.name} has no valid spec: ${z.prettifyError(parsed.error)}`,
      );
    return parsed.data;
  }

  /** The lease with us as its holder. Carries the version that we saw, so that of two candidates only one is heard. */
  #manifest(seen: Lease | undefined): Manifest {
    const now = microTime(this.#clock.date());
    const spec = this.#spec();
    const ours = spec.holderIdentity === this.#identity;
    return {
      apiVersion: 'coordination.k8s.io/v1',
      kind: 'Lease',
      metadata: { ...(seen?.metadata ?? {}), ...this.#ref },
      spec: {
        ...spec,
        holderIdentity: this.#identity,
        leaseDurationSeconds: Math.ceil(this.#durationMs / 1000),
        acquireTime: ours ? (spec.acquireTime ?? now) : now,
        renewTime: now,
        leaseTransitions: (spec.leaseTransitions ?? 0) + (ours || seen === undefined ? 0 : 1),
      },
    };
  }
}
