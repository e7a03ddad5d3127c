// A real Prometheus on loopback, in a temporary folder, that scrapes what it is given and judges by rules.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { stringify } from 'yaml';
import { z } from 'zod';
import { findFreePort } from '../free-port.ts';
import { prometheusProgram } from './programs.ts';

const labels = z.record(z.string(), z.string());
const sample = z.tuple([z.number(), z.string()]);
const instant = z.object({ data: z.object({ result: z.array(z.object({ metric: labels, value: sample })) }) });
const range = z.object({ data: z.object({ result: z.array(z.object({ metric: labels, values: z.array(sample) })) }) });
const alerts = z.object({
  data: z.object({
    alerts: z.array(z.object({ labels, annotations: labels, state: z.enum(['pending', 'firing']) })),
  }),
});

export type Labels = z.output<typeof labels>;
export type Alerts = z.output<typeof alerts>['data']['alerts'];

/** A series over time; times in seconds since 1970. */
export interface Series {
  readonly metric: Labels;
  readonly values: readonly (readonly [number, number])[];
}

export interface Prometheus {
  readonly url: string;
  /** The newest value of each series that the query returns. */
  query(expr: string): Promise<{ metric: Labels; value: number }[]>;
  queryRange(expr: string, window: { start: number; end: number; step: number }): Promise<Series[]>;
  /** Alerts that are pending or fire. */
  alerts(): Promise<Alerts>;
  stop(): Promise<void>;
}

export interface PrometheusOptions {
  /** Addresses (host:port) by job. */
  readonly targets: Readonly<Record<string, readonly string[]>>;
  /** A rule file. */
  readonly rules?: string;
  /** Seconds between scrapes, by job; one unless given. A scrape waits no longer. */
  readonly intervals?: Readonly<Record<string, number>>;
}

/** Reads from one that runs. */
export function createPrometheusClient(url: string): Omit<Prometheus, 'stop'> {
  const ask = async <Schema extends z.ZodType>(
    path: string,
    query: Record<string, string>,
    schema: Schema,
  ): Promise<z.output<Schema>> => {
    const response = await fetch(`${url}/api/v1/${path}?${new URLSearchParams(query).toString()}`);
    const body: unknown = await response.json();
    if (!response.ok) throw new Error(`${path} ${query['query'] ?? ''}: ${JSON.stringify(body)}`);
    return schema.parse(body);
  };
  return {
    url,
    query: async (expr) =>
      (await ask('query', { query: expr }, instant)).data.result.map(({ metric, value }) => ({
        metric,
        value: Number(value[1]),
      })),
    queryRange: async (expr, { start, end, step }) =>
      (
        await ask('query_range', { query: expr, start: String(start), end: String(end), step: String(step) }, range)
      ).data.result.map(({ metric, values }) => ({ metric, values: values.map(([at, value]) => [at, Number(value)]) })),
    alerts: async () => (await ask('alerts', {}, alerts)).data.alerts,
  };
}

/** Starts it; judges every second. */
export async function startPrometheus(options: PrometheusOptions): Promise<Prometheus> {
  const { targets, rules, intervals = {} } = options;
  const program = await prometheusProgram('prometheus');
  const folder = await mkdtemp(join(tmpdir(), 'moorage-prometheus-'));
  const config = {
    global: { evaluation_interval: '1s' },
    ...(rules === undefined ? {} : { rule_files: ['rules.yaml'] }),
    scrape_configs: Object.entries(targets).map(([job, addresses]) => {
      const interval = `${intervals[job] ?? 1}s`;
      return {
        job_name: job,
        scrape_interval: interval,
        scrape_timeout: interval,
        static_configs: [{ targets: addresses }],
      };
    }),
  };
  await writeFile(join(folder, 'prometheus.yaml'), stringify(config));
  if (rules !== undefined) await writeFile(join(folder, 'rules.yaml'), rules);
  const address = `127.0.0.1:${await findFreePort()}`;
  const child = spawn(
    program,
    [
      `--config.file=${join(folder, 'prometheus.yaml')}`,
      `--storage.tsdb.path=${join(folder, 'data')}`,
      `--web.listen-address=${address}`,
    ],
    { cwd: folder, stdio: ['ignore', 'ignore', 'pipe'] },
  );
  const written: string[] = [];
  child.stderr.on('data', (chunk: Buffer) => written.push(chunk.toString()));
  const atExit = (): void => void child.kill('SIGKILL');
  process.once('exit', atExit);
  const url = `http://${address}`;
  for (;;) {
    if (child.exitCode !== null) throw new Error(`Prometheus ended: ${written.join('')}`);
    const answer = await fetch(`${url}/-/ready`).catch(() => undefined);
    if (answer?.ok === true) break;
    await sleep(50);
  }
  const prometheus = createPrometheusClient(url);
  // What happens before the first scrape is no increase.
  const count = Object.values(targets).flat().length;
  while ((await prometheus.query('up == 1')).length < count) await sleep(100);
  return {
    ...prometheus,
    async stop() {
      process.off('exit', atExit);
      if (child.exitCode === null) {
        const ended = once(child, 'exit');
        child.kill('SIGKILL');
        await ended;
      }
      await rm(folder, { recursive: true, force: true });
    },
  };
}
