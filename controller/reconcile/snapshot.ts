// A snapshot of one app: all that a reconcile looks at, gathered before it decides anything.
import type { HostedApp } from '../../crds/hosted-app.ts';
import type {
  Deployment,
  HttpRoute,
  Job,
  NetworkPolicy,
  PersistentVolumeClaim,
  Pod,
  Service,
} from '../objects/kinds.ts';
import type { InstallationConfig } from './installation-config.ts';
import type { Repository, RepositoryError } from '../../lib/repository.ts';
import type { RevisionResult } from '../steps/source/revision.ts';
import type { Activators, AppActivity } from '../steps/deploy/idle/rest.ts';

/** Whether an app responded through the gateway. */
export interface ProbeResult {
  readonly responds: boolean;
  /** A bare 404, the gateway's own or that of an app with nothing at its root; or no response in time. */
  readonly isDoubtful?: boolean;
  /** Status of the response, if there was one. */
  readonly status?: number;
  /** What came back, as a clause for people: "the response was HTTP 404". */
  readonly detail: string;
}

/** Objects of the backing services of an app. Their volumes are among its claims. */
export interface BackingObjects {
  readonly deployments: readonly Deployment[];
  readonly services: readonly Service[];
  readonly policies: readonly NetworkPolicy[];
  readonly pods: readonly Pod[];
}

/** What the activators say of an app. */
export interface IdleView {
  readonly activators: Activators;
  readonly activity: AppActivity | undefined;
  /** Whether they agreed to hold what comes for it; undefined: they were not asked. */
  readonly isClosed: boolean | undefined;
}

/** What was seen of an app's page. */
export interface PageView {
  /** Status of the page; absent: nothing came. */
  readonly status?: number;
  /** Files of its own host that it loads. */
  readonly assets: number;
  /** What does not work, each as the end of a sentence about the app. */
  readonly faults: readonly string[];
}

/**
 * A snapshot of one app and everything that belongs to it. Objects are shared with the caches: nothing here may be
 * changed.
 */
export interface Snapshot {
  readonly app: HostedApp;
  readonly now: Date;
  readonly config: InstallationConfig;
  /** The repository of the app, or why its address is refused. */
  readonly repository: Repository | RepositoryError;
  /** What the revision resolved to, if a lookup has ended since the last reconcile. */
  readonly poll: RevisionResult | undefined;
  /** Its pipeline Jobs. */
  readonly jobs: readonly Job[];
  readonly pipelinePods: readonly Pod[];
  /** Names of all queued Jobs, in order. */
  readonly queue: readonly string[];
  /** Why no build may start for lack of disk space, as a sentence; absent: there is some. */
  readonly shortage?: string | undefined;
  readonly deployment: Deployment | undefined;
  readonly service: Service | undefined;
  readonly policy: NetworkPolicy | undefined;
  readonly claims: readonly PersistentVolumeClaim[];
  readonly pods: readonly Pod[];
  readonly route: HttpRoute | undefined;
  /** What runs its backing services. */
  readonly serviceObjects: BackingObjects;
  /** What starts a new image while the old one serves, before it replaces it. */
  readonly trial?: { readonly deployment: Deployment | undefined; readonly pods: readonly Pod[] };
  readonly probe: ProbeResult | undefined;
  /** Undefined where this installation has no activator. */
  readonly idle: IdleView | undefined;
  /** How the page of the release that serves looks, if a look has ended since the last reconcile. */
  readonly page: PageView | undefined;
}
