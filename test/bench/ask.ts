// Compares the ways to one mock upstream on this machine: direct, through a proxy that does nothing but one durable row
// before each call (the raw limit), through a LiteLLM proxy, and through POST /api/ask with the ledger on PostgreSQL.
//   npm run bench:ask -- --rate 40 --seconds 20 --width 32,128 --delay 20 --warm 400 --paths direct,bare,LiteLLM,ours
// The rate must stay well below what the slowest path can do (about 60 a second for LiteLLM on 2 cores), or its queue
// is what is measured. So few callers as 32 keep no path busy that answers in the time of the upstream: what a path can
// do at most is seen with many.
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { cpus, tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Agent, request } from 'undici';
import { toPlatformAccount } from '../../api/billing/ledger/accounts.ts';
import { Ledger } from '../../api/billing/ledger/ledger.ts';
import { formatMoney, negate, fromPicoDollars } from '../../api/billing/ledger/money.ts';
import { openLedgerDatabase } from '../../api/billing/database/database.ts';
import { readCommandLine, parseWholeNumber } from '../../lib/command-line.ts';
import { startLiteLlm } from '../support/models/litellm.ts';
import { startApi } from '../support/models/lab.ts';
import { startPostgres } from '../support/ledger/postgres.ts';
import { findFreePort } from '../support/free-port.ts';

const usage = `usage: npm run bench:ask -- [--rate N] [--seconds N] [--width N] [--delay N] [--warm N] [--paths LIST]

  --rate N       calls a second (40)
  --seconds N    seconds of each measurement (20)
  --width LIST   callers without a pause, each number measured by itself (32,128)
  --delay N      milliseconds until the upstream answers (20)
  --warm N       calls before a measurement (400)
  --paths LIST   what to measure, separated by commas (direct,bare,LiteLLM,ours)`;

const { rate, seconds, widths, warm, delay, paths } = readCommandLine(
  {
    usage,
    options: {
      rate: { type: 'string', default: '40' },
      seconds: { type: 'string', default: '20' },
      width: { type: 'string', default: '32,128' },
      delay: { type: 'string', default: '20' },
      warm: { type: 'string', default: '400' },
      paths: { type: 'string', default: 'direct,bare,LiteLLM,ours' },
    },
  },
  ({ values }) => ({
    rate: parseWholeNumber('--rate', values.rate),
    seconds: parseWholeNumber('--seconds', values.seconds),
    widths: values.width.split(',').map((width) => parseWholeNumber('--width', width)),
    delay: parseWholeNumber('--delay', values.delay, { minimum: 0 }),
    warm: parseWholeNumber('--warm', values.warm, { minimum: 0 }),
    paths: new Set(values.paths.split(',')),
  }),
);

interface Target {
  readonly name: string;
  readonly url: string;
  readonly body: object;
  readonly headers: Readonly<Record<string, string>>;
}

interface Measured {
  readonly latencies: number[];
  readonly failed: number;
  readonly perSecond: number;
}

const agent = new Agent({ connections: 512, pipelining: 1 });

async function call(target: Target, index: number): Promise<boolean> {
  const { statusCode, body } = await request(target.url, {
    method: 'POST',
    dispatcher: agent,
    body: JSON.stringify(target.body),
    headers: { 'content-type': 'application/json', 'x-forwarded-for': `198.51.${index % 200}.1`, ...target.headers },
  });
  await body.dump();
  return statusCode === 200;
}

/** Requests begin at a fixed rate, whether or not those before have ended: waiting in a queue counts as latency. */
async function atFixedRate(target: Target): Promise<Measured> {
  const latencies: number[] = [];
  let failed = 0;
  const start = performance.now();
  const all = Array.from({ length: rate * seconds }, async (_, index) => {
    const due = start + (index * 1000) / rate;
    await sleep(Math.max(0, due - performance.now()));
    const began = performance.now();
    if (await call(target, index).catch(() => false)) latencies.push(performance.now() - began);
    else failed += 1;
  });
  await Promise.all(all);
  return { latencies, failed, perSecond: latencies.length / ((performance.now() - start) / 1000) };
}

/** So many callers, each with one request after the other. */
async function asFastAsItGoes(target: Target, width: number): Promise<Measured> {
  const latencies: number[] = [];
  let [failed, index] = [0, 0];
  const start = performance.now();
  await Promise.all(
    Array.from({ length: width }, async () => {
      while (performance.now() - start < seconds * 1000) {
        const began = performance.now();
        if (await call(target, (index += 1)).catch(() => false)) latencies.push(performance.now() - began);
        else failed += 1;
      }
    }),
  );
  return { latencies, failed, perSecond: latencies.length / ((performance.now() - start) / 1000) };
}

/**
 * Calls that count for nothing, so that each path is measured as a process that has served for a while, with callers
 * that it knows. @returns how many were answered
 */
async function warmUp(target: Target): Promise<number> {
  let [index, answered] = [0, 0];
  await Promise.all(
    Array.from({ length: 8 }, async () => {
      while (index < warm) if (await call(target, (index += 1)).catch(() => false)) answered += 1;
    }),
  );
  return answered;
}

function quantile(sorted: readonly number[], q: number): number {
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * q))] ?? Number.NaN;
}

function line(name: string, { latencies, failed, perSecond }: Measured): string {
  const sorted = latencies.toSorted((a, b) => a - b);
  const quantiles = [0.5, 0.95, 0.99].map((q) => quantile(sorted, q).toFixed(1).padStart(8)).join(' ');
  return `${name.padEnd(8)} ${perSecond.toFixed(1).padStart(8)} ${quantiles} ${String(failed).padStart(7)}`;
}

async function startServer(file: string, ...args: string[]): Promise<{ url: string; process: ChildProcess }> {
  const port = await findFreePort();
  const child = spawn(process.execPath, [join(import.meta.dirname, file), String(port), ...args], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  await once(child.stdout, 'data');
  return { url: `http://127.0.0.1:${port}`, process: child };
}

const folder = mkdtempSync(join(tmpdir(), 'moorage-bench-'));
const modelsFile = join(folder, 'models.yaml');
writeFileSync(
  modelsFile,
  JSON.stringify({
    models: [
      {
        id: 'bench',
        label: 'Bench',
        maker: 'bench',
        quality: 'light',
        tier: 'free',
        in_per_m: '1',
        out_per_m: '1',
        upstream: 'bench',
      },
    ],
  }),
);
const [postgres, upstream] = await Promise.all([startPostgres(), startServer('mock-upstream.ts', String(delay))]);
const bare = paths.has('bare')
  ? await startServer('bare-proxy.ts', upstream.url, await postgres.createEmptyDatabase('bare'))
  : undefined;
const liteLlm = paths.has('LiteLLM')
  ? await startLiteLlm([{ name: 'bench', inPerToken: '0', outPerToken: '0.000001', apiBase: upstream.url }])
  : undefined;
const databaseUrl = await postgres.createDatabase('bench');
const ours = await startApi({
  databaseUrl,
  router: { url: upstream.url, key: 'sk-bench-12345678' },
  environment: {
    MOORAGE_ROUTER_KIND: 'openrouter',
    MOORAGE_MODELS_FILE: modelsFile,
    // As the chart sets it.
    MOORAGE_JOURNAL: join(folder, 'journal'),
    MOORAGE_FREE_QUOTA_USD: '1000',
    MOORAGE_DAILY_CAP_USD: '100000',
  },
});

const completion = { model: 'bench', messages: [{ role: 'user', content: 'Hello' }], max_tokens: 100 };
const all: readonly Target[] = [
  { name: 'direct', url: `${upstream.url}/chat/completions`, body: completion, headers: {} },
  { name: 'bare', url: bare?.url ?? '', body: completion, headers: {} },
  {
    name: 'LiteLLM',
    url: `${liteLlm?.url ?? ''}/chat/completions`,
    body: completion,
    headers: { authorization: `Bearer ${liteLlm?.key ?? ''}` },
  },
  { name: 'ours', url: `${ours.url}/api/ask`, body: { prompt: 'Hello', max_tokens: 100 }, headers: {} },
];
const targets = all.filter(({ name }) => paths.has(name));
process.stdout.write(
  `${cpus().length} processors; upstream answers after ${delay} ms; one process each of LiteLLM and the API; the load comes from the same machine\n`,
);
let calls = 0n;
for (const [title, run] of [
  [`${rate} requests/s for ${seconds} s`, atFixedRate] as const,
  ...widths.map(
    (width) =>
      [`${width} callers without a pause for ${seconds} s`, (target: Target) => asFastAsItGoes(target, width)] as const,
  ),
]) {
  process.stdout.write(
    `\n${title}\n${'path'.padEnd(8)} ${'req/s'.padStart(8)} ${'p50 ms'.padStart(8)} ${'p95 ms'.padStart(8)} ${'p99 ms'.padStart(8)}  failed\n`,
  );
  for (const target of targets) {
    const before = await warmUp(target);
    const measured = await run(target);
    if (target.name === 'ours') calls += BigInt(before + measured.latencies.length);
    process.stdout.write(`${line(target.name, measured)}\n`);
  }
}
await ours.stop();
const database = await openLedgerDatabase(databaseUrl);
const booked = negate(await new Ledger(database).balance(toPlatformAccount('openrouter')));
process.stdout.write(
  `\nbooked ${formatMoney(booked)} USD for ${calls.toString()} calls: ${booked === fromPicoDollars(calls * 20_000_000n) ? 'exact' : 'WRONG'}\n`,
);
await database.close();
await liteLlm?.stop();
for (const server of [upstream, bare]) server?.process.kill();
await postgres.stop();
await agent.close();
rmSync(folder, { recursive: true });
