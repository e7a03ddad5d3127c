// A replica of the tools that take long, in a process of its own, to be killed in the middle: real HTTP and ledger, a
// scripted web.
import { z } from 'zod';
import { startServer } from '../../../api/http/server.ts';
import { createDeepResearchTool } from '../../../api/tools/builtin/deep-research/deep-research.ts';
import type { Fetcher } from '../../../api/tools/fetch/fetcher.ts';
import { defineTool } from '../../../api/tools/tool.ts';
import { silent } from '../api/sample.ts';
import { sampleToolApp } from './sample.ts';

const [databaseUrl = '', routerUrl = '', engineUrl = ''] = process.argv.slice(2);

/** Any page says what its address is. */
const fetcher: Fetcher = {
  fetch: (request) => fetcher.get(request),
  check: () => Promise.resolve(),
  get: ({ url }) =>
    Promise.resolve({
      url,
      status: 200,
      headers: new Headers({ 'content-type': 'text/plain' }),
      mediaType: 'text/plain',
      bytes: new TextEncoder().encode(`facts of ${url}`),
    }),
};

/** Takes long, and makes a file. */
const paint = defineTool({
  name: 'paint',
  title: 'Paint',
  description: 'Of the tests.',
  price: '0.0001',
  openWorld: false,
  long: true,
  artifacts: ['image/png'],
  input: z.strictObject({ bytes: z.int().describe('How many') }),
  output: z.object({ painted: z.int() }),
  example: { bytes: 3 },
  run: ({ bytes }, { report }) => {
    report({ done: 0.5, message: 'half of it' });
    return Promise.resolve({
      result: { painted: bytes },
      artifact: { bytes: new Uint8Array(bytes).fill(7), mediaType: 'image/png', fileName: 'painting.png' },
    });
  },
});

const sample = await sampleToolApp({
  fetcher,
  jobTimes: { leaseMs: 1_500, pollMs: 50 },
  make: (services) => [createDeepResearchTool(services), paint],
  environment: {
    DATABASE_URL: databaseUrl,
    MOORAGE_ROUTER_URL: routerUrl,
    MOORAGE_ROUTER_KEY: 'sk-platform-1234',
    MOORAGE_SEARXNG_URL: engineUrl,
    MOORAGE_FREE_QUOTA_USD: '10',
  },
});
const server = await startServer({ port: 0, host: '127.0.0.1', listener: sample.app, log: silent });
process.stdout.write(`${server.port}\n`);
