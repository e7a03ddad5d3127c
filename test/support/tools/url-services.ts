// What tools that fetch are made of, for tests: the real fetcher and the real workers, allowed to reach the test's own
// servers.
import { fileURLToPath } from 'node:url';
import { readCatalog } from '../../../api/models/catalog.ts';
import type { ServiceUrls } from '../../../api/tools/services/backing-services.ts';
import { type Fetcher, GuardedFetcher } from '../../../api/tools/fetch/fetcher.ts';
import type { ToolDependencies } from '../../../api/tools/tool.ts';
import { createWorkers } from '../../../api/tools/engine/workers/pool.ts';
import { patience } from './call.ts';

export function urlServices(
  allow: readonly string[],
  urls: ServiceUrls = {},
  fetcher: Fetcher = new GuardedFetcher({ allow }),
): ToolDependencies {
  return {
    baseUrl: 'https://moorage.localhost',
    urls,
    speechModel: 'whisper-test',
    fetcher,
    artifacts: { get: () => Promise.resolve(undefined) },
    workers: createWorkers(patience),
    catalog: readCatalog(fileURLToPath(new URL('../../../api/models/models.yaml', import.meta.url))),
    maxTokens: { default: 1_000, max: 8_000 },
    apps: () => [],
    database: () => {
      throw new Error('not part of this test');
    },
  };
}
