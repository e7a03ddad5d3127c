// What the end-to-end tests share: kubectl, the CLI, HTTPS through the gateway, and throw-away repositories.
import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { V1Pod } from '@kubernetes/client-node';
import { execa } from 'execa';
import { Agent, fetch, request } from 'undici';
import { z } from 'zod';
import { createApiClient } from '../../cli/submit/api-client.ts';
import { Fault, readInstallation } from '../../cli/submit/installation.ts';
import { createOutput } from '../../cli/submit/output.ts';
import { submit as submitFolder } from '../../cli/submit/submit.ts';
import { hostedApps } from '../../controller/objects/kinds.ts';
import { hostedApp, type HostedApp } from '../../crds/hosted-app.ts';
import {
  createClient,
  defineResource,
  readFileConnection,
  type Client,
  type KubeType,
} from '../../lib/kubernetes/index.ts';
import { sendSignal } from '../../localnode/node/daemons/processes.ts';

const config = z
  .looseObject({ baseUrl: z.url(), appsUrl: z.url() })
  .parse(JSON.parse(readFileSync('.moorage/config.json', 'utf8')));
export const baseUrl = new URL(config.baseUrl);
export const appsUrl = new URL(config.appsUrl);
export const appsNamespace = 'moorage-apps';
export const buildsNamespace = 'moorage-builds';
export const systemNamespace = 'moorage-system';

/** Every name of either domain is this machine, whatever its resolver thinks. */
const agent = new Agent({
  connect: {
    ca: readFileSync('.moorage/ca.crt'),
    lookup: (_host, _options, callback) => {
      callback(null, [{ address: '127.0.0.1', family: 4 }]);
    },
  },
  connections: 64,
});

export function appUrl(slug: string, path = '/'): URL {
  return new URL(path, `https://${slug}.${appsUrl.host}`);
}

export interface Answer {
  readonly status: number;
  readonly body: string;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
}

/** One request through the gateway, certificate checked against the local authority. */
export async function get(
  url: URL,
  init: { method?: 'GET' | 'POST' | 'PUT' | 'DELETE'; headers?: Record<string, string>; body?: string } = {},
): Promise<Answer> {
  const response = await request(url, { dispatcher: agent, method: 'GET', ...init });
  return { status: response.statusCode, body: await response.body.text(), headers: response.headers };
}

/** For clients that take a fetch of their own. */
export const localFetch = ((input: Parameters<typeof fetch>[0], init?: Parameters<typeof fetch>[1]) =>
  fetch(input, { ...init, dispatcher: agent })) as unknown as typeof globalThis.fetch;

/** The bytes of a file, through the gateway. */
export async function getBytes(url: URL): Promise<Uint8Array> {
  const response = await request(url, { dispatcher: agent, method: 'GET' });
  if (response.statusCode !== 200) throw new Error(`${url.href} answers ${response.statusCode}`);
  return new Uint8Array(await response.body.arrayBuffer());
}

/** Runs kubectl on the cluster that `npm run up` made. */
export async function runKubectl(...args: readonly string[]): Promise<string> {
  const { stdout } = await execa('.moorage/kubectl', args, { env: { KUBECONFIG: '.moorage/kubeconfig' } });
  return stdout;
}

let connected: Promise<Client> | undefined;

/** The API server without kubectl, which costs a tenth of a second of CPU time for each read of a loop. */
export function connect(): Promise<Client> {
  connected ??= readFileConnection('.moorage/kubeconfig').then((connection) => createClient(connection));
  return connected;
}

export async function readApp(name: string): Promise<HostedApp> {
  const app = await (await connect()).get(hostedApps, { name, namespace: appsNamespace });
  if (app === undefined) throw new Error(`there is no HostedApp ${name}`);
  return hostedApp.parse(app);
}

export type Pod = KubeType<V1Pod>;
const pods = defineResource<Pod>({ group: '', version: 'v1', kind: 'Pod', plural: 'pods', namespaced: true });

/** Pods by labels, in the namespace of apps or in another one. */
export async function listPods(labelSelector: string, namespace = appsNamespace): Promise<readonly Pod[]> {
  return (await (await connect()).list(pods, { namespace, labelSelector })).items;
}

/**
 * Submits a folder and follows it to its end as `npm run submit` does, without a process: test/e2e/tutorial.test.ts runs
 * the command. Never throws, the exit code is part of what is tested.
 */
export async function submit(folder: string): Promise<{ exitCode: number; all: string }> {
  const lines: string[] = [];
  const installation = await readInstallation();
  const api = createApiClient(installation);
  const output = createOutput((line) => {
    lines.push(line);
  });
  try {
    const exitCode = await submitFolder({ what: folder }, { installation, api, output });
    return { exitCode, all: lines.join('\n') };
  } catch (error) {
    if (!(error instanceof Fault)) throw error;
    return { exitCode: 2, all: [...lines, error.message].join('\n') };
  } finally {
    await api.close();
  }
}

/** A copy of a fixture in a folder of its own, whose name becomes the app's; gone after `use`. */
export async function runWithCopy<T>(fixture: string, name: string, use: (folder: string) => Promise<T>): Promise<T> {
  const parent = mkdtempSync(join(tmpdir(), 'moorage-e2e-'));
  const folder = join(parent, name);
  cpSync(join('test/fixtures', fixture), folder, { recursive: true });
  try {
    return await use(folder);
  } finally {
    removeFiles(folder);
  }
}

/** A folder made of the files given, named like the app; `removeFiles` removes it. */
export function writeFiles(name: string, files: Readonly<Record<string, string>>): string {
  const folder = join(mkdtempSync(join(tmpdir(), 'moorage-e2e-')), name);
  for (const [file, text] of Object.entries({ LICENSE: readFileSync('LICENSE', 'utf8'), ...files })) {
    mkdirSync(dirname(join(folder, file)), { recursive: true });
    writeFileSync(join(folder, file), text);
  }
  return folder;
}

export function removeFiles(folder: string): void {
  rmSync(dirname(folder), { recursive: true, force: true });
}

/** The same, removed after `use`. */
export async function runWithFiles<T>(
  name: string,
  files: Readonly<Record<string, string>>,
  use: (folder: string) => Promise<T>,
): Promise<T> {
  const folder = writeFiles(name, files);
  try {
    return await use(folder);
  } finally {
    removeFiles(folder);
  }
}

export function edit(folder: string, file: string, change: (text: string) => string): void {
  const path = join(folder, file);
  writeFileSync(path, change(readFileSync(path, 'utf8')));
}

/**
 * Kills every process in a pod on this node that runs `script` with SIGKILL, as a crash would.
 * @param podUid only those of this pod
 * @returns how many were killed.
 */
export function crash(script: string, podUid = ''): number {
  const pids = readdirSync('/proc').filter((entry) => /^\d+$/.test(entry) && runs(entry, script, podUid));
  return pids.filter((pid) => sendSignal(Number(pid), 'SIGKILL')).length;
}

function runs(pid: string, script: string, podUid: string): boolean {
  try {
    const groups = readFileSync(`/proc/${pid}/cgroup`, 'utf8');
    return (
      groups.includes('kubepods') &&
      groups.includes(podUid) &&
      readFileSync(`/proc/${pid}/cmdline`, 'utf8')
        .split('\0')
        .some((word) => word.endsWith(script))
    );
  } catch {
    return false; // it ended while we looked
  }
}

/** Asks until `probe` gives a value, or fails with what was seen last. The limit is wide: builds wait for their turn on a busy machine. */
export async function waitFor<T>(what: string, probe: () => Promise<T | undefined>, seconds = 180): Promise<T> {
  const end = Date.now() + seconds * 1000;
  let last: unknown;
  while (Date.now() < end) {
    try {
      const value = await probe();
      if (value !== undefined) return value;
    } catch (error) {
      last = error;
    }
    await sleep(250);
  }
  throw new Error(`${what}: not within ${seconds} s`, { cause: last });
}

/** Deletes apps and waits until nothing of them is left. */
export async function deleteApps(...names: readonly string[]): Promise<void> {
  if (names.length === 0) return;
  await runKubectl('delete', 'happ', ...names, '-n', appsNamespace, '--ignore-not-found', '--timeout=120s');
  // Volumes and generated passwords outlive an app.
  const ofApps = `moorage.dev/app in (${names.join(',')})`;
  await runKubectl('delete', 'pvc,secret', '-n', appsNamespace, '-l', ofApps, '--wait=false');
}

const dns = ['-n', 'kube-system'] as const;
const zones = 'coredns-custom';

/** Makes the cluster's DNS answer for a zone. @param texts TXT records by name; no other name exists */
export async function serveZone(zone: string, texts: Readonly<Record<string, string>>): Promise<void> {
  const records = Object.entries(texts).map(([name, value]) => {
    const match = `match "^${name.replaceAll('.', '[.]')}[.]$"`;
    return `  template IN TXT ${zone} {\n    ${match}\n    answer "{{ .Name }} 0 IN TXT \\"${value}\\""\n    fallthrough\n  }\n`;
  });
  const server = `${zone}:53 {\n  errors\n${records.join('')}  template ANY ANY {\n    rcode NXDOMAIN\n  }\n}\n`;
  await writeZone(zone, server);
  // The kubelet would bring the file within a minute.
  await runKubectl(...dns, 'rollout', 'restart', 'deployment/coredns');
  await runKubectl(...dns, 'rollout', 'status', 'deployment/coredns', '--timeout=120s');
}

export async function removeZone(zone: string): Promise<void> {
  await writeZone(zone, null);
}

/** Each zone has its own file, since several tests serve one at the same time. @param server null removes it */
async function writeZone(zone: string, server: string | null): Promise<void> {
  await runKubectl(...dns, 'create', 'configmap', zones).catch((error: unknown) => {
    if (!String(error).includes('already exists')) throw error;
  });
  const patch = JSON.stringify({ data: { [`${zone}.server`]: server } });
  await runKubectl(...dns, 'patch', 'configmap', zones, '--type=merge', '--patch', patch);
}
