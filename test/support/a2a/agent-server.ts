// A replica of the agent in a process of its own, to be killed in the middle: real HTTP, ledger and fetcher.
import { existsSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { startServer } from '../../../api/http/server.ts';
import { GuardedFetcher } from '../../../api/tools/fetch/fetcher.ts';
import { silent } from '../api/sample.ts';
import { findFreePort } from '../free-port.ts';
import { sampleToolApp } from '../tools/sample.ts';
import { digTool } from './tools.ts';

/** The gate is a file: open while it exists. */
const [databaseUrl = '', gate = '', receiver = ''] = process.argv.slice(2);
const port = await findFreePort();
const sample = await sampleToolApp({
  tools: [
    digTool(async () => {
      while (!existsSync(gate)) await sleep(20);
    }),
  ],
  environment: { DATABASE_URL: databaseUrl },
  fetcher: new GuardedFetcher({ allow: [receiver] }),
  jobTimes: { leaseMs: 1_500, pollMs: 50 },
  pushTimes: { leaseMs: 1_500, firstMs: 20, pollMs: 50 },
  baseUrl: `http://127.0.0.1:${port}`,
});
await startServer({ port, host: '127.0.0.1', listener: sample.app, log: silent });
process.stdout.write(`${port}\n`);
