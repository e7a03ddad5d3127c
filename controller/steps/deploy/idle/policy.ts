// Whether and when an app is put to rest: its own word, or that of the installation.
import { parseDuration } from '../../../../lib/values.ts';
import type { HostedApp } from '../../../../crds/hosted-app.ts';
import type { InstallationConfig } from '../../../reconcile/installation-config.ts';
import { replicasOf } from '../objects.ts';

export interface RestPolicy {
  readonly depth: 'sleep' | 'nap';
  /** Milliseconds without use, or chosen by the app's own gaps. */
  readonly after: number | 'auto';
}

/** Undefined: it always runs. @param app with the settings of its manifest */
export function restPolicy(app: HostedApp, { idle }: InstallationConfig): RestPolicy | undefined {
  const { idleAfter = idle?.after, idle: depth } = app.spec.run;
  if (idle === undefined || idleAfter === undefined || idleAfter === 'never' || replicasOf(app) === 0) return undefined;
  return { depth, after: idleAfter === 'auto' ? 'auto' : parseDuration(idleAfter) };
}
