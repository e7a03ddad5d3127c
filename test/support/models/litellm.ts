// Starts a real LiteLLM proxy on loopback: installed from PyPI once, mock models that cost by its price map, its own
// spend records collected. The files of a run share a process that has imported LiteLLM, and each gets forks of it.
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { stringify } from 'yaml';
import { z } from 'zod';
import { parseBilled, type Money } from '../../../api/billing/ledger/money.ts';
import { parseExact } from '../../../api/models/router/openrouter.ts';
import { runExclusively } from '../exclusively.ts';
import { paths } from '../../../localnode/paths.ts';
import { findFreePort } from '../free-port.ts';
import { openLease } from '../servers/lease.ts';

/** The newest version whose dependencies can be had from a mirror that lags behind. */
const version = '1.106.0';

/**
 * A model that answers without asking anyone. Its prompt counts as 10 tokens and its answer as 20, whatever they are; a
 * stream is counted as it is.
 */
export interface MockModel {
  readonly name: string;
  /** USD per token, in plain decimals. */
  readonly inPerToken: string;
  readonly outPerToken: string;
  readonly delaySeconds?: number;
  /** Like `litellm.RateLimitError`, to fail. */
  readonly answer?: string;
  readonly embedding?: boolean;
  /** Asks this server, instead of answering by itself. */
  readonly apiBase?: string;
}

export interface LiteLlm {
  readonly url: string;
  /** Its master key. */
  readonly key: string;
  /**
   * What it has booked, by the call id that it was given, once there are that many records. The records are LiteLLM's
   * own,
   * from which it also fills its table of spend logs; that table needs database engines which are in no package
   * registry.
   */
  spent(records: number): Promise<ReadonlyMap<string, Money>>;
  /** The rows that it would put into that table, as JSON texts: made by its own code. */
  spendLogs(): readonly string[];
  stop(): Promise<void>;
}

/** Starts the proxy. Stop it at the end. */
export async function startLiteLlm(models: readonly MockModel[], workers = 1): Promise<LiteLlm> {
  const folder = mkdtempSync(join(tmpdir(), 'moorage-litellm-'));
  const key = 'sk-platform-0123456789';
  const port = await findFreePort();
  const logs = { SPEND_LOG: join(folder, 'spend.jsonl'), SPEND_ROWS: join(folder, 'rows.jsonl') };
  writeFileSync(join(folder, 'spend_log.py'), writer);
  writeFileSync(join(folder, 'config.yaml'), stringify(buildConfig(models, key)));
  const start = {
    folder,
    arguments: ['--config', 'config.yaml', '--host', '127.0.0.1', '--port', String(port)],
    environment: logs,
  };
  // Workers are made by a parent of LiteLLM's own, which imports the application in each of them.
  const program = (workers === 1 ? await forkShared(start) : undefined) ?? (await spawnProgram(start, workers));
  const url = `http://127.0.0.1:${port}`;
  await alive(url, program);
  return {
    url,
    key,
    async spent(records) {
      for (;;) {
        const spent = readSpent(logs.SPEND_LOG);
        if (spent.size >= records) return spent;
        await sleep(100);
      }
    },
    spendLogs: () => wholeLines(logs.SPEND_ROWS),
    async stop() {
      await program.stop();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

/** Where a LiteLLM runs, its command line, and what its environment has that others' has not. */
export interface LiteLlmStart {
  readonly folder: string;
  readonly arguments: readonly string[];
  readonly environment: Readonly<Record<string, string>>;
}

interface RunningLiteLlm {
  isRunning(): boolean;
  stop(): Promise<void>;
}

/** A fork for as long as this file runs. @returns undefined outside of a run that shares servers */
async function forkShared(start: LiteLlmStart): Promise<RunningLiteLlm | undefined> {
  const lease = await openLease();
  if (lease === undefined) return undefined;
  const pid = await lease.request({ want: 'litellm', start }, z.int());
  return {
    isRunning: () => isProcess(pid),
    async stop() {
      lease.end();
      while (isProcess(pid)) await sleep(20);
    },
  };
}

function isProcess(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}

const environment = {
  LITELLM_LOCAL_MODEL_COST_MAP: 'True',
  LITELLM_TELEMETRY: 'False',
  DISABLE_ADMIN_UI: 'True',
  LITELLM_LOG: 'ERROR',
  LITELLM_MODE: 'PRODUCTION',
};

async function spawnProgram(start: LiteLlmStart, workers: number): Promise<RunningLiteLlm> {
  const program = await runExclusively(install);
  const child = spawn(program, [...start.arguments, '--num_workers', String(workers)], {
    cwd: start.folder,
    stdio: ['ignore', 'ignore', 'ignore'],
    detached: true,
    env: { ...process.env, ...environment, ...start.environment },
  });
  const isRunning = (): boolean => child.pid !== undefined && child.exitCode === null && child.signalCode === null;
  const atExit = (): void => {
    if (isRunning()) endGroup(child.pid);
  };
  // A test that is stopped from outside says so by a signal, which runs no exit handlers.
  const atSignal = (): void => {
    process.exit(143);
  };
  process.once('exit', atExit);
  process.once('SIGTERM', atSignal);
  return {
    isRunning,
    async stop() {
      process.off('exit', atExit);
      process.off('SIGTERM', atSignal);
      const ended = once(child, 'exit');
      atExit();
      await ended;
    },
  };
}

/** Workers are children of their own. */
function endGroup(pid: number | undefined): void {
  try {
    if (pid !== undefined) process.kill(-pid, 'SIGKILL');
  } catch (error) {
    // It has ended already.
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
  }
}

/** A process that has imported LiteLLM, which takes most of a start, and serves nothing itself. */
export interface LiteLlmParent {
  /** Starts a LiteLLM. @returns its process id */
  fork(start: LiteLlmStart): Promise<number>;
  end(pid: number): void;
  stop(): Promise<void>;
}

export async function startLiteLlmParent(): Promise<LiteLlmParent> {
  const program = await runExclusively(install);
  const child = spawn(join(dirname(program), 'python3'), ['-c', parent], {
    stdio: ['pipe', 'pipe', 'inherit'],
    env: { ...process.env, ...environment },
  });
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  const read = async (): Promise<number> => {
    const line = await lines.next();
    if (line.done === true) throw new Error('the parent of the LiteLLM processes ended');
    return z.coerce.number().int().parse(line.value);
  };
  let reading: Promise<number> = read();
  return {
    fork(start) {
      child.stdin.write(`${JSON.stringify(start)}\n`);
      reading = reading.then(read);
      return reading;
    },
    end: endGroup,
    async stop() {
      const ended = once(child, 'exit');
      child.stdin.end();
      await ended;
    },
  };
}

/** Prints 0 once it has imported everything, and then the process id of each fork. */
const parent = `import ctypes, json, os, signal, sys
from litellm.proxy import proxy_cli, proxy_server
# Forks that end need not be waited for.
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
print(0, flush=True)
for line in sys.stdin:
    pid = os.fork()
    if pid > 0:
        print(pid, flush=True)
        continue
    # Ends with this process (PR_SET_PDEATHSIG), however that ends.
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)
    os.setsid()
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    nothing = os.open(os.devnull, os.O_RDWR)
    for descriptor in range(3):
        os.dup2(nothing, descriptor)
    start = json.loads(line)
    os.chdir(start["folder"])
    os.environ.update(start["environment"])
    proxy_cli.run_server.main(start["arguments"], standalone_mode=False)
    os._exit(0)
`;

function install(): string {
  const folder = join(paths.cache, 'litellm', version);
  const program = join(folder, 'bin', 'litellm');
  const complete = join(folder, '.complete');
  if (existsSync(complete)) return program;
  mkdirSync(folder, { recursive: true });
  try {
    execFileSync('python3', ['-m', 'venv', folder], { stdio: 'ignore' });
  } catch {
    execFileSync('apt-get', ['install', '-q', '-y', '--no-install-recommends', 'python3-venv'], {
      env: { ...process.env, DEBIAN_FRONTEND: 'noninteractive' },
      stdio: 'ignore',
    });
    execFileSync('python3', ['-m', 'venv', '--clear', folder], { stdio: 'ignore' });
  }
  execFileSync(
    join(folder, 'bin', 'pip'),
    ['install', '-q', '--disable-pip-version-check', `litellm[proxy]==${version}`],
    { stdio: ['ignore', 'ignore', 'inherit'] },
  );
  writeFileSync(complete, '');
  return program;
}

function buildConfig(models: readonly MockModel[], key: string): object {
  return {
    model_list: models.map(
      ({
        name,
        inPerToken,
        outPerToken,
        delaySeconds,
        embedding,
        apiBase,
        answer = 'one two three four five six seven eight nine ten',
      }) => ({
        model_name: name,
        litellm_params: {
          model: `openai/${name.replaceAll('/', '-')}`,
          api_key: 'none',
          ...(apiBase === undefined
            ? { mock_response: embedding === true ? [0.25, -0.5] : answer }
            : { api_base: apiBase }),
          input_cost_per_token: Number(inPerToken),
          output_cost_per_token: Number(outPerToken),
          ...(delaySeconds === undefined ? {} : { mock_delay: delaySeconds }),
        },
        ...(embedding === true ? { model_info: { mode: 'embedding' } } : {}),
      }),
    ),
    litellm_settings: {
      callbacks: ['spend_log.writer'],
      include_cost_in_streaming_usage: true,
      telemetry: false,
      num_retries: 0,
    },
    router_settings: { disable_cooldowns: true },
    general_settings: { master_key: key },
  };
}

/**
 * LiteLLM hands each success to this with its standard logging payload, whose response_cost is what its spend logs
 * hold. Nothing is awaited,
 * so none is lost: its own HTTP logger drops what comes in while it sends.
 */
const writer = `import json, os
from litellm.integrations.custom_logger import CustomLogger
from litellm.proxy.spend_tracking.spend_tracking_utils import get_logging_payload

class Writer(CustomLogger):
    async def async_log_success_event(self, kwargs, response_obj, start_time, end_time):
        record = kwargs["standard_logging_object"]
        line = json.dumps({"litellm_call_id": record["litellm_call_id"], "response_cost": record["response_cost"]})
        with open(os.environ["SPEND_LOG"], "a") as log:
            log.write(line + "\\n")
        row = get_logging_payload(kwargs, response_obj, start_time, end_time)
        row["metadata"] = json.loads(row["metadata"])
        with open(os.environ["SPEND_ROWS"], "a") as rows:
            rows.write(json.dumps(row, default=lambda value: value.isoformat()) + "\\n")

writer = Writer()
`;

const record = z.looseObject({ litellm_call_id: z.string(), response_cost: z.string() });

/** Whole lines only: the last one may be on its way. */
function wholeLines(file: string): string[] {
  const text = existsSync(file) ? readFileSync(file, 'utf8') : '';
  return text
    .slice(0, text.lastIndexOf('\n') + 1)
    .split('\n')
    .filter((line) => line !== '');
}

function readSpent(file: string): Map<string, Money> {
  return new Map(
    wholeLines(file)
      .map((line) => record.parse(parseExact(line)))
      .map(({ litellm_call_id, response_cost }) => [litellm_call_id, parseBilled(response_cost)]),
  );
}

async function alive(url: string, program: RunningLiteLlm): Promise<void> {
  for (;;) {
    if (!program.isRunning()) throw new Error('LiteLLM ended');
    const answer = await fetch(`${url}/health/liveliness`).catch(() => undefined);
    if (answer?.ok === true) return;
    await sleep(200);
  }
}
