// Lists every app of this installation: catalog apps, deployed or not, and submitted apps.
import { readSlug } from '../../../crds/slugs.ts';
import { sortAgain } from '../../../lib/values.ts';
import { createUnknownNameProblem } from '../../../lib/problem.ts';
import { type App, type DirectoryOptions, isPrivate, toIdleView, toStatusView } from '../../apps/index.ts';
import type { BenchmarkEntry } from '../bench/views.ts';
import { compareKeys, type Page, createPage, type SortKey } from '../paging.ts';
import { createAppRecord, type CatalogApp, createCatalogRecord, type ProjectRecord } from './records.ts';
import type { StarCount, StarCounts } from './stars.ts';
import { type ProjectDetail, type ProjectEntry, type Telemetry, unknownProject } from './views.ts';

export interface ProjectsOptions {
  /** Like https://moorage.localhost, without a slash at the end. */
  readonly baseUrl: string;
  readonly apps: Omit<DirectoryOptions, 'baseUrl'>;
  readonly catalog: readonly CatalogApp[];
  readonly stars: Pick<StarCounts, 'getCountAt' | 'version'>;
  readonly readTelemetry: (id: string) => Promise<Telemetry>;
  /** The entry of an app in the index of benchmarks. Rejects while they cannot be read. */
  readonly readBenchmark: (id: string) => Promise<BenchmarkEntry | undefined>;
}

export interface ProjectQuery extends Filter {
  readonly sort: Order;
  readonly limit: number;
  readonly cursor?: string | undefined;
}

export class Projects {
  readonly #options: ProjectsOptions;
  readonly #catalogSlugs: ReadonlySet<string>;
  /** Objects of the cache are never changed, only replaced. */
  readonly #records = new WeakMap<App, ProjectRecord>();
  #all: { readonly apps: readonly App[]; readonly records: ReadonlyMap<string, ProjectRecord> } | undefined;
  readonly #sorted: Readonly<Record<Order, SortedRecords>>;

  constructor(options: ProjectsOptions) {
    this.#options = options;
    this.#catalogSlugs = new Set(options.catalog.map(({ slug }) => slug));
    this.#sorted = {
      name: new SortedRecords('name', options.stars),
      stars: new SortedRecords('stars', options.stars),
      since: new SortedRecords('since', options.stars),
    };
  }

  /** All of them, by slug. The same map until an app changes. */
  listRecords(): ReadonlyMap<string, ProjectRecord> {
    const apps = this.#options.apps.apps.listAll();
    if (this.#all?.apps !== apps) this.#all = { apps, records: this.#createRecords(apps) };
    return this.#all.records;
  }

  /** Addresses whose stars are shown. */
  listRepositories(): string[] {
    return [...this.listRecords().values()].map(({ repo }) => repo);
  }

  /** All of them in an order. The same list until an app or a star changes. */
  listSorted(order: Order): readonly SortedRecord[] {
    return this.#sorted[order].sort(this.listRecords());
  }

  /** One page of those that are asked for. @throws Problem (invalid-request) for a cursor of another list */
  list({ sort, limit, cursor, ...filter }: ProjectQuery): Page<ProjectEntry> {
    const isAsked = createMatcher(filter);
    const matches = this.listSorted(sort).filter(({ record }) => isAsked(record));
    const page = createPage(matches, ({ key }) => key, { limit, cursor, order: sort });
    return { ...page, items: page.items.map(({ record }) => this.#createEntry(record)) };
  }

  /** Everything of one app. @throws Problem (unknown-project) */
  async getDetail(slug: string): Promise<ProjectDetail> {
    const record = this.#record(slug);
    const { id } = record;
    const [telemetry, measured] = await Promise.all([this.#options.readTelemetry(id), this.#readBenchmark(id)]);
    return {
      ...this.#createEntry(record),
      commit: record.state === 'live' ? (record.app?.status?.served?.commit ?? null) : null,
      idle: record.app === undefined ? null : (toIdleView(record.app) ?? null),
      ...findComponents(record.app),
      telemetry,
      ...measured,
    };
  }

  async #readBenchmark(id: string): Promise<Pick<ProjectDetail, 'benchmark' | 'benchmark_reason'>> {
    try {
      const benchmark = (await this.#options.readBenchmark(id)) ?? null;
      return { benchmark, benchmark_reason: benchmark === null ? 'No benchmark of this app has been run here.' : null };
    } catch {
      // The rest of the app is known without the database.
      return { benchmark: null, benchmark_reason: 'Benchmarks cannot be read right now.' };
    }
  }

  /** The entry of one app. @throws Problem (unknown-project) */
  getEntry(slug: string): ProjectEntry {
    return this.#createEntry(this.#record(slug));
  }

  #record(slug: string): ProjectRecord {
    const records = this.listRecords();
    // An app that was renamed is also found by a name that it had.
    const app = records.has(slug) ? undefined : this.#options.apps.apps.get(slug);
    const record = records.get(app === undefined ? slug : readSlug(app));
    if (record !== undefined) return record;
    throw createUnknownNameProblem(unknownProject, {
      says: 'There is no app',
      name: slug,
      names: [...records.keys()],
      all: 'GET /api/projects?state=all lists all apps.',
    });
  }

  #createRecords(apps: readonly App[]): ReadonlyMap<string, ProjectRecord> {
    const { catalog, apps: options } = this.#options;
    const known = catalog.map((one) => createCatalogRecord(one, options.apps.get(one.slug)));
    const others = apps
      .filter(({ metadata }) => !this.#catalogSlugs.has(metadata.name))
      .map((app) => this.#toRecord(app));
    return new Map([...known, ...others].map((record) => [record.slug, record]));
  }

  #toRecord(app: App): ProjectRecord {
    const record = this.#records.get(app) ?? createAppRecord(app);
    this.#records.set(app, record);
    return record;
  }

  #createEntry(record: ProjectRecord): ProjectEntry {
    const { baseUrl, stars } = this.#options;
    const { slug, title, description, category, repo, source, state, since } = record;
    const count = stars.getCountAt(record.forge);
    return {
      slug,
      title,
      title_zh: record.titleZh,
      description,
      description_zh: record.descriptionZh,
      category,
      repo,
      source,
      ...(record.app !== undefined && isPrivate(record.app) ? { private: true as const } : {}),
      stars: count.stars,
      stars_at: count.starsAt?.toISOString() ?? null,
      stars_reason: count.reason,
      ...findLicense(record, count),
      state,
      since,
      page: `${baseUrl}/apps/${slug}`,
      machine_readable: `${baseUrl}/api/projects/${slug}`,
      ...this.#readState(record),
    };
  }

  #readState({ app, state, isNameTaken }: ProjectRecord): Pick<ProjectEntry, 'state_reason' | 'url' | 'status_url'> {
    if (app === undefined) return { state_reason: isNameTaken ? nameTaken : notDeployed, url: null, status_url: null };
    const { baseUrl, apps } = this.#options;
    const { message, url, status_url } = toStatusView(app, { baseUrl, site: apps.site, defaultHost: apps.defaultHost });
    const isLive = state === 'live';
    return { state_reason: isLive ? null : message, url: isLive ? url : null, status_url };
  }
}

const notDeployed =
  'This app is not deployed on this cluster. The operator of this installation can deploy it with `npm run apps`.';
const nameTaken =
  'Another app has this name on this cluster. The operator of this installation can remove that one and deploy this one with `npm run apps`.';

/** The names of components, and why one does not run, are read from the source. */
function findComponents(app: App | undefined): Pick<ProjectDetail, 'components'> {
  const components = app?.status?.components;
  return app === undefined || components === undefined || isPrivate(app) ? {} : { components };
}

/** The review keeps what it has against a licence, not the licence itself, so that comes from the forge. */
function findLicense(
  { app }: ProjectRecord,
  { license, reason, stars }: StarCount,
): Pick<ProjectEntry, 'license' | 'license_reason'> {
  if (license !== null) return { license, license_reason: null };
  const findings = app === undefined || isPrivate(app) ? [] : (app.status?.findings ?? []);
  const finding = findings.find(({ rule }) => rule.startsWith('license/'));
  if (finding !== undefined) return { license: null, license_reason: `The review found: ${finding.message}` };
  return {
    license: null,
    license_reason: stars === null && reason !== null ? reason : 'The forge recognises no licence of this repository.',
  };
}

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
  readonly #stars: Pick<StarCounts, 'getCountAt' | 'version'>;
  #of: unknown;
  #version: number;
  #keys = new WeakMap<ProjectRecord, SortedRecord>();
  #list: readonly SortedRecord[] = [];

  constructor(order: Order, stars: Pick<StarCounts, 'getCountAt' | 'version'>) {
    this.#order = order;
    this.#stars = stars;
    this.#version = stars.version;
  }

  /** The same list for the same map, until a star changes where these are sorted by. */
  sort(records: ReadonlyMap<string, ProjectRecord>): readonly SortedRecord[] {
    const { version } = this.#stars;
    const isOutdated = this.#order === 'stars' && version !== this.#version;
    if (this.#of === records && !isOutdated) return this.#list;
    if (isOutdated) this.#keys = new WeakMap();
    const current = [...records.values()].map((record) => this.#getSortedRecord(record));
    this.#list = sortAgain(this.#list, current, (a, b) => compareKeys(a.key, b.key));
    this.#of = records;
    this.#version = version;
    return this.#list;
  }

  #getSortedRecord(record: ProjectRecord): SortedRecord {
    const known = this.#keys.get(record);
    if (known !== undefined) return known;
    const key = [...createSortKey(record, this.#order, this.#stars), record.title.toLowerCase(), record.slug];
    const made = { record, key };
    this.#keys.set(record, made);
    return made;
  }
}

function createSortKey(record: ProjectRecord, order: Order, stars: Pick<StarCounts, 'getCountAt'>): SortKey {
  switch (order) {
    case 'name':
      return [];
    case 'stars':
      return sortUnknownLast(stars.getCountAt(record.forge).stars);
    case 'since':
      return sortUnknownLast(record.since === null ? null : Date.parse(record.since));
  }
}

function sortUnknownLast(value: number | null): SortKey {
  return value === null ? [1, 0] : [0, -value];
}

export interface Filter {
  readonly category?: ProjectRecord['category'] | undefined;
  /** Default: all. */
  readonly state?: ProjectRecord['state'] | 'all' | undefined;
  readonly q?: string | undefined;
}

/** Whether a record is asked for; of a search, each word has to be in it. */
export function createMatcher({ category, state = 'all', q = '' }: Filter): (record: ProjectRecord) => boolean {
  const words = q
    .toLowerCase()
    .split(/\s+/)
    .filter((word) => word !== '');
  return (record) =>
    (category === undefined || record.category === category) &&
    (state === 'all' || record.state === state) &&
    words.every((word) => record.text.includes(word));
}
