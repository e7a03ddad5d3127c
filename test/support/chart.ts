// What the chart's tests share: helm, its values, a render, and an API server with the Gateway API's types.
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseDocument, stringify } from 'yaml';
import { z } from 'zod';
import { getBinaryPath, buildPart } from '../../localnode/binaries/build.ts';
import { gatewayApiFolder } from '../../localnode/node/addons.ts';
import { run } from '../../localnode/shell.ts';
import { runExclusively } from './exclusively.ts';
import { waitUntilEstablished, type ApiServer } from './kubernetes/api-server.ts';

export const chart = new URL('../../charts/moorage', import.meta.url).pathname;

/** As little as an installation must say. */
export const required = {
  baseDomain: 'apps.example.org',
  image: 'registry.example.org/moorage:1',
  pipelineImage: 'registry.example.org/moorage-pipeline:1',
  gateway: { className: 'example', namespaceLabels: { 'kubernetes.io/metadata.name': 'gateway' } },
  registry: { host: 'registry.example.org' },
};

export const object = z.looseObject({
  apiVersion: z.string(),
  kind: z.string(),
  metadata: z.looseObject({
    name: z.string(),
    namespace: z.string().optional(),
    labels: z.record(z.string(), z.string()).optional(),
    annotations: z.record(z.string(), z.string()).optional(),
  }),
});
export type Rendered = z.infer<typeof object>;

const scratch = mkdtempSync(join(tmpdir(), 'moorage-chart-'));
process.once('exit', () => {
  rmSync(scratch, { recursive: true, force: true });
});
// Vitest ends the process of a file by SIGTERM, which runs no listener of `exit` unless it is handled.
process.once('SIGTERM', () => {
  process.exit();
});
let files = 0;

/** Writes values to a file for helm and gives its path. */
export function writeValuesFile(values: object): string {
  const path = join(scratch, `values-${++files}.yaml`);
  writeFileSync(path, stringify(values));
  return path;
}

let building: Promise<unknown> | undefined;
/** By default helm waits between its requests, ten seconds for an upgrade of the chart. */
const unthrottled = { HELM_BURST_LIMIT: '1000', HELM_QPS: '1000' };

/** Runs helm; rejects with what it said. */
export async function runHelm(args: readonly string[], server?: ApiServer): Promise<string> {
  await (building ??= runExclusively(() => buildPart('helm')));
  const folders = {
    HELM_CACHE_HOME: join(scratch, 'cache'),
    HELM_CONFIG_HOME: join(scratch, 'config'),
    HELM_DATA_HOME: join(scratch, 'data'),
  };
  return run(getBinaryPath('helm', 'helm'), args, {
    env: { ...folders, ...unthrottled, ...server?.environment },
  });
}

/** Every object of the chart with these values. */
export async function render(values: object): Promise<Rendered[]> {
  const text = await runHelm([
    'template',
    'moorage',
    chart,
    '--namespace',
    'moorage-system',
    '--values',
    writeValuesFile(values),
  ]);
  return text
    .split(/^---\n(?=# Source: )/m)
    .map(readDocument)
    .filter((value) => value !== null)
    .map((value) => object.parse(value));
}

/** Most objects of the chart are the same whatever the values, and the CRD takes long to read. */
const documents = new Map<string, unknown>();

function readDocument(text: string): unknown {
  if (!documents.has(text)) documents.set(text, parseDocument(text).toJS());
  return documents.get(text);
}

/** Installs or upgrades the release on a real API server. */
export async function install(server: ApiServer, values: object, from = chart): Promise<void> {
  await runHelm(
    [
      'upgrade',
      '--install',
      'moorage',
      from,
      '--namespace',
      'moorage-system',
      '--create-namespace',
      '--values',
      writeValuesFile(values),
    ],
    server,
  );
}

/** A copy of the chart with one of its files changed, as an older version might have been. */
export function createChangedChart(file: string, change: (text: string) => string): string {
  const copy = mkdtempSync(join(scratch, 'chart-'));
  cpSync(chart, copy, { recursive: true });
  writeFileSync(join(copy, file), change(readFileSync(join(copy, file), 'utf8')));
  return copy;
}

/** Hands objects to kubectl on its standard input; resolves to what it printed. */
export function runKubectl(server: ApiServer, objects: readonly object[], ...args: readonly string[]): Promise<string> {
  const input = objects.map((object) => JSON.stringify(object)).join('\n---\n');
  return run(getBinaryPath('kubectl', 'kubectl'), [...args, '-f', '-'], {
    env: server.environment,
    input,
  });
}

/** Adds the types of the Gateway API, which the chart takes as given. */
export async function addGatewayTypes(server: ApiServer): Promise<void> {
  await server.kubectl('apply', '--server-side', '-f', gatewayApiFolder);
  await waitUntilEstablished(server, 'gateways.gateway.networking.k8s.io', 'httproutes.gateway.networking.k8s.io');
}

/** The objects of one kind. */
export function selectKind(objects: readonly Rendered[], kind: string): Rendered[] {
  return objects.filter((one) => one.kind === kind);
}

/** The object of that kind and name. @throws Error when there is none. */
export function findNamed(objects: readonly Rendered[], kind: string, name: string): Rendered {
  const found = selectKind(objects, kind).find((one) => one.metadata.name === name);
  if (found === undefined) throw new Error(`no ${kind} ${name}`);
  return found;
}

const variable = z.looseObject({
  name: z.string(),
  value: z.string().optional(),
  valueFrom: z.unknown().optional(),
});
const workload = z.looseObject({
  spec: z.looseObject({
    template: z.looseObject({
      spec: z.looseObject({
        containers: z.array(z.looseObject({ env: z.array(variable) })).length(1),
      }),
    }),
  }),
});

/** Stand-ins for Secrets without which a program does not start. */
const secrets: Readonly<Record<string, string>> = {
  MOORAGE_PUSH_TOKEN_SECRET: 'push-token-secret-of-tests-0123456789',
};

/** The variables that a process of the chart is given as plain text; those from elsewhere are undefined. */
export function readEnvironment(
  objects: readonly Rendered[],
  component: 'operator' | 'api' | (string & {}),
): Record<string, string | undefined> {
  const [only] = workload.parse(findNamed(objects, 'Deployment', `moorage-${component}`)).spec.template.spec.containers;
  // An API server leaves an empty value out.
  const read = ({ name, value, valueFrom }: z.output<typeof variable>): string | undefined =>
    value ?? (valueFrom === undefined ? '' : secrets[name]);
  return Object.fromEntries(only?.env.map((one) => [one.name, read(one)]) ?? []);
}

/** The pod spec of a Deployment. */
export function readPodSpec(deployment: object): Readonly<Record<string, unknown>> {
  return workload.parse(deployment).spec.template.spec;
}
