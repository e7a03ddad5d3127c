// The API as processes over a real PostgreSQL and a real LiteLLM, and a client that many callers share.
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { stringify } from 'yaml';
import { formatMoney, fromPicoDollars } from '../../../api/billing/ledger/money.ts';
import { readCatalog } from '../../../api/models/catalog.ts';
import { type LiteLlm, type MockModel } from './litellm.ts';
import { findFreePort } from '../free-port.ts';

export interface ApiProcess {
  readonly url: string;
  /** At once, as a crash would. */
  kill(): Promise<void>;
  /** As an orderly end does. */
  stop(): Promise<void>;
}

export interface ApiSettings {
  readonly databaseUrl: string;
  readonly router: Pick<LiteLlm, 'url' | 'key'>;
  readonly environment?: Readonly<Record<string, string>>;
}

/** Processes that a failed test has left. */
const running = new Set<(signal: NodeJS.Signals) => Promise<void>>();

/** For the end of a file of tests. */
export async function endApis(): Promise<void> {
  await Promise.all([...running].map((end) => end('SIGKILL')));
}

const repository = join(import.meta.dirname, '..', '..', '..');

/** Starts `api/alone.ts`; callers' addresses are those in X-Forwarded-For. */
export async function startApi({ databaseUrl, router, environment = {} }: ApiSettings): Promise<ApiProcess> {
  const port = await findFreePort();
  const state = mkdtempSync(join(tmpdir(), 'moorage-api-'));
  // The same salt for all replicas, as in a cluster.
  writeFileSync(join(state, 'caller-salt'), 'a-salt-of-the-tests-that-is-long-enough');
  const child = spawn(process.execPath, [join(repository, 'api', 'alone.ts')], {
    stdio: ['ignore', 'ignore', 'inherit'],
    env: {
      ...process.env,
      LOG_LEVEL: 'fatal',
      MOORAGE_PORT: String(port),
      MOORAGE_STATE: state,
      DATABASE_URL: databaseUrl,
      MOORAGE_TRUSTED_PROXIES: '127.0.0.0/8',
      MOORAGE_ROUTER_KIND: 'litellm',
      MOORAGE_ROUTER_URL: router.url,
      MOORAGE_ROUTER_KEY: router.key,
      ...environment,
    },
  });
  const url = `http://127.0.0.1:${port}`;
  const end = async (signal: NodeJS.Signals): Promise<void> => {
    running.delete(end);
    const ended = once(child, 'exit');
    child.kill(signal);
    await ended;
    rmSync(state, { recursive: true, force: true });
  };
  running.add(end);
  await listening(url, child);
  return { url, kill: () => end('SIGKILL'), stop: () => end('SIGTERM') };
}

async function listening(url: string, child: ChildProcess): Promise<void> {
  for (;;) {
    if (child.exitCode !== null) throw new Error(`the API ended with ${child.exitCode}`);
    const answer = await fetch(`${url}/api/models`).catch(() => undefined);
    if (answer?.ok === true) return;
    await sleep(50);
  }
}

/** POSTs JSON as the caller with this address. */
export async function post(
  url: string,
  body: unknown,
  headers: Readonly<Record<string, string>> = {},
): Promise<Response> {
  return fetch(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: JSON.stringify(body),
  });
}

/** The models of models.yaml as LiteLLM offers them, at the same prices. */
export function createCatalogMocks(): MockModel[] {
  const { models, embeddings } = readCatalog();
  const perToken = (perMillion: bigint): string => formatMoney(fromPicoDollars(perMillion / 1_000_000n));
  return [
    ...models.map(({ upstream, in_per_m, out_per_m }) => ({
      name: upstream,
      inPerToken: perToken(in_per_m),
      outPerToken: perToken(out_per_m),
    })),
    ...embeddings.map(({ upstream, in_per_m }) => ({
      name: upstream,
      inPerToken: perToken(in_per_m),
      outPerToken: '0',
      embedding: true,
    })),
  ];
}

/** A model whose 20 tokens of answer cost 0.00002 USD: with max_tokens 20, just what is held for it. */
export const exactMock: MockModel = { name: 'exact', inPerToken: '0', outPerToken: '0.000001', delaySeconds: 1 };
export const exactCost = '0.00002';
export const exactQuestion = { prompt: 'Hello', max_tokens: 20 };

/** A models.yaml with that one model. @returns its path */
export function exactModelsFile(folder: string): string {
  const file = join(folder, 'models.yaml');
  writeFileSync(
    file,
    stringify({
      models: [
        {
          id: 'exact',
          label: 'Exact',
          maker: 'test',
          quality: 'light',
          tier: 'free',
          in_per_m: '0',
          out_per_m: '1',
          upstream: 'exact',
        },
      ],
    }),
  );
  return file;
}

/** Runs jobs with so many at once. */
export async function runInParallel<Job, Result>(
  jobs: readonly Job[],
  width: number,
  run: (job: Job, index: number) => Promise<Result>,
): Promise<Result[]> {
  const results = new Array<Result>(jobs.length);
  const queue = jobs.entries();
  await Promise.all(
    Array.from({ length: width }, async () => {
      for (const [index, job] of queue) results[index] = await run(job, index);
    }),
  );
  return results;
}
