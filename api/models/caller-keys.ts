// Callers' own keys: checked with the router, remembered for a moment as keyed hashes, forgotten when the router
// refuses them. A network that sends invented
// keys is soon refused, so that thieves cannot find out here which stolen keys are valid.
import { Problem } from '../../lib/problem.ts';
import { keyChecksLimited } from './problems.ts';
import type { RouterClient } from './router/client.ts';

export interface KeyOptions {
  readonly router: Pick<RouterClient, 'knowsKey'>;
  /** Makes the keyed hash of a key. */
  readonly hash: (key: string) => string;
  /** How long a valid key is considered valid; default 60 000 ms. */
  readonly validMs?: number;
  /** How long an invalid one is considered invalid; default 30 000 ms. */
  readonly invalidMs?: number;
  /** Maximum number of keys remembered, and of networks. */
  readonly size?: number;
  /** How many checks may fail for one network in a while; default 10 in 60 000 ms. */
  readonly failures?: { readonly maximum: number; readonly withinMs: number };
  readonly now?: () => number;
}

interface Verdict {
  readonly valid: boolean;
  readonly until: number;
}

/** What a key of the router looks like. */
export const keyShape = /^sk-[A-Za-z0-9_.:-]{1,250}$/;

export class CallerKeys {
  readonly #options: KeyOptions;
  /** By hash; the key itself is kept nowhere. */
  readonly #verdicts = new Map<string, Verdict>();
  readonly #asking = new Map<string, Promise<boolean>>();
  readonly #failures: FailedChecks;

  constructor(options: KeyOptions) {
    this.#options = options;
    const { failures = { maximum: 10, withinMs: 60_000 }, size = 10_000, now = Date.now } = options;
    this.#failures = new FailedChecks({ ...failures, size, now });
  }

  /**
   * The hash of a valid key, which identifies its caller; undefined for one that the router does not know. `network`: hash of
   * the network that it comes from. @throws Problem (key-checks-limited), RouterFailure when the router cannot be reached
   */
  async identify(key: string, network: string): Promise<string | undefined> {
    const { hash, now = Date.now } = this.#options;
    const name = hash(key);
    const known = this.#verdicts.get(name);
    if (known !== undefined && known.until > now()) return known.valid ? name : undefined;
    // Checking a key again that was valid here before reveals nothing new to its sender, so failed checks of others in its
    // network do not count.
    const valid = await this.#ask(name, key, known?.valid === true ? undefined : network);
    return valid ? name : undefined;
  }

  /** Call this when the router rejects a key in a call, so that it is checked again. */
  forget(key: string): void {
    this.#verdicts.delete(this.#options.hash(key));
  }

  /** Many calls with one new key check it once. */
  async #ask(name: string, key: string, network: string | undefined): Promise<boolean> {
    const asking =
      this.#asking.get(name) ??
      this.#checked(name, key, network).finally(() => {
        this.#asking.delete(name);
      });
    this.#asking.set(name, asking);
    return asking;
  }

  async #checked(name: string, key: string, network: string | undefined): Promise<boolean> {
    const check = (): Promise<boolean> => this.#fresh(name, key);
    return network === undefined ? check() : this.#failures.counting(network, check);
  }

  async #fresh(name: string, key: string): Promise<boolean> {
    const { router, validMs = 60_000, invalidMs = 30_000, size = 10_000, now = Date.now } = this.#options;
    const valid = await router.knowsKey(key);
    this.#verdicts.delete(name);
    this.#verdicts.set(name, { valid, until: now() + (valid ? validMs : invalidMs) });
    // The oldest go first: a flood of invented keys pushes nothing out but itself and what has to be asked again
    // anyway.
    for (const oldest of this.#verdicts.keys()) {
      if (this.#verdicts.size <= size) break;
      this.#verdicts.delete(oldest);
    }
    return valid;
  }
}

interface FailedChecksOptions {
  readonly maximum: number;
  readonly withinMs: number;
  readonly size: number;
  readonly now: () => number;
}

/** Counts failed checks by network. One that is in progress counts, so that sending many at the same time is no way around it. */
class FailedChecks {
  readonly #options: FailedChecksOptions;
  /** When each check failed, or began; the oldest network first. */
  readonly #times = new Map<string, number[]>();

  constructor(options: FailedChecksOptions) {
    this.#options = options;
  }

  /** @throws Problem (key-checks-limited) instead of checking */
  async counting(network: string, check: () => Promise<boolean>): Promise<boolean> {
    const { maximum, withinMs, now } = this.#options;
    const since = now() - withinMs;
    const times = (this.#times.get(network) ?? []).filter((time) => time > since);
    const [oldest = 0] = times;
    if (times.length >= maximum) throw createLimitProblem(Math.max(1, Math.ceil((oldest - since) / 1000)));
    const began = now();
    this.#remember(network, [...times, began]);
    const failed = await check().then(
      (isValid) => !isValid,
      (error: unknown) => {
        this.#forget(network, began);
        throw error;
      },
    );
    if (!failed) this.#forget(network, began);
    return !failed;
  }

  #remember(network: string, times: number[]): void {
    this.#times.delete(network);
    this.#times.set(network, times);
    for (const oldest of this.#times.keys()) {
      if (this.#times.size <= this.#options.size) break;
      this.#times.delete(oldest);
    }
  }

  #forget(network: string, time: number): void {
    const times = this.#times.get(network) ?? [];
    const at = times.indexOf(time);
    if (at !== -1) times.splice(at, 1);
    if (times.length === 0) this.#times.delete(network);
  }
}

function createLimitProblem(seconds: number): Problem {
  return new Problem(
    keyChecksLimited,
    `Your network has sent too many API keys that the model router does not know. Try again in ${seconds} seconds, or omit the key to use the free quota.`,
    { headers: { 'retry-after': String(seconds) } },
  );
}
