// Starts the catalog: projects, benchmarks, their ranking and guides, and makes their endpoints.
import type { Registry } from 'prom-client';
import type { Logger } from '../../lib/telemetry.ts';
import type { DirectoryOptions } from '../apps/index.ts';
import type { Money } from '../billing/index.ts';
import type { Endpoint } from '../http/index.ts';
import type { Models } from '../models/index.ts';
import type { Fetcher, Tools } from '../tools/index.ts';
import { type Bench, startBench } from './bench/bench.ts';
import { type Guides, startGuides } from './guides/guides.ts';
import type { SourceGuide } from './guides/source.ts';
import { bindAuthor } from '../accounting/index.ts';
import { parseForgeRepository } from './projects/forges.ts';
import { createProjectEndpoints } from './projects/endpoints.ts';
import { Projects } from './projects/projects.ts';
import { readCatalogApps } from './projects/records.ts';
import { startStars } from './projects/stars.ts';
import { createTelemetryReader } from './projects/telemetry.ts';
import { createRankEndpoints } from './rank/endpoints.ts';
import { Ranking } from './rank/ranking.ts';
import { startRetention } from './rank/retention.ts';
import { startStability } from './rank/stability.ts';

export interface CatalogOptions {
  /** Like https://moorage.localhost, without a slash at the end. */
  readonly baseUrl: string;
  /** Hosted apps, as the cluster has them. */
  readonly apps: Omit<DirectoryOptions, 'baseUrl'>;
  /** The list of models, and the database that holds what was measured. */
  readonly models: Pick<Models, 'catalog' | 'ledger'>;
  /** Guides name tools, which have to exist. */
  readonly tools: Pick<Tools, 'toolRegistry'>;
  /** Asks forges for stars. */
  readonly fetcher: Fetcher;
  /** What a caller without a key may spend a day, which guides state. */
  readonly freeQuota: Money;
  /** For tests with other tools: other guides. Default: those in manifests/guides. */
  readonly guides?: readonly SourceGuide[] | undefined;
  readonly registry: Registry;
  readonly log: Logger;
  /** Aborted when the process is about to end. */
  readonly ending: AbortSignal;
}

export interface Catalog {
  readonly endpoints: readonly Endpoint[];
  readonly projects: Projects;
  readonly ranking: Ranking;
  readonly bench: Bench;
  readonly guides: Guides;
}

export function startCatalog(options: CatalogOptions): Catalog {
  const { baseUrl, apps, models, fetcher, log, ending } = options;
  const { ledger } = models;
  const bench = startBench({ baseUrl, ledger });
  const stars = startStars({
    ledger,
    fetcher,
    log,
    ending,
    listRepositories: () => projects.listRepositories(),
    onAccountFound: async (database, url, account) => {
      const { host, path } = parseForgeRepository(url) ?? { host: '', path: [] };
      const author = `${host}/${path[0] ?? ''}`.toLowerCase();
      if ((await bindAuthor(database, { author, account })) === 'frozen')
        log.error({ author, account }, 'the account of an author changed at the forge: their earnings are frozen');
    },
  });
  const projects: Projects = new Projects({
    baseUrl,
    apps,
    catalog: readCatalogApps(),
    stars,
    readTelemetry: createTelemetryReader({ ledger, log }),
    readBenchmark: (slug) => bench.readEntry(slug),
  });
  const ranking = new Ranking({
    baseUrl,
    projects,
    retentions: startRetention({ ledger }),
    stabilities: startStability({ ledger }),
    readBenchmarks: () => bench.readFigures(),
    readVisits: () => bench.readVisitFigures(),
  });
  const guides = startGuides({
    baseUrl,
    freeQuota: options.freeQuota,
    catalog: models.catalog,
    toolRegistry: options.tools.toolRegistry,
    readBenchmark: (slug) => bench.readBenchmark(slug),
    guides: options.guides,
  });
  return {
    projects,
    ranking,
    bench,
    guides,
    endpoints: [
      ...createProjectEndpoints(projects, baseUrl),
      ...bench.endpoints,
      ...createRankEndpoints(ranking, baseUrl),
      ...guides.endpoints,
    ],
  };
}
