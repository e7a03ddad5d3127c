// A world for the real operator process: a real API server, a git repository on loopback, and nothing else.
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { moduleFiles } from '../../../cluster/binaries/build.ts';
import { hostedApps, jobs, type HostedAppObject, type Job } from '../../../controller/hosted-app/kinds.ts';
import { createClient, fileConnection, type Client, type KubeObject, type Resource } from '../../../controller/runtime/index.ts';
import { labels } from '../../../lib/names.ts';
import { startApiServer, type ApiServer } from '../api-server.ts';
import { startGitServer, type GitServer } from './git-server.ts';

const root = join(import.meta.dirname, '../../..');

export interface Operator {
  readonly process: ChildProcess;
  /** Everything it has written so far. */
  log: () => string;
  /** Ends it by SIGKILL, as if the machine had lost it. */
  kill: () => Promise<void>;
  /** Asks it to end and resolves with its exit code. */
  end: () => Promise<number | null>;
}

export interface World {
  readonly api: ApiServer;
  readonly client: Client;
  readonly git: GitServer;
  startOperator: (variables?: Record<string, string>) => Operator;
  /** Creates a HostedApp; the repository is `git`'s unless `spec.source` says otherwise. */
  submit: (name: string, spec?: { source?: object; [field: string]: unknown }) => Promise<void>;
  app: (name: string) => Promise<HostedAppObject | undefined>;
  jobs: (app: string) => Promise<Job[]>;
  stop: () => Promise<void>;
}

/** Starts everything but the operator. */
export async function startWorld(): Promise<World> {
  const api = await startApiServer();
  try {
    return await furnish(api);
  } catch (error) {
    await api.stop();
    throw error;
  }
}

async function furnish(api: ApiServer): Promise<World> {
  const gateway = await moduleFiles('gateway-api', 'sigs.k8s.io/gateway-api');
  await api.kubectl('apply', '--server-side', '-f', join(root, 'crds/hostedapps.yaml'), '-f', join(gateway, 'config/crd/standard/gateway.networking.k8s.io_httproutes.yaml'));
  await api.kubectl('wait', '--for=condition=Established', 'crd/hostedapps.moorage.dev', 'crd/httproutes.gateway.networking.k8s.io', '--timeout=60s');
  for (const namespace of ['moorage-apps', 'moorage-builds', 'moorage-system']) await api.kubectl('create', 'namespace', namespace);
  const client = createClient(await fileConnection(api.kubeconfig));
  const git = await startGitServer();
  const operators: Operator[] = [];
  return {
    api,
    client,
    git,
    startOperator(variables = {}) {
      const operator = spawnOperator({ ...environmentFor(api, git), ...variables });
      operators.push(operator);
      return operator;
    },
    async submit(name, spec = {}) {
      const metadata = { name, namespace: 'moorage-apps' };
      await client.create(hostedApps, { apiVersion: 'moorage.dev/v1alpha1', kind: 'HostedApp', metadata, spec: { ...spec, source: { repo: git.url, ...spec.source } } });
    },
    app: (name) => client.get(hostedApps, { name, namespace: 'moorage-apps' }),
    jobs: (app) => all(client, jobs, 'moorage-builds', `${labels.app}=${app}`),
    async stop() {
      await Promise.all(operators.map((operator) => operator.kill()));
      client.close();
      await git.stop();
      await api.stop();
    },
  };
}

function environmentFor(api: ApiServer, git: GitServer): Record<string, string> {
  return {
    PATH: process.env['PATH'] ?? '',
    KUBECONFIG: api.kubeconfig,
    LOG_LEVEL: 'info',
    NODE_ENV: 'test',
    MOORAGE_INTERNAL_PORT: '0',
    MOORAGE_BASE_DOMAIN: 'apps.localhost',
    MOORAGE_GIT_ALLOWED_HOSTS: git.host,
    MOORAGE_GIT_INSECURE_HOSTS: git.host,
    MOORAGE_PIPELINE_IMAGE: 'registry.test/pipeline',
    MOORAGE_REGISTRY_HOST: 'registry.test',
    MOORAGE_BUILDS_CONCURRENCY: '50',
  };
}

function spawnOperator(environment: Record<string, string>): Operator {
  const child = spawn(process.execPath, [join(root, 'controller/main.ts')], { env: environment, stdio: ['ignore', 'pipe', 'pipe'] });
  const written: string[] = [];
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk: Buffer) => written.push(chunk.toString()));
  const end = async (signal: NodeJS.Signals): Promise<number | null> => {
    if (child.exitCode !== null || child.signalCode !== null) return child.exitCode;
    const exited = once(child, 'exit');
    child.kill(signal);
    await exited;
    return child.exitCode;
  };
  return { process: child, log: () => written.join(''), kill: async () => { await end('SIGKILL'); }, end: () => end('SIGTERM') };
}

/** Every object of a kind. */
export async function all<T extends KubeObject>(client: Client, resource: Resource<T>, namespace: string, labelSelector?: string): Promise<T[]> {
  const found: T[] = [];
  for await (const object of client.listAll(resource, { namespace, labelSelector })) found.push(object);
  return found;
}

/** Asks again until there is an answer. @throws Error that says what was waited for, after a minute. */
export async function until<T>(what: string, ask: () => Promise<T | undefined | false>, seconds = 60): Promise<T> {
  const end = Date.now() + seconds * 1000;
  for (;;) {
    const answer = await ask();
    if (answer !== undefined && answer !== false) return answer;
    if (Date.now() > end) throw new Error(`waited ${seconds} s in vain: ${what}`);
    await sleep(50);
  }
}
