// Starts the catalog: projects, benchmarks, their ranking and guides, and makes their endpoints.
import type { Registry } from 'prom-client';
import type { Logger } from '../../lib/log.ts';
import type { DirectoryOptions } from '../apps/index.ts';
import type { Endpoint } from '../http/index.ts';
import type { Models } from '../models/index.ts';
import type { Tools } from '../tools/index.ts';
import { type Bench, startBench } from './bench/index.ts';

export interface CatalogOptions {
  /** Like https://moorage.localhost, without a slash at the end. */
  readonly baseUrl: string;
  /** Hosted apps, as the cluster has them. */
  readonly apps: Omit<DirectoryOptions, 'baseUrl'>;
  /** The list of models, and the database that holds what was measured. */
  readonly models: Pick<Models, 'catalog' | 'ledger'>;
  /** Guides name tools, which have to exist. */
  readonly tools: Pick<Tools, 'toolRegistry'>;
  readonly registry: Registry;
  readonly log: Logger;
}

export interface Catalog {
  readonly endpoints: readonly Endpoint[];
  readonly bench: Bench;
}

export function startCatalog({ baseUrl, models }: CatalogOptions): Catalog {
  const bench = startBench({ baseUrl, ledger: models.ledger });
  return { endpoints: [...bench.endpoints], bench };
}
