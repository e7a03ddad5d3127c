// All apps that this installation knows: those of the catalog, deployed or not, and those that were submitted.
import { unknownName } from '../../../lib/similar-names.ts';
import { type App, type DirectoryOptions, viewIdle, viewStatus } from '../../apps/index.ts';
import { type Page, pageOf } from '../paging.ts';
import type { CatalogApp } from './manifests.ts';
import { type Filter, matcher, type Order, type SortedRecord, SortedRecords } from './orders.ts';
import { unknownProject } from './problems.ts';
import { appRecord, catalogRecord, type ProjectRecord } from './records.ts';
import type { StarCount, StarCounts } from './stars/star-counts.ts';
import type { BenchmarkEntry } from '../bench/index.ts';
import type { ProjectDetail, ProjectEntry, Telemetry } from './views.ts';

export interface ProjectsOptions {
  /** Like https://moorage.localhost, without a slash at the end. */
  readonly baseUrl: string;
  readonly apps: Omit<DirectoryOptions, 'baseUrl'>;
  readonly catalog: readonly CatalogApp[];
  readonly stars: Pick<StarCounts, 'at' | 'version'>;
  readonly telemetry: (slug: string) => Promise<Telemetry>;
  /** The entry of an app in the index of benchmarks. Rejects while they cannot be read. */
  readonly benchmark: (slug: string) => Promise<BenchmarkEntry | undefined>;
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
  records(): ReadonlyMap<string, ProjectRecord> {
    const apps = this.#options.apps.apps.all();
    if (this.#all?.apps !== apps) this.#all = { apps, records: this.#recordsOf(apps) };
    return this.#all.records;
  }

  /** Addresses whose stars are shown. */
  repositories(): string[] {
    return [...this.records().values()].map(({ repo }) => repo);
  }

  /** All of them in an order. The same list until an app or a star changes. */
  sorted(order: Order): readonly SortedRecord[] {
    return this.#sorted[order].of(this.records());
  }

  /** One page of those that are asked for. @throws Problem (invalid-request) for a cursor of another list */
  list({ sort, limit, cursor, ...filter }: ProjectQuery): Page<ProjectEntry> {
    const isAsked = matcher(filter);
    const found = this.sorted(sort).filter(({ record }) => isAsked(record));
    const page = pageOf(found, ({ key }) => key, { limit, cursor, order: sort });
    return { ...page, items: page.items.map(({ record }) => this.#entry(record)) };
  }

  /** Everything of one app. @throws Problem (unknown-project) */
  async detail(slug: string): Promise<ProjectDetail> {
    const record = this.#record(slug);
    const [telemetry, measured] = await Promise.all([this.#options.telemetry(slug), this.#benchmark(slug)]);
    return {
      ...this.#entry(record),
      commit: record.state === 'live' ? (record.app?.status?.served?.commit ?? null) : null,
      idle: record.app === undefined ? null : (viewIdle(record.app) ?? null),
      telemetry,
      ...measured,
    };
  }

  async #benchmark(slug: string): Promise<Pick<ProjectDetail, 'benchmark' | 'benchmark_reason'>> {
    try {
      const benchmark = (await this.#options.benchmark(slug)) ?? null;
      return { benchmark, benchmark_reason: benchmark === null ? 'No benchmark of this app has been run here.' : null };
    } catch {
      // The rest of the app is known without the database.
      return { benchmark: null, benchmark_reason: 'Benchmarks cannot be read right now.' };
    }
  }

  /** The entry of one app. @throws Problem (unknown-project) */
  entry(slug: string): ProjectEntry {
    return this.#entry(this.#record(slug));
  }

  #record(slug: string): ProjectRecord {
    const records = this.records();
    const record = records.get(slug);
    if (record !== undefined) return record;
    throw unknownName(unknownProject, {
      says: 'There is no app',
      name: slug,
      names: [...records.keys()],
      all: 'GET /api/projects?state=all lists all apps.',
    });
  }

  #recordsOf(apps: readonly App[]): ReadonlyMap<string, ProjectRecord> {
    const { catalog, apps: options } = this.#options;
    const known = catalog.map((one) => catalogRecord(one, options.apps.get(one.slug)));
    const others = apps
      .filter(({ metadata }) => !this.#catalogSlugs.has(metadata.name))
      .map((app) => this.#recordOf(app));
    return new Map([...known, ...others].map((record) => [record.slug, record]));
  }

  #recordOf(app: App): ProjectRecord {
    const record = this.#records.get(app) ?? appRecord(app);
    this.#records.set(app, record);
    return record;
  }

  #entry(record: ProjectRecord): ProjectEntry {
    const { baseUrl, stars } = this.#options;
    const { slug, title, description, category, repo, source, state, since } = record;
    const count = stars.at(record.forge);
    return {
      slug,
      title,
      title_zh: record.titleZh,
      description,
      description_zh: record.descriptionZh,
      category,
      repo,
      source,
      stars: count.stars,
      stars_at: count.starsAt?.toISOString() ?? null,
      stars_reason: count.reason,
      ...licenseOf(record, count),
      state,
      since,
      page: `${baseUrl}/apps/${slug}`,
      machine_readable: `${baseUrl}/api/projects/${slug}`,
      ...this.#standing(record),
    };
  }

  #standing({ app, state, isNameTaken }: ProjectRecord): Pick<ProjectEntry, 'state_reason' | 'url' | 'status_url'> {
    if (app === undefined) return { state_reason: isNameTaken ? nameTaken : notDeployed, url: null, status_url: null };
    const { baseUrl, apps } = this.#options;
    const { message, url, status_url } = viewStatus(app, { baseUrl, site: apps.site, defaultHost: apps.defaultHost });
    const isLive = state === 'live';
    return { state_reason: isLive ? null : message, url: isLive ? url : null, status_url };
  }
}

const notDeployed =
  'This app is not deployed on this cluster. The operator of this installation can deploy it with `npm run apps`.';
const nameTaken =
  'Another app has this name on this cluster. The operator of this installation can remove that one and deploy this one with `npm run apps`.';

/** The review keeps what it has against a licence, not the licence itself, so that comes from the forge. */
function licenseOf(
  { app }: ProjectRecord,
  { license, reason, stars }: StarCount,
): Pick<ProjectEntry, 'license' | 'license_reason'> {
  if (license !== null) return { license, license_reason: null };
  const found = app?.status?.findings?.find(({ rule }) => rule.startsWith('license/'));
  if (found !== undefined) return { license: null, license_reason: `The review found: ${found.message}` };
  return {
    license: null,
    license_reason: stars === null && reason !== null ? reason : 'The forge recognises no licence of this repository.',
  };
}
