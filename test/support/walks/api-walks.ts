// Two walks through the API over a real PostgreSQL, as the chart configures it: a prompt, and a call of a tool.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startServer } from '../../../api/http/server.ts';
import { silent } from '../api/sample.ts';
import { startPostgres } from '../ledger/postgres.ts';
import { completion, reply, startScriptedRouter } from '../models/scripted-router.ts';
import { echo } from '../tools/sample-tools.ts';
import { sampleToolApp } from '../tools/sample.ts';
import type { StartedWalk, Walk } from './walks.ts';

const model = {
  id: 'plain',
  label: 'Plain',
  maker: 'test',
  quality: 'light',
  tier: 'free',
  in_per_m: '1',
  out_per_m: '1',
  upstream: 'plain',
};

/** Starts the API. Its callers have no key, and reach it through a gateway. */
async function startApi(send: (url: string) => Promise<Response>): Promise<StartedWalk> {
  const folder = mkdtempSync(join(tmpdir(), 'moorage-walks-'));
  const models = join(folder, 'models.yaml');
  writeFileSync(models, JSON.stringify({ models: [model] }));
  const [postgres, router] = await Promise.all([
    startPostgres(),
    startScriptedRouter({
      plain: reply(200, completion('{"prompt_tokens":5,"completion_tokens":1,"cost":0.000006}')),
    }),
  ]);
  const sample = await sampleToolApp({
    tools: [echo],
    environment: {
      DATABASE_URL: await postgres.createDatabase('walks'),
      MOORAGE_JOURNAL: join(folder, 'journal'),
      MOORAGE_MODELS_FILE: models,
      MOORAGE_ROUTER_KIND: 'openrouter',
      MOORAGE_ROUTER_URL: router.url,
      MOORAGE_ROUTER_KEY: 'sk-walks-12345678',
    },
  });
  const server = await startServer({ port: 0, host: '127.0.0.1', listener: sample.app, log: silent });
  return {
    async take() {
      const response = await send(`http://127.0.0.1:${server.port}`);
      const text = await response.text();
      if (!response.ok) throw new Error(`the API answered with ${response.status}: ${text}`);
    },
    async stop() {
      await server.drain({ graceMs: 0, limitMs: 1_000, endStreams: () => undefined });
      await sample.stop();
      await router.close();
      await postgres.stop();
      rmSync(folder, { recursive: true });
    },
  };
}

const gateway = { 'x-forwarded-for': '198.51.100.7' };

export const apiWalks: readonly Walk[] = [
  {
    name: 'ask',
    title: 'POST /api/ask without a key, from the request to its cost in the ledger',
    target: 14,
    settleMs: 150,
    runs: 6,
    start: () =>
      startApi((url) =>
        fetch(`${url}/api/ask`, {
          method: 'POST',
          headers: { ...gateway, 'content-type': 'application/json' },
          body: JSON.stringify({ model: model.id, prompt: 'Hello', max_tokens: 20 }),
        }),
      ),
  },
  {
    name: 'tool',
    title: 'GET /t/echo, a tool of the tests, without a key',
    target: 14,
    settleMs: 150,
    runs: 6,
    start: () => startApi((url) => fetch(`${url}/t/echo?text=hello`, { headers: gateway })),
  },
];
