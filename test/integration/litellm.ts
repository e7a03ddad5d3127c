// Starts a real LiteLLM proxy on loopback: installed from PyPI once, mock models that cost by its price map, its own spend records collected.
import { execFileSync, spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { stringify } from 'yaml';
import { z } from 'zod';
import { parseBilled, type Money } from '../../api/ledger/money.ts';
import { parseExact } from '../../api/models/router/exact-json.ts';
import { paths } from '../../cluster/paths.ts';

/** The newest version whose dependencies can be had from a mirror that lags behind. */
const version = '1.106.0';

/** A model that answers without asking anyone. Its prompt counts as 10 tokens and its answer as 20, whatever they are; a stream is counted as it is. */
export interface MockModel {
  readonly name: string;
  /** USD per token, in plain decimals. */
  readonly inPerToken: string;
  readonly outPerToken: string;
  readonly delaySeconds?: number;
  /** Like `litellm.RateLimitError`, to fail. */
  readonly answer?: string;
  readonly embedding?: boolean;
}

export interface LiteLlm {
  readonly url: string;
  /** Its master key. */
  readonly key: string;
  /**
   * What it has booked, by the call id that it was given, once there are that many records. The records are LiteLLM's standard logging payloads,
   * written by its own generic API logger. (Its other record, the spend log table, needs engines that are in no package registry.)
   */
  spent(records: number): Promise<ReadonlyMap<string, Money>>;
  stop(): Promise<void>;
}

/** Starts the proxy. Stop it at the end. */
export async function startLiteLlm(models: readonly MockModel[], workers = 1): Promise<LiteLlm> {
  const program = install();
  const folder = mkdtempSync(join(tmpdir(), 'moorage-litellm-'));
  const key = 'sk-platform-0123456789';
  const spent = new Map<string, Money>();
  const sink = await startSink(spent);
  const port = await freePort();
  writeFileSync(join(folder, 'config.yaml'), stringify(configOf(models, key)));
  const child = spawn(program, ['--config', 'config.yaml', '--host', '127.0.0.1', '--port', String(port), '--num_workers', String(workers)], {
    cwd: folder, stdio: ['ignore', 'ignore', 'ignore'], detached: true,
    env: {
      ...process.env, GENERIC_LOGGER_ENDPOINT: `http://127.0.0.1:${portOf(sink)}/`, DEFAULT_FLUSH_INTERVAL_SECONDS: '1',
      LITELLM_LOCAL_MODEL_COST_MAP: 'True', LITELLM_TELEMETRY: 'False', DISABLE_ADMIN_UI: 'True', LITELLM_LOG: 'ERROR', LITELLM_MODE: 'PRODUCTION',
    },
  });
  const atExit = (): void => { endGroup(child); };
  process.once('exit', atExit);
  const url = `http://127.0.0.1:${port}`;
  await alive(url, child);
  return {
    url, key,
    async spent(records) {
      while (spent.size < records) await sleep(100);
      return spent;
    },
    async stop() {
      process.off('exit', atExit);
      const ended = once(child, 'exit');
      endGroup(child);
      await ended;
      sink.closeAllConnections();
      sink.close();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

/** A port of this machine that is free now. */
export async function freePort(): Promise<number> {
  const server = createServer();
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const port = portOf(server);
  server.close();
  await once(server, 'close');
  return port;
}

function install(): string {
  const folder = join(paths.cache, 'litellm', version);
  const program = join(folder, 'bin', 'litellm');
  const complete = join(folder, '.complete');
  if (existsSync(complete)) return program;
  mkdirSync(folder, { recursive: true });
  try {
    execFileSync('python3', ['-m', 'venv', folder], { stdio: 'ignore' });
  } catch {
    execFileSync('apt-get', ['install', '-q', '-y', '--no-install-recommends', 'python3-venv'], { env: { ...process.env, DEBIAN_FRONTEND: 'noninteractive' }, stdio: 'ignore' });
    execFileSync('python3', ['-m', 'venv', '--clear', folder], { stdio: 'ignore' });
  }
  execFileSync(join(folder, 'bin', 'pip'), ['install', '-q', '--disable-pip-version-check', `litellm[proxy]==${version}`], { stdio: ['ignore', 'ignore', 'inherit'] });
  writeFileSync(complete, '');
  return program;
}

function configOf(models: readonly MockModel[], key: string): object {
  return {
    model_list: models.map(({ name, inPerToken, outPerToken, delaySeconds, answer, embedding }) => ({
      model_name: name,
      litellm_params: {
        model: `openai/${name.replaceAll('/', '-')}`, api_key: 'none', mock_response: embedding === true ? [0.25, -0.5] : (answer ?? 'one two three four five six seven eight nine ten'),
        input_cost_per_token: Number(inPerToken), output_cost_per_token: Number(outPerToken), ...(delaySeconds === undefined ? {} : { mock_delay: delaySeconds }),
      },
      ...(embedding === true ? { model_info: { mode: 'embedding' } } : {}),
    })),
    litellm_settings: { callbacks: ['generic_api'], include_cost_in_streaming_usage: true, telemetry: false, num_retries: 0 },
    router_settings: { disable_cooldowns: true },
    general_settings: { master_key: key },
  };
}

const records = z.array(z.looseObject({ litellm_call_id: z.string(), status: z.string(), response_cost: z.string() }));

async function startSink(spent: Map<string, Money>): Promise<Server> {
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => { chunks.push(chunk); });
    request.on('end', () => {
      for (const record of records.parse(parseExact(Buffer.concat(chunks).toString('utf8')))) {
        if (record.status === 'success') spent.set(record.litellm_call_id, parseBilled(record.response_cost));
      }
      response.end();
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return server;
}

async function alive(url: string, child: ChildProcess): Promise<void> {
  for (;;) {
    if (child.exitCode !== null) throw new Error(`LiteLLM ended with ${child.exitCode}`);
    const answer = await fetch(`${url}/health/liveliness`).catch(() => undefined);
    if (answer?.ok === true) return;
    await sleep(200);
  }
}

/** Workers are children of their own. */
function endGroup(child: ChildProcess): void {
  if (child.pid === undefined || child.exitCode !== null) return;
  process.kill(-child.pid, 'SIGKILL');
}

function portOf(server: Server): number {
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('the server does not listen');
  return address.port;
}
