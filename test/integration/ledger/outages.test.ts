// A database that is lost while the API runs: every endpoint that needs it answers 503 with Retry-After within five seconds, and works
// again once the database does. Real PostgreSQL, frozen by SIGSTOP or behind a TCP proxy that freezes or resets.
import { randomUUID } from 'node:crypto';
import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Client, type ClientBase, type PoolConfig } from 'pg';
import { afterAll, beforeAll, test } from 'vitest';
import { Database, openPostgres } from '../../../api/billing/database/database.ts';
import { startWholeApi, type WholeApi } from '../../support/discovery/whole-api.ts';
import { waitUntil } from '../../support/kubernetes/until.ts';
import { findFreePort } from '../../support/free-port.ts';
import { toSuperuserUrl, makeCertificate, startPostgres, type Postgres } from '../../support/ledger/postgres.ts';
import { startTcpProxy, type TcpProxy } from '../../support/tcp-proxy.ts';

let postgres: Postgres;
let port: number;
let proxy: TcpProxy;
/** Accepts connections and says nothing. */
let silentServer: TcpProxy;
/** PostgreSQL without TLS. */
let withoutTls: { readonly port: number; readonly server: Postgres };
/** A superuser, over the unix socket. */
let admin: string;
const folder = mkdtempSync(join(tmpdir(), 'moorage-outages-'));

beforeAll(async () => {
  port = await findFreePort();
  const tls = await makeCertificate(folder, 'An authority that nobody trusts');
  postgres = await startPostgres({ durable: false, port, tls });
  admin = toSuperuserUrl(await postgres.createDatabase('outages'));
  await asAdmin('create role limited login superuser');
  proxy = await startTcpProxy({ host: '127.0.0.1', port });
  silentServer = await startTcpProxy({ host: '127.0.0.1', port });
  silentServer.freeze();
  const plainPort = await findFreePort();
  withoutTls = { port: plainPort, server: await startPostgres({ durable: false, port: plainPort }) };
}, 180_000);
afterAll(async () => {
  postgres.thaw();
  await Promise.all([proxy.stop(), silentServer.stop(), postgres.stop(), withoutTls.server.stop()]);
  rmSync(folder, { recursive: true, force: true });
});

async function asAdmin(...statements: readonly string[]): Promise<void> {
  const client = new Client({ connectionString: admin });
  await client.connect();
  for (const statement of statements) await client.query(statement);
  await client.end();
}

const proxyUrl = (): string => `postgres://limited@127.0.0.1:${proxy.port}/outages`;

interface Call {
  readonly path: string;
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
  /** Whether it also fails where a database can still be read. */
  readonly writes?: boolean;
}

const messages = [{ role: 'user', content: 'Hello' }];
/** One of each way in that needs the database. */
const calls: readonly Call[] = [
  { path: '/api/ask', body: { prompt: 'Hello' }, writes: true },
  {
    path: '/api/ask',
    body: { prompt: 'Hello' },
    headers: { 'idempotency-key': randomUUID() },
    writes: true,
  },
  { path: '/api/ask', body: { prompt: 'Hello', stream: true }, writes: true },
  { path: '/api/compare', body: { prompt: 'Hello' }, writes: true },
  { path: '/v1/chat/completions', body: { model: 'alpha-v4-flash', messages }, writes: true },
  { path: '/v1/embeddings', body: { model: 'embed-small', input: 'Hello' }, writes: true },
  { path: '/t/ask_model', body: { prompt: 'Hello' }, writes: true },
  { path: `/t/memory?s=${randomUUID()}`, body: { action: 'set', key: 'a', value: 'b' }, writes: true },
  { path: `/t/memory?s=${randomUUID()}`, body: { action: 'list' } },
  { path: '/t/artifacts/0000000000000000000000' },
  { path: '/api/usage' },
  { path: '/api/reconciliation' },
  { path: `/api/reconciliation/${new Date().toISOString().slice(0, 10)}` },
  { path: '/api/bench' },
];

interface Reply {
  readonly call: string;
  readonly status: number;
  readonly type: string | undefined;
  readonly retryAfter: string | null;
  readonly isInTime: boolean;
}

/**
 * Milliseconds of a clock that stands while other processes have the processor that this thread is ready to use: on a loaded
 * machine the API, which runs in this process, cannot respond earlier.
 */
function now(): number {
  // Nanoseconds that the main thread has run, and that it has waited for a processor.
  const [, queued = '0'] = readFileSync('/proc/self/schedstat', 'utf8').split(' ');
  return performance.now() - Number(queued) / 1e6;
}

async function send({ url }: WholeApi, { path, body, headers = {} }: Call): Promise<Reply> {
  const since = now();
  const response = await fetch(url + path, {
    headers: { 'content-type': 'application/json', ...headers },
    ...(body === undefined ? {} : { method: 'POST', body: JSON.stringify(body) }),
  });
  const text = await response.text();
  return {
    call: `${path} ${JSON.stringify(body)}`,
    status: response.status,
    type: /problems\/([a-z-]+)/.exec(text)?.[1],
    retryAfter: response.headers.get('retry-after'),
    isInTime: now() - since < 5_000,
  };
}

/** Every call, all at the same time: none waits behind another for longer than it may. */
async function expectUnavailable(api: WholeApi, affected: readonly Call[] = calls): Promise<void> {
  const expected = affected.map(({ path, body }) => ({
    call: `${path} ${JSON.stringify(body)}`,
    status: 503,
    type: 'ledger-unavailable',
    retryAfter: '5',
    isInTime: true,
  }));
  assert.deepEqual(await Promise.all(affected.map((call) => send(api, call))), expected);
}

/** The API on a database that was well when it opened it, or that `url` cannot reach. */
async function startOn(url: string, options: PoolConfig = {}): Promise<WholeApi> {
  return startWholeApi({
    databaseUrl: url,
    open: () => Promise.resolve(new Database(openPostgres(url, { application_name: 'outages', ...options }))),
  });
}

interface Outage {
  readonly name: string;
  readonly begin: () => void | Promise<void>;
  readonly end: () => void | Promise<void>;
  readonly affected?: readonly Call[];
}

const reconnect = `select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'outages'`;
const outages: readonly Outage[] = [
  { name: 'a server that has ended (connection refused)', begin: () => postgres.end(), end: () => postgres.start() },
  {
    name: 'a network that resets every connection',
    begin: () => {
      proxy.reset();
    },
    end: () => {
      proxy.thaw();
    },
  },
  {
    name: 'a network that passes nothing on',
    begin: () => {
      proxy.freeze();
    },
    end: () => {
      proxy.thaw();
    },
  },
  {
    name: 'a server that is stopped where it is (SIGSTOP)',
    begin: () => {
      postgres.freeze();
    },
    end: () => {
      postgres.thaw();
    },
  },
  {
    name: 'a server that became read-only',
    begin: () => asAdmin('alter database outages set default_transaction_read_only = on', reconnect),
    end: () =>
      asAdmin(
        'set default_transaction_read_only = off',
        'alter database outages reset default_transaction_read_only',
        reconnect,
      ),
    affected: calls.filter(({ writes }) => writes === true),
  },
  {
    name: 'too many connections',
    begin: () => asAdmin('alter role limited connection limit 0', 'alter role limited nosuperuser', reconnect),
    end: () => asAdmin('alter role limited connection limit -1', 'alter role limited superuser'),
  },
  {
    name: 'a role that may not connect any more',
    begin: () => asAdmin('alter role limited nologin', reconnect),
    end: () => asAdmin('alter role limited login'),
  },
];

for (const { name, begin, end, affected } of outages)
  test(`${name}: 503 within 5 seconds everywhere, and 200 once it is over`, async () => {
    const api = await startOn(proxyUrl());
    try {
      const ask: Call = { path: '/api/ask', body: { prompt: 'Hello' } };
      assert.equal((await send(api, ask)).status, 200);
      await begin();
      try {
        await expectUnavailable(api, affected);
      } finally {
        await end();
      }
      const recovers = async (): Promise<boolean> => (await send(api, ask)).status === 200;
      await waitUntil(recovers);
    } finally {
      await api.stop();
    }
  });

for (const { name, url, options } of [
  { name: 'a name that DNS does not have', url: () => 'postgres://limited@database.invalid/outages' },
  {
    name: 'a certificate that nobody vouches for',
    url: () => `postgres://limited@127.0.0.1:${port}/outages?sslmode=verify-full`,
  },
  {
    name: 'a server without TLS where the URL asks for it',
    url: () => `postgres://limited@127.0.0.1:${withoutTls.port}/outages?sslmode=verify-full`,
  },
  { name: 'a database that is not there', url: () => `postgres://limited@127.0.0.1:${port}/other` },
  {
    name: 'an address from which nothing comes back',
    url: () => `postgres://limited@127.0.0.1:${silentServer.port}/outages`,
  },
  {
    name: 'a pool whose one connection another statement holds',
    url: () => `postgres://limited@127.0.0.1:${port}/outages`,
    options: {
      max: 1,
      onConnect: (client: ClientBase) => void client.query('select pg_sleep(60)').catch(() => undefined),
    },
  },
] as const satisfies readonly { name: string; url: () => string; options?: PoolConfig }[])
  test(`${name}: 503 within 5 seconds everywhere`, async () => {
    const api = await startOn(url(), options);
    try {
      await expectUnavailable(api);
    } finally {
      await api.stop();
    }
  });
