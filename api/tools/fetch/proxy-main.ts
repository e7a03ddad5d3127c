// The main program of the guarded proxy, which runs next to a Chromium that cannot reach anything else.
import { z } from 'zod';
import { count, readConfig } from '../../../lib/config.ts';
import { createLog } from '../../../lib/telemetry.ts';
import { readFetchConfig, Guard } from './guard.ts';
import { startGuardProxy } from './proxy.ts';

const settings = readConfig(
  z.object({
    MOORAGE_PROXY_HOST: z.string().default('127.0.0.1'),
    MOORAGE_PROXY_PORT: count.max(65_535).default(3128),
  }),
);
const log = createLog('proxy');
const proxy = await startGuardProxy({
  guard: new Guard(readFetchConfig()),
  host: settings.MOORAGE_PROXY_HOST,
  port: settings.MOORAGE_PROXY_PORT,
});
log.info({ url: proxy.url }, 'the guarded proxy is listening');

for (const signal of ['SIGTERM', 'SIGINT'] as const) {
  process.once(signal, () => {
    void proxy.close().then(() => {
      log.info('the guarded proxy has stopped');
    });
  });
}
