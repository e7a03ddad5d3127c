// All that a reconcile looks at, gathered before it decides anything.
import type { HostedApp } from '../../crds/hosted-app.ts';
import type { KubeObject } from '../../lib/kubernetes/index.ts';
import type { Deployment, HttpRoute, Job, Pod } from '../objects/kinds.ts';
import type { Settings } from './settings.ts';
import type { SourceAnswer } from '../steps/source/ls-remote.ts';

/** Whether an app answered through the gateway. */
export interface ProbeAnswer {
  readonly answers: boolean;
  /** A bare 404: the gateway's own, or that of an app with nothing at its root. */
  readonly isDoubtful?: boolean;
  /** Status of the answer, if there was one. */
  readonly status?: number;
  /** What came back, for people. */
  readonly detail: string;
}

/**
 * A snapshot of one app and everything that belongs to it. Objects are shared with the caches: nothing here may be
 * changed.
 */
export interface Observed {
  readonly app: HostedApp;
  readonly now: Date;
  readonly settings: Settings;
  /** Answer of the repository to the question that this source asks, if one has come since the last reconcile. */
  readonly poll: SourceAnswer | undefined;
  /** Its pipeline Jobs. */
  readonly jobs: readonly Job[];
  readonly pipelinePods: readonly Pod[];
  /** Names of all Jobs that wait for their turn, in order. */
  readonly queue: readonly string[];
  readonly deployment: Deployment | undefined;
  readonly service: KubeObject | undefined;
  readonly policy: KubeObject | undefined;
  readonly claims: readonly KubeObject[];
  readonly pods: readonly Pod[];
  readonly route: HttpRoute | undefined;
  readonly probe: ProbeAnswer | undefined;
}
