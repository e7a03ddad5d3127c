// A world for the real operator process: a real API server with the chart installed, and a git repository on loopback.
// The operator gets the chart's variables and the rights of the chart's service account, no more.
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { z } from 'zod';
import { deployments, hostedApps, jobs, type HostedAppObject, type Job } from '../../../controller/objects/kinds.ts';
import { leases, type Client, type KubeObject, type Resource } from '../../../lib/kubernetes/index.ts';
import { labels } from '../../../crds/names.ts';
import {
  createClientAs,
  readCertificates,
  startLayeredApiServer,
  type ApiServer,
  type LayeredApiServer,
} from '../kubernetes/api-server.ts';
import { addGatewayTypes, readEnvironment, install, object, required } from '../chart.ts';
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
  /** What the chart gives the API as plain text. */
  readonly apiEnvironment: Readonly<Record<string, string>>;
  startOperator: (variables?: Record<string, string>) => Operator;
  /** Removes the lease of an operator that was killed, for whose end another one would wait. */
  removeLease: () => Promise<void>;
  /** Creates a HostedApp; the repository is `git`'s unless `spec.source` says otherwise. */
  submit: (
    name: string,
    spec?: { source?: object; [field: string]: unknown },
    marks?: Record<string, string>,
  ) => Promise<void>;
  app: (name: string) => Promise<HostedAppObject | undefined>;
  jobs: (app: string) => Promise<Job[]>;
  stop: () => Promise<void>;
}

/** Starts everything but the operator. */
export async function startWorld(): Promise<World> {
  const api = await startLayeredApiServer('installation');
  try {
    return await furnish(api);
  } catch (error) {
    await api.stop();
    throw error;
  }
}

const values = {
  ...required,
  baseDomain: 'moorage.localhost',
  appsDomain: 'apps.localhost',
  registry: { host: 'registry.test' },
  builds: { concurrency: 50 },
  services: { images: { meilisearch: '' } },
  domains: { issuer: 'test-issuer' },
};

const variables = z.record(z.string(), z.string());
/** What worlds on the same API server share. */
const installation = z.object({
  /** What the chart gives the processes as plain text. */
  environments: z.object({ operator: variables, api: variables }),
  /** Of the operator's service account. */
  token: z.string(),
});
type Installation = z.output<typeof installation>;

async function installChart(api: ApiServer, client: Client): Promise<Installation> {
  await addGatewayTypes(api);
  await install(api, values);
  // Without a quota controller nothing says how much is used, and the API server then refuses everything.
  for (const namespace of ['moorage-apps', 'moorage-builds'])
    await api.kubectl('delete', 'resourcequota', '--all', '-n', namespace);
  const readVariables = async (component: string): Promise<Record<string, string>> => {
    const ref = { name: `moorage-${component}`, namespace: 'moorage-system' };
    return defined(readEnvironment([object.parse(await client.get(deployments, ref))], component));
  };
  return {
    environments: { operator: await readVariables('operator'), api: await readVariables('api') },
    token: await api.kubectl('create', 'token', 'moorage-operator', '-n', 'moorage-system', '--duration=24h'),
  };
}

async function furnish(api: LayeredApiServer): Promise<World> {
  const client = await createClientAs(api);
  const [git, folder] = [await startGitServer(), await mkdtemp(join(tmpdir(), 'moorage-operator-'))];
  let installed = api.note === undefined ? undefined : installation.parse(JSON.parse(api.note));
  if (installed === undefined) {
    installed = await installChart(api, client);
    await api.keep(JSON.stringify(installed));
  }
  const hosts = { MOORAGE_GIT_ALLOWED_HOSTS: git.host, MOORAGE_GIT_INSECURE_HOSTS: git.host };
  const environment = {
    ...installed.environments.operator,
    ...hosts,
    ...(await identify(api, folder, installed.token)),
    MOORAGE_INTERNAL_PORT: '0',
    // There is no registry.
    MOORAGE_REGISTRY_PRUNE: 'false',
    NODE_ENV: 'test',
  };
  const operators: Operator[] = [];
  return {
    api,
    client,
    git,
    apiEnvironment: { ...installed.environments.api, ...hosts },
    startOperator(variables = {}) {
      const operator = spawnOperator({ ...environment, ...variables });
      operators.push(operator);
      return operator;
    },
    async removeLease() {
      await client.delete(leases, { name: 'moorage-operator', namespace: 'moorage-system' });
    },
    async submit(name, spec = {}, marks = {}) {
      const metadata = { name, namespace: 'moorage-apps', labels: marks };
      await client.create(hostedApps, {
        apiVersion: 'moorage.dev/v1alpha1',
        kind: 'HostedApp',
        metadata,
        spec: { ...spec, source: { repo: git.url, ...spec.source } },
      });
    },
    app: (name) => client.get(hostedApps, { name, namespace: 'moorage-apps' }),
    jobs: (app) => listAll(client, jobs, 'moorage-builds', `${labels.app}=${app}`),
    async stop() {
      await Promise.all(operators.map((operator) => operator.kill()));
      client.close();
      await git.stop();
      await api.stop();
      await rm(folder, { recursive: true, force: true });
    },
  };
}

/** What a kubelet would put into the operator's pod: its service account, and where the API server is. */
async function identify(api: ApiServer, folder: string, token: string): Promise<Record<string, string>> {
  await writeFile(join(folder, 'ca.crt'), (await readCertificates(api)).ca);
  await writeFile(join(folder, 'token'), token);
  const { hostname, port } = new URL(api.server);
  return {
    MOORAGE_SERVICE_ACCOUNT: folder,
    KUBERNETES_SERVICE_HOST: hostname,
    KUBERNETES_SERVICE_PORT: port,
    POD_NAME: 'operator',
    POD_NAMESPACE: 'moorage-system',
    PATH: process.env['PATH'] ?? '',
  };
}

function defined(variables: Record<string, string | undefined>): Record<string, string> {
  return Object.fromEntries(
    Object.entries(variables).flatMap(([name, value]) => (value === undefined ? [] : [[name, value]])),
  );
}

function spawnOperator(environment: Record<string, string>): Operator {
  const child = spawn(process.execPath, [join(root, 'controller/main.ts')], {
    env: { ...environment, NODE_COMPILE_CACHE: process.env['NODE_COMPILE_CACHE'] },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const written: string[] = [];
  for (const stream of [child.stdout, child.stderr])
    stream.on('data', (chunk: Buffer) => written.push(chunk.toString()));
  const end = async (signal: NodeJS.Signals): Promise<number | null> => {
    if (child.exitCode !== null || child.signalCode !== null) return child.exitCode;
    const exited = once(child, 'exit');
    child.kill(signal);
    await exited;
    return child.exitCode;
  };
  return {
    process: child,
    log: () => written.join(''),
    kill: async () => {
      await end('SIGKILL');
    },
    end: () => end('SIGTERM'),
  };
}

const events = z.object({
  items: z.array(z.looseObject({ reason: z.string(), regarding: z.looseObject({ name: z.string() }).optional() })),
});

/** What has been recorded in a namespace. */
export async function listEvents(
  { client }: Pick<World, 'client'>,
  namespace: string,
): Promise<z.output<typeof events>['items']> {
  const path = `/apis/events.k8s.io/v1/namespaces/${namespace}/events`;
  return events.parse(await client.request({ method: 'GET', path })).items;
}

/** Every object of a kind. */
export async function listAll<T extends KubeObject>(
  client: Client,
  resource: Resource<T>,
  namespace: string,
  labelSelector?: string,
): Promise<T[]> {
  const found: T[] = [];
  for await (const object of client.listAll(resource, { namespace, labelSelector })) found.push(object);
  return found;
}

/**
 * Asks again until there is an answer, less often the longer it takes: what comes soon is seen soon, and what does not
 * leaves the processor to those that work on it.
 *
 * @throws Error that says what was waited for, after so many seconds
 */
export async function waitFor<T>(what: string, ask: () => Promise<T | undefined | false>, seconds = 180): Promise<T> {
  const start = Date.now();
  for (;;) {
    const answer = await ask();
    if (answer !== undefined && answer !== false) return answer;
    const waited = Date.now() - start;
    if (waited > seconds * 1000) throw new Error(`waited ${seconds} s in vain: ${what}`);
    await sleep(Math.min(Math.max(waited / 10, 20), 250));
  }
}
