// Compares the workloads of a cluster with what was installed there. kubectl calls a workload that was scaled to zero
// available, so its own status does not say that it is missing.
import { gunzipSync } from 'node:zlib';
import { parseAllDocuments } from 'yaml';
import { z } from 'zod';
import type { Kubectl } from '../../localnode/kubectl.ts';
import { release } from './helm.ts';

const kinds = ['Deployment', 'StatefulSet', 'DaemonSet'] as const;

const manifest = z.object({
  kind: z.enum(kinds),
  metadata: z.object({ name: z.string(), namespace: z.string().default(release.namespace) }),
  spec: z.object({ replicas: z.int().default(1) }),
});

const workload = manifest.extend({
  status: z
    .object({
      observedGeneration: z.int().optional(),
      readyReplicas: z.int().default(0),
      updatedReplicas: z.int().optional(),
      // Of DaemonSets.
      desiredNumberScheduled: z.int().optional(),
      numberReady: z.int().default(0),
    })
    .prefault({}),
});

/** A workload as it was installed. */
export interface WantedWorkload {
  readonly kind: (typeof kinds)[number];
  readonly namespace: string;
  readonly name: string;
  readonly replicas: number;
}

/** The workloads of a manifest with several documents. */
export function readWorkloads(text: string): WantedWorkload[] {
  return parseAllDocuments(text).flatMap((document) => {
    const read = manifest.safeParse(document.toJS());
    if (!read.success) return [];
    const { kind, metadata, spec } = read.data;
    return [{ kind, ...metadata, replicas: spec.replicas }];
  });
}

/**
 * What is wrong with the workloads, a line for each. `list`: output of `kubectl get deployments,statefulsets,daemonsets -o
 * json`. Those in it that were not installed with the release are wanted once, at least.
 */
export function compareWorkloads(wanted: readonly WantedWorkload[], list: unknown): string[] {
  const { items } = z.object({ items: z.array(workload) }).parse(list);
  const keyed = new Map(items.map((item) => [keyFor(item.kind, item.metadata.namespace, item.metadata.name), item]));
  const missing = wanted
    .filter(({ kind, namespace, name, replicas }) => replicas > 0 && !keyed.has(keyFor(kind, namespace, name)))
    .map(({ kind, namespace, name }) => `${namespace}/${name} does not exist (${kind})`);
  const installed = new Map(wanted.map((each) => [keyFor(each.kind, each.namespace, each.name), each.replicas]));
  return [...missing, ...[...keyed].flatMap(([key, item]) => checkReplicas(item, installed.get(key)))];
}

function checkReplicas({ kind, metadata, spec, status }: z.output<typeof workload>, installed = 1): string[] {
  const name = `${metadata.namespace}/${metadata.name}`;
  if (kind === 'DaemonSet') {
    const { desiredNumberScheduled: nodes = 1, numberReady } = status;
    return numberReady < nodes ? [`${name}: ${numberReady} of ${nodes} pods are ready`] : [];
  }
  // Right after it was scaled the status still has the earlier number.
  const ready = Math.min(status.readyReplicas, spec.replicas);
  const replicas = Math.max(installed, spec.replicas);
  if (ready >= replicas) return [];
  const how = spec.replicas < installed ? `; it was scaled from ${installed} to ${spec.replicas}` : '';
  return [`${name}: ${ready} of ${replicas} replicas are ready${how}`];
}

function keyFor(kind: string, namespace: string, name: string): string {
  return `${kind}/${namespace}/${name}`;
}

const secrets = z.object({
  items: z.array(
    z.object({
      metadata: z.object({ labels: z.record(z.string(), z.string()) }),
      data: z.object({ release: z.base64() }),
    }),
  ),
});

/** The manifest of the newest version of the release, which Helm keeps in a Secret. @throws Error if there is none */
async function readManifest(kubectl: Kubectl): Promise<string> {
  const selector = `owner=helm,name=${release.name},status=deployed`;
  const text = await kubectl(['-n', release.namespace, 'get', 'secrets', '-l', selector, '-o', 'json']);
  const { items } = secrets.parse(JSON.parse(text));
  const readVersion = (item: (typeof items)[number] | undefined): number =>
    Number(item?.metadata.labels['version'] ?? 0);
  const newest = items.toSorted((one, other) => readVersion(other) - readVersion(one))[0];
  if (newest === undefined)
    throw new Error(`the release ${release.name} is not installed in ${release.namespace}: run \`npm run up\``);
  // Helm encodes before Kubernetes does.
  const packed = Buffer.from(Buffer.from(newest.data.release, 'base64').toString(), 'base64');
  return z.object({ manifest: z.string() }).parse(JSON.parse(gunzipSync(packed).toString())).manifest;
}

/** What is wrong with the workloads of the release, and with all others in these namespaces. */
export async function checkWorkloads(kubectl: Kubectl, namespaces: ReadonlySet<string>): Promise<string[]> {
  const wanted = readWorkloads(await readManifest(kubectl));
  const all = z
    .object({ items: z.array(z.looseObject({ metadata: z.looseObject({ namespace: z.string() }) })) })
    .parse(JSON.parse(await kubectl(['get', 'deployments,statefulsets,daemonsets', '-A', '-o', 'json'])));
  const items = all.items.filter(({ metadata }) => namespaces.has(metadata.namespace));
  return compareWorkloads(wanted, { items });
}
