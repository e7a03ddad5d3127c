// A Secret that belongs to an app. Created once and never changed: the operator neither reads nor overwrites Secrets.
import type { HostedApp } from '../../../crds/hosted-app.ts';
import { labels } from '../../../crds/names.ts';
import type { Manifest } from '../../../lib/kubernetes/index.ts';

/** Its name has to change with whatever must not stay: one that is there already is left as it is. */
export function appSecret(
  app: HostedApp,
  secret: { readonly name: string; readonly component: string; readonly stringData: Record<string, string> },
): Manifest {
  const { name, namespace, uid } = app.metadata;
  return {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: {
      name: secret.name,
      namespace,
      labels: {
        [labels.app]: name,
        [labels.component]: secret.component,
        [labels.partOf]: 'moorage',
        [labels.managedBy]: 'moorage',
      },
      ownerReferences: [
        { apiVersion: app.apiVersion, kind: app.kind, name, uid, controller: true, blockOwnerDeletion: true },
      ],
    },
    type: 'Opaque',
    immutable: true,
    stringData: secret.stringData,
  };
}
