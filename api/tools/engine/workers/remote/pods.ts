// The workers' pods that are ready, as the name of their Service resolves, and how many tasks of this process each has.
import { lookup } from 'node:dns/promises';
import type { Pod } from './offer.ts';

/** How long an answer of the DNS is believed. */
const believedMs = 1_000;

export class Pods {
  readonly #url: URL;
  readonly #load = new Map<string, { running: number; readonly rank: number }>();
  #known: Promise<string[]> | undefined;
  #asked = 0;

  constructor(url: URL) {
    this.#url = url;
  }

  /**
   * First the one that has fewest tasks of this process; of those with as many, always the same one, since a worker that
   * has loaded its module waits there.
   */
  async byLoad(): Promise<Pod[]> {
    const hosts = [...(await this.#hosts())];
    const port = Number(this.#url.port === '' ? 80 : this.#url.port);
    return hosts.sort((a, b) => this.#weight(a) - this.#weight(b)).map((host) => ({ host, port }));
  }

  entered({ host }: Pod): void {
    const load = this.#load.get(host);
    if (load !== undefined) load.running += 1;
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
  async #hosts(): Promise<string[]> {
    if (this.#known === undefined || performance.now() - this.#asked > believedMs) {
      this.#asked = performance.now();
      this.#known = lookup(this.#url.hostname, { all: true }).then(
        (found) => this.#seen(found.map(({ address }) => address)),
        // No pod is ready.
        () => [],
      );
    }
    return this.#known;
  }

  #seen(hosts: string[]): string[] {
    for (const [host, { running }] of this.#load) if (running === 0 && !hosts.includes(host)) this.#load.delete(host);
    for (const host of hosts) if (!this.#load.has(host)) this.#load.set(host, { running: 0, rank: Math.random() });
    return hosts;
  }

  #weight(host: string): number {
    const { running = 0, rank = 0 } = this.#load.get(host) ?? {};
    return running + rank;
  }
}
