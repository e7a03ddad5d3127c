// Global setup of the integration tests: API servers, one PostgreSQL and one parent of LiteLLM processes for all files of
// a run. An API server is leased to one file at a time, since CRDs, cluster roles and the namespaces of the chart are the
// same in all of them; between two files it is emptied, down to a layer that several files share, such as the chart with
// which the operator is tested. The databases of PostgreSQL and the forks of LiteLLM are each file's own.
import { existsSync } from 'node:fs';
import { cp, mkdtemp, rm } from 'node:fs/promises';
import { createServer, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { execa } from 'execa';
import { bundleProgram } from '../../../bundle.ts';
import { uvVersion } from '../../../controller/pipeline/plan/python/packages/install.ts';
import { paths } from '../../../localnode/paths.ts';
import { runExclusively } from '../exclusively.ts';
import { takeBaseline, type Baseline } from '../kubernetes/baseline.ts';
import { startOwnApiServer, type OwnApiServer } from '../kubernetes/api-server.ts';
import { startPostgres, type Postgres } from '../ledger/postgres.ts';
import { startLiteLlmParent, type LiteLlmParent, type LiteLlmStart } from '../models/litellm.ts';
import { makeTemplate, pipelineFile } from '../pipeline/lab.ts';
import { requests, socketVariable, type ApiServerLease, type LeaseRequest, type PostgresLease } from './lease.ts';

interface PooledServer {
  readonly server: OwnApiServer;
  readonly empty: Baseline;
  /** What is on it in addition when nobody uses it. */
  layer: { readonly name: string; readonly note: string; readonly baseline: Baseline } | undefined;
}

type LayerRequest = Extract<LeaseRequest, { want: 'keep' }>;

const template = 'migrated';

export default async function setup(): Promise<() => Promise<void>> {
  const folder = await mkdtemp(join(tmpdir(), 'moorage-shared-'));
  const idle: PooledServer[] = [];
  const all = new Set<OwnApiServer>();
  /** Servers that are being emptied or stopped. */
  const pending = new Set<Promise<void>>();
  let leases = 0;
  const makePart = {
    'pipeline-template': memoize(() => makeTemplate(join(folder, 'pipeline-template'))),
    'pipeline-program': memoize(() => bundlePipeline(join(folder, 'pipeline-program'))),
  };
  let liteLlm: Promise<LiteLlmParent> | undefined;
  let postgres: Promise<{ readonly server: Postgres; readonly lease: PostgresLease }> | undefined;

  async function take(layer: string | undefined): Promise<PooledServer> {
    // One that is emptied in a moment is there sooner than a new one.
    if (idle.length === 0 && pending.size > 0) await Promise.race(pending);
    const match = idle.findIndex((one) => one.layer?.name === layer);
    const [free] = idle.splice(Math.max(match, 0), 1);
    if (free === undefined) {
      const server = await startOwnApiServer();
      all.add(server);
      return { server, empty: await takeBaseline(server), layer: undefined };
    }
    if (free.layer?.name !== layer) await removeLayer(free);
    return free;
  }

  async function removeLayer(pooled: PooledServer): Promise<void> {
    if (pooled.layer === undefined) return;
    pooled.layer = undefined;
    await pooled.empty.restore();
  }

  async function giveBack(pooled: PooledServer): Promise<void> {
    try {
      if (pooled.layer === undefined) await pooled.empty.restore();
      else if (await pooled.layer.baseline.isIntact(pooled.empty)) await pooled.layer.baseline.restore();
      else await removeLayer(pooled);
      idle.push(pooled);
    } catch (error) {
      process.stderr.write(`an API server could not be emptied and is given up: ${String(error)}\n`);
      all.delete(pooled.server);
      await pooled.server.stop();
    }
  }

  async function keepLayer(pooled: PooledServer, { layer: name, note }: LayerRequest): Promise<void> {
    pooled.layer = { name, note, baseline: await takeBaseline(pooled.server, true) };
  }

  function describeLease({ server: { kubeconfig, server }, layer }: PooledServer): ApiServerLease {
    return { kubeconfig, server, cache: join(folder, `lease-${++leases}`), note: layer?.note ?? null };
  }

  async function forkLiteLlm(start: LiteLlmStart, forks: number[]): Promise<number> {
    const pid = await (await (liteLlm ??= startLiteLlmParent())).fork(start);
    forks.push(pid);
    return pid;
  }

  async function serve(socket: Socket): Promise<void> {
    let leased: PooledServer | undefined;
    const forks: number[] = [];
    const answer = async (line: string): Promise<unknown> => {
      const request = requests.parse(JSON.parse(line));
      switch (request.want) {
        case 'litellm':
          return forkLiteLlm(request.start, forks);
        case 'pipeline-template':
        case 'pipeline-program':
          return makePart[request.want]();
        case 'postgres':
          return (await (postgres ??= startSharedPostgres())).lease;
        case 'restart':
          await leased?.server.restart();
          return null;
        case 'keep':
          if (leased !== undefined) await keepLayer(leased, request);
          return null;
        case 'api-server':
          leased ??= await take(request.layer);
          return describeLease(leased);
      }
    };
    try {
      for await (const line of createInterface({ input: socket })) {
        const reply = await answer(line).then(
          (value) => ({ answer: value }),
          (error: unknown) => ({ error: error instanceof Error ? error.message : String(error) }),
        );
        socket.write(`${JSON.stringify(reply)}\n`);
      }
    } finally {
      for (const pid of forks) (await liteLlm)?.end(pid);
      if (leased !== undefined) {
        const work: Promise<void> = giveBack(leased).finally(() => pending.delete(work));
        pending.add(work);
      }
    }
  }

  const path = join(folder, 'socket');
  const listener = createServer((socket) => {
    // A file that is ended from outside resets its connection.
    socket.on('error', () => undefined);
    void serve(socket).catch(() => undefined);
  });
  await new Promise<void>((resolve) => {
    listener.listen(path, resolve);
  });
  process.env[socketVariable] = path;
  return async () => {
    listener.close();
    await Promise.allSettled(pending);
    await Promise.all([...all].map((server) => server.stop()));
    await (await postgres)?.server.stop();
    await (await liteLlm)?.stop();
    await rm(folder, { recursive: true, force: true });
  };
}

/** Makes it once, when it is first wanted. */
function memoize<Value>(make: () => Promise<Value>): () => Promise<Value> {
  let made: Promise<Value> | undefined;
  return () => (made ??= make());
}

async function startSharedPostgres(): Promise<{ server: Postgres; lease: PostgresLease }> {
  const server = await startPostgres({ durable: false, connections: 400 });
  await server.createDatabase(template);
  return { server, lease: { adminUrl: server.adminUrl, template } };
}

/** Puts what the pipeline's image has in /app into a folder. @returns the path of the program */
async function bundlePipeline(output: string): Promise<string> {
  await bundleProgram(pipelineFile, { output, isAlone: true });
  await cp(await runExclusively(installUv), join(output, 'uv', 'uv'));
  return join(output, pipelineFile);
}

async function installUv(): Promise<string> {
  const folder = join(paths.cache, 'uv', uvVersion);
  const program = join(folder, 'bin', 'uv');
  if (existsSync(program)) return program;
  await execa('python3', ['-m', 'venv', '--clear', folder]);
  await execa(join(folder, 'bin/pip'), ['install', '--quiet', '--disable-pip-version-check', `uv==${uvVersion}`]);
  return program;
}
