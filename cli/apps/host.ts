// Hosts the apps of manifests/apps on the cluster, from their git host or from a copy on this machine, and follows them.
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { statSync } from 'node:fs';
import { randomBytes } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { stringify, parse } from 'yaml';
import { z } from 'zod';
import { annotations } from '../../crds/names.ts';
import type { Kubectl } from '../../localnode/kubectl.ts';
import { Fault, type Installation } from '../submit/installation.ts';
import { pushSnapshot, takeSnapshot } from '../submit/snapshot.ts';
import { spec, hostedApp, type HostedApp } from '../../crds/hosted-app.ts';
import { parseAcceptedRepository } from '../../lib/repository.ts';
import { paths } from '../../localnode/paths.ts';
import { toPublicStatus, type PublicStatus } from '../../crds/public-status.ts';

export interface HostOptions {
  readonly kubectl: Kubectl;
  readonly namespace: string;
  /** Folder of clones; an app without one there is hosted from its git host. */
  readonly copies: string | undefined;
  readonly readInstallation: () => Promise<Installation>;
  readonly printLine: (line: string) => void;
}

/** Creates the Secrets of an app and applies its manifest. @throws Fault with the cluster's message if it rejects the app */
export async function applyApp(app: AppManifest, options: HostOptions): Promise<void> {
  const { kubectl, namespace, printLine } = options;
  await createSecrets(kubectl, namespace, app);
  const copy = options.copies === undefined ? undefined : findCopy(app.repository, options.copies);
  const document = copy === undefined ? app.document : replaceRepository(app, await pushCopy(copy, app, options));
  printLine(`${app.slug.padEnd(20)} from ${copy ?? app.document.spec.source.repo}`);
  try {
    await kubectl(
      ['-n', namespace, 'apply', '--server-side', '--force-conflicts', '--field-manager=moorage-apps', '-f', '-'],
      stringify(document),
    );
  } catch (error) {
    const words = error instanceof Error ? error.message : String(error);
    throw new Fault(
      /is immutable/.test(words)
        ? `${app.slug} is hosted from another repository. To host it from this one, remove it with its data first: kubectl -n ${namespace} delete happ ${app.slug}`
        : `the cluster refused ${app.slug}: ${words}`,
      { cause: error },
    );
  }
  await retryRejected(app, options);
}

/** A rejected commit is not retried automatically, but hosting the app again is a request to retry it. */
async function retryRejected({ slug }: AppManifest, { kubectl, namespace }: HostOptions): Promise<void> {
  const phase = await kubectl(['-n', namespace, 'get', 'happ', slug, '-o', 'jsonpath={.status.phase}']);
  if (phase !== 'Rejected') return;
  const mark = `${annotations.rebuild}=${new Date().toISOString()}`;
  await kubectl(['-n', namespace, 'annotate', 'happ', slug, '--overwrite', mark]);
}

async function pushCopy(folder: string, app: AppManifest, { readInstallation }: HostOptions): Promise<string> {
  const snapshot = await takeSnapshot(folder);
  try {
    return await pushSnapshot(snapshot, app.slug, await readInstallation());
  } finally {
    await snapshot.remove();
  }
}

// Manifests

/** On a manifest: number of random hexadecimal digits of each key of each Secret to generate for the app, as JSON. */
const generated = 'moorage.dev/generated-secrets';

const digits = z.record(z.string(), z.record(z.string(), z.int().min(16).max(256)));
const jsonText = z.string().transform((text, context) => {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    context.addIssue({ code: 'custom', message: 'is not JSON' });
    return z.NEVER;
  }
});

const manifest = z.looseObject({
  apiVersion: z.literal('moorage.dev/v1alpha1'),
  kind: z.literal('HostedApp'),
  metadata: z.looseObject({ name: z.string(), annotations: z.record(z.string(), z.string()).default({}) }),
  spec: z.looseObject({ source: z.looseObject({ repo: z.string() }) }),
});
type Document = z.output<typeof manifest>;

/** One app, as its manifest describes it. */
export interface AppManifest {
  readonly slug: string;
  /** owner/name at its git host. */
  readonly repository: string;
  /** Digits of each key, by the name of the Secret. */
  readonly secrets: Readonly<Record<string, Readonly<Record<string, number>>>>;
  readonly document: Document;
}

/** All manifests, by slug. @throws ZodError for one that is not a HostedApp */
export async function readManifests(folder = join(paths.root, 'manifests', 'apps')): Promise<AppManifest[]> {
  const files = (await readdir(folder)).filter((file) => file.endsWith('.yaml')).sort();
  return Promise.all(files.map(async (file) => readManifest(await readFile(join(folder, file), 'utf8'))));
}

export function readManifest(text: string): AppManifest {
  const document = manifest.parse(parse(text));
  // The server checks it again; this finds a mistake without a server.
  const { source } = spec.parse(document.spec);
  const { owner, name } = parseAcceptedRepository(source.repo);
  const { [generated]: secrets = '{}' } = document.metadata.annotations;
  return {
    slug: document.metadata.name,
    repository: `${owner}/${name}`,
    secrets: jsonText.pipe(digits).parse(secrets),
    document,
  };
}

/** The manifest with a copy of the repository, on the cluster's git server, as its source. */
export function replaceRepository({ document }: AppManifest, repo: string): Document {
  const { revision: _revision, ...source } = document.spec.source;
  return { ...document, spec: { ...document.spec, source: { ...source, repo } } };
}

/** Finds the clone of a repository on this machine: FOLDER/OWNER/NAME, FOLDER/OWNER+NAME or FOLDER/NAME. */
export function findCopy(repository: string, folder: string): string | undefined {
  const name = repository.split('/')[1] ?? repository;
  return [repository, repository.replace('/', '+'), name]
    .map((path) => join(folder, path))
    .find((path) => statSync(path, { throwIfNoEntry: false })?.isDirectory() === true);
}

/**
 * Creates the missing Secrets of an app, which are random and never read. Existing ones stay: the app has encrypted data
 * with them.
 */
export async function createSecrets(
  kubectl: Kubectl,
  namespace: string,
  { slug, secrets }: AppManifest,
): Promise<void> {
  for (const [name, keys] of Object.entries(secrets)) {
    const existing = await kubectl(['-n', namespace, 'get', 'secret', name, '--ignore-not-found', '-o', 'name']);
    if (existing.trim() === '') await kubectl(['-n', namespace, 'create', '-f', '-'], formatSecret(name, slug, keys));
  }
}

function formatSecret(name: string, slug: string, keys: Readonly<Record<string, number>>): string {
  return stringify({
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { name, labels: { 'app.kubernetes.io/part-of': 'moorage', 'app.kubernetes.io/instance': slug } },
    stringData: Object.fromEntries(Object.entries(keys).map(([key, digits]) => [key, createRandomHexadecimal(digits)])),
  });
}

function createRandomHexadecimal(digits: number): string {
  return randomBytes(Math.ceil(digits / 2))
    .toString('hex')
    .slice(0, digits);
}

// Following

const list = z.object({ items: z.array(hostedApp) });

/** The final state of an app. */
export interface Outcome {
  readonly slug: string;
  readonly status: PublicStatus;
}

export interface FollowOptions {
  readonly kubectl: Kubectl;
  readonly namespace: string;
  readonly printLine: (line: string) => void;
  readonly lookMs?: number;
}

/** Reports each change of phase, and resolves when nothing of these apps is in progress. */
export async function follow(slugs: readonly string[], options: FollowOptions): Promise<Outcome[]> {
  const { kubectl, namespace, printLine, lookMs = 2_000 } = options;
  const printedPhases = new Map<string, string>();
  for (;;) {
    const { items } = list.parse(
      JSON.parse(await kubectl(['-n', namespace, 'get', 'hostedapps', '-o', 'json'])) as unknown,
    );
    const apps = items.filter(({ metadata }) => slugs.includes(metadata.name));
    for (const app of apps) {
      const phase = formatPhase(app);
      if (printedPhases.get(app.metadata.name) !== phase) printLine(`${app.metadata.name.padEnd(20)} ${phase}`);
      printedPhases.set(app.metadata.name, phase);
    }
    const outcomes = apps.map((app) => ({ slug: app.metadata.name, status: toPublicStatus(app) }));
    if (outcomes.length === slugs.length && apps.every(isReflected) && outcomes.every(isSettled)) return outcomes;
    await delay(lookMs);
  }
}

/** Whether the status reflects the current spec, and not an earlier one. */
function isReflected({ metadata, status }: HostedApp): boolean {
  return status?.observedGeneration === metadata.generation;
}

function isSettled({ status }: Outcome): boolean {
  return status.status === 'rejected' || (status.status === 'live' && status.update === undefined);
}

function formatPhase(app: HostedApp): string {
  const status = toPublicStatus(app);
  if (status.status === 'in_pipeline') return status.stage;
  return status.status === 'live' && status.update !== undefined
    ? `live, update: ${status.update.stage}`
    : status.status;
}
