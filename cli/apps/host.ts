// Puts the apps on the cluster: their Secrets, and each manifest, from its git host or from a copy on this machine.
import { stringify } from 'yaml';
import { annotations } from '../../crds/names.ts';
import type { Kubectl } from '../../localnode/kubectl.ts';
import { Fault } from '../submit/fault.ts';
import type { Installation } from '../submit/installation.ts';
import { pushSnapshot } from '../submit/push.ts';
import { takeSnapshot } from '../submit/snapshot.ts';
import { copyOf } from './copies.ts';
import { hostedFrom, type AppManifest } from './manifests.ts';
import { createSecrets } from './secrets.ts';

export interface HostOptions {
  readonly kubectl: Kubectl;
  readonly namespace: string;
  /** Folder of clones; an app without one there is hosted from its git host. */
  readonly copies: string | undefined;
  readonly installation: () => Promise<Installation>;
  readonly say: (line: string) => void;
}

/** @throws Fault where the cluster refuses an app, with its words */
export async function host(app: AppManifest, options: HostOptions): Promise<void> {
  const { kubectl, namespace, say } = options;
  await createSecrets(kubectl, namespace, app);
  const copy = options.copies === undefined ? undefined : copyOf(app.repository, options.copies);
  const document = copy === undefined ? app.document : hostedFrom(app, await push(copy, app, options));
  say(`${app.slug.padEnd(20)} from ${copy ?? app.document.spec.source.repo}`);
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

/** A rejected commit is not tried again by itself; who hosts the apps again wants it to be. */
async function retryRejected({ slug }: AppManifest, { kubectl, namespace }: HostOptions): Promise<void> {
  const phase = await kubectl(['-n', namespace, 'get', 'happ', slug, '-o', 'jsonpath={.status.phase}']);
  if (phase !== 'Rejected') return;
  const mark = `${annotations.rebuild}=${new Date().toISOString()}`;
  await kubectl(['-n', namespace, 'annotate', 'happ', slug, '--overwrite', mark]);
}

async function push(folder: string, app: AppManifest, { installation }: HostOptions): Promise<string> {
  const snapshot = await takeSnapshot(folder);
  try {
    return await pushSnapshot(snapshot, app.slug, await installation());
  } finally {
    await snapshot.remove();
  }
}
