// The workers' pods that are ready, as the name of their Service resolves, and how many tasks of this process each has.
import { lookup } from 'node:dns/promises';
import type { Pod } from './offer.ts';

/** How long an answer of the DNS is believed. */
const believedMs = 1_000;

/** Addresses of all pods that are ready. */
export type Resolve = (hostname: string) => Promise<readonly string[]>;

export const resolveByDns: Resolve = async (hostname) =>
  (await lookup(hostname, { all: true })).map(({ address }) => address);

export class Pods {
  readonly #url: URL;
  readonly #resolve: Resolve;
  readonly #load = new Map<string, { running: number; readonly rank: number }>();
  #known: Promise<readonly string[]> | undefined;
  #asked = 0;

  constructor(url: URL, resolve: Resolve) {
    this.#url = url;
    this.#resolve = resolve;
  }

  /**
   * Counts a task to the pod that has fewest of this process; of those with as many, always to the same one, since a
   * worker that has loaded its module waits there. @returns undefined when all have been tried
   */
  async take(tried: ReadonlySet<string>): Promise<Pod | undefined> {
    const hosts = (await this.#hosts()).filter((host) => !tried.has(host));
    const [host] = hosts.sort((a, b) => this.#weight(a) - this.#weight(b));
    if (host === undefined) return undefined;
    const load = this.#load.get(host);
    if (load !== undefined) load.running += 1;
    return { host, port: Number(this.#url.port === '' ? 80 : this.#url.port) };
  }

  left({ host }: Pod): void {
    const load = this.#load.get(host);
    if (load !== undefined) load.running -= 1;
  }

  /** One of them does not answer. */
  forget(): void {
    this.#known = undefined;
  }

  /** Those who ask at once share an answer, and so keep their order. */
  async #hosts(): Promise<readonly string[]> {
    if (this.#known === undefined || performance.now() - this.#asked > believedMs) {
      this.#asked = performance.now();
      this.#known = this.#resolve(this.#url.hostname).then(
        (hosts) => this.#seen(hosts),
        // No pod is ready.
        () => [],
      );
    }
    return this.#known;
  }

  #seen(hosts: readonly string[]): readonly string[] {
    for (const [host, { running }] of this.#load) if (running === 0 && !hosts.includes(host)) this.#load.delete(host);
    for (const host of hosts) if (!this.#load.has(host)) this.#load.set(host, { running: 0, rank: Math.random() });
    return hosts;
  }

  #weight(host: string): number {
    const { running = 0, rank = 0 } = this.#load.get(host) ?? {};
    return running + rank;
  }
}
