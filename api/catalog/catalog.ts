// Starts the catalog: projects, benchmarks, their ranking and guides, and makes their endpoints.
import type { Registry } from 'prom-client';
import type { Logger } from '../../lib/log.ts';
import type { DirectoryOptions } from '../apps/index.ts';
import type { Endpoint } from '../http/index.ts';
import type { Models } from '../models/index.ts';
import type { Tools } from '../tools/index.ts';
import type { Money } from '../billing/index.ts';
import { type Guides, type SourceGuide, startGuides } from './guides/index.ts';

export interface CatalogOptions {
  /** Like https://moorage.localhost, without a slash at the end. */
  readonly baseUrl: string;
  /** Hosted apps, as the cluster has them. */
  readonly apps: Omit<DirectoryOptions, 'baseUrl'>;
  /** The list of models, and the database that holds what was measured. */
  readonly models: Pick<Models, 'catalog' | 'ledger'>;
  /** Guides name tools, which have to exist. */
  readonly tools: Pick<Tools, 'toolRegistry'>;
  /** What a caller without a key may spend a day, which guides state. */
  readonly freeQuota: Money;
  /** For tests with other tools: other guides. Default: those in manifests/guides. */
  readonly guides?: readonly SourceGuide[] | undefined;
  readonly registry: Registry;
  readonly log: Logger;
}

export interface Catalog {
  readonly endpoints: readonly Endpoint[];
  readonly guides: Guides;
}

export function startCatalog(options: CatalogOptions): Catalog {
  const guides = startGuides({
    baseUrl: options.baseUrl,
    freeQuota: options.freeQuota,
    catalog: options.models.catalog,
    toolRegistry: options.tools.toolRegistry,
    benchmarkOf: () => Promise.resolve(undefined),
    guides: options.guides,
  });
  return { guides, endpoints: [...guides.endpoints] };
}
