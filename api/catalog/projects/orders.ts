// The orders in which projects are listed, and which of them a query asks for.
import { resorted } from '../../../lib/resorted.ts';
import { compareKeys, type SortKey } from '../paging.ts';
import type { ProjectRecord } from './records.ts';
import type { StarCounts } from './stars/star-counts.ts';

export const orders = ['name', 'stars', 'since'] as const;
export type Order = (typeof orders)[number];

/** A record with its place in an order. */
export interface SortedRecord {
  readonly record: ProjectRecord;
  readonly key: SortKey;
}

/** By title; the most stars first; the newest first. What is not known comes last. */
export class SortedRecords {
  readonly #order: Order;
  readonly #stars: Pick<StarCounts, 'at' | 'version'>;
  #of: unknown;
  #version: number;
  #keys = new WeakMap<ProjectRecord, SortedRecord>();
  #list: readonly SortedRecord[] = [];

  constructor(order: Order, stars: Pick<StarCounts, 'at' | 'version'>) {
    this.#order = order;
    this.#stars = stars;
    this.#version = stars.version;
  }

  /** The same list for the same map, until a star changes where these are sorted by. */
  of(records: ReadonlyMap<string, ProjectRecord>): readonly SortedRecord[] {
    const { version } = this.#stars;
    const isOutdated = this.#order === 'stars' && version !== this.#version;
    if (this.#of === records && !isOutdated) return this.#list;
    if (isOutdated) this.#keys = new WeakMap();
    const current = [...records.values()].map((record) => this.#sortedRecord(record));
    this.#list = resorted(this.#list, current, (a, b) => compareKeys(a.key, b.key));
    this.#of = records;
    this.#version = version;
    return this.#list;
  }

  #sortedRecord(record: ProjectRecord): SortedRecord {
    const known = this.#keys.get(record);
    if (known !== undefined) return known;
    const key = [...keyIn(record, this.#order, this.#stars), record.title.toLowerCase(), record.slug];
    const made = { record, key };
    this.#keys.set(record, made);
    return made;
  }
}

function keyIn(record: ProjectRecord, order: Order, stars: Pick<StarCounts, 'at'>): SortKey {
  switch (order) {
    case 'name':
      return [];
    case 'stars':
      return lastIfUnknown(stars.at(record.forge).stars);
    case 'since':
      return lastIfUnknown(record.since === null ? null : Date.parse(record.since));
  }
}

function lastIfUnknown(value: number | null): SortKey {
  return value === null ? [1, 0] : [0, -value];
}

export interface Filter {
  readonly category?: ProjectRecord['category'] | undefined;
  /** Default: all. */
  readonly state?: ProjectRecord['state'] | 'all' | undefined;
  readonly q?: string | undefined;
}

/** Whether a record is asked for; of a search, each word has to be in it. */
export function matcher({ category, state = 'all', q = '' }: Filter): (record: ProjectRecord) => boolean {
  const words = q
    .toLowerCase()
    .split(/\s+/)
    .filter((word) => word !== '');
  return (record) =>
    (category === undefined || record.category === category) &&
    (state === 'all' || record.state === state) &&
    words.every((word) => record.text.includes(word));
}
