// Names and labels of what runs the backing services of an app.
import { createHash } from 'node:crypto';
import type { V1LabelSelector } from '@kubernetes/client-node';
import type { BackingService } from '../../../../crds/backing-services.ts';
import { labels, trialComponent } from '../../../../crds/names.ts';
import type { HostedApp } from '../../../../crds/hosted-app.ts';
import { dataKey } from '../data.ts';
import type { Wire } from '../../../../lib/kubernetes/index.ts';

type Identity = Pick<HostedApp, 'metadata'>;

/**
 * Name of the Deployment, Service, policy, Secret and claim of a service. Longer than any name of an app, so that no
 * app can be called like it; another type under the same name has a disk of its own.
 */
export function backingName(app: HostedApp, { name, type }: Pick<BackingService, 'name' | 'type'>): string {
  const readable = `${app.metadata.name}-${name}`.slice(0, 24).replace(/-+$/, '');
  const identity = createHash('sha256').update([dataKey(app), app.metadata.name, name, type].join('\n'));
  return `service-${readable}-${identity.digest('hex').slice(0, 30)}`;
}

/** What the pods of a service are chosen by. */
export function backingSelector({ metadata }: Identity, service: string): Record<string, string> {
  return { [labels.app]: metadata.name, [labels.component]: 'service', [labels.service]: service };
}

/** What the pods of all services of an app are chosen by. */
export function allBackingSelector({ metadata }: Identity): Record<string, string> {
  return { [labels.app]: metadata.name, [labels.component]: 'service' };
}

/** The pods of an app, for policies: with a volume, also the one that tries a new image. */
export function appPods({ metadata, spec }: HostedApp): Wire<V1LabelSelector> {
  const app = { [labels.app]: metadata.name };
  return spec.run.volumes.length === 0
    ? { matchLabels: { ...app, [labels.component]: 'app' } }
    : {
        matchLabels: app,
        matchExpressions: [{ key: labels.component, operator: 'In', values: ['app', trialComponent] }],
      };
}
