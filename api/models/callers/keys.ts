// Callers' own keys: checked with the router, remembered for a moment as keyed hashes, forgotten when the router
// refuses them.
import type { RouterClient } from '../router/client.ts';

export interface KeyOptions {
  readonly router: Pick<RouterClient, 'knowsKey'>;
  /** Makes the keyed hash of a key. */
  readonly hash: (key: string) => string;
  /** How long a valid key is considered valid; default 60 000 ms. */
  readonly validMs?: number;
  /** How long an invalid one is considered invalid; default 30 000 ms. */
  readonly invalidMs?: number;
  /** Maximum number of keys remembered. */
  readonly size?: number;
  readonly now?: () => number;
}

interface Verdict {
  readonly valid: boolean;
  readonly until: number;
}

/** What a key of the router looks like. */
export const keyShape = /^sk-[A-Za-z0-9_.:-]{8,250}$/;

export class CallerKeys {
  readonly #options: KeyOptions;
  /** By hash; the key itself is kept nowhere. */
  readonly #verdicts = new Map<string, Verdict>();
  readonly #asking = new Map<string, Promise<boolean>>();

  constructor(options: KeyOptions) {
    this.#options = options;
  }

  /**
   * The hash of a valid key, which is who its caller is; undefined for one that the router does not know. @throws
   * RouterFailure when it cannot be reached
   */
  async identify(key: string): Promise<string | undefined> {
    const { hash, now = Date.now } = this.#options;
    const name = hash(key);
    const known = this.#verdicts.get(name);
    const valid = known !== undefined && known.until > now() ? known.valid : await this.#ask(name, key);
    return valid ? name : undefined;
  }

  /** To be called when the router refuses a key in a call. */
  forget(key: string): void {
    this.#verdicts.delete(this.#options.hash(key));
  }

  /** Many calls with one new key ask once. */
  async #ask(name: string, key: string): Promise<boolean> {
    const asking =
      this.#asking.get(name) ??
      this.#fresh(name, key).finally(() => {
        this.#asking.delete(name);
      });
    this.#asking.set(name, asking);
    return asking;
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
