// What tools that fetch are made of, for tests: the real fetcher and the real workers, allowed to reach the test's own servers.
import { GuardedFetcher } from '../../../api/tools/fetch/guarded-fetcher.ts';
import type { ServiceUrls } from '../../../api/tools/backing.ts';
import type { ToolServices } from '../../../api/tools/services.ts';
import { createWorkers } from '../../../api/tools/workers/pool.ts';

export function urlServices(allow: readonly string[], urls: ServiceUrls = {}): ToolServices {
  const none = (): never => { throw new Error('not part of this test'); };
  return {
    baseUrl: 'https://moorage.localhost', urls, fetcher: new GuardedFetcher({ allow }), workers: createWorkers(),
    get catalog() { return none(); }, get maxTokens() { return none(); }, apps: () => [], database: none,
  };
}
