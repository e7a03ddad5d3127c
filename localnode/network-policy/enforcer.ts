// Enforces NetworkPolicies: when a pod, namespace, policy or CNI record changes, derives the tables and applies the
// difference.
import { mkdir, rename, writeFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import type { V1NetworkPolicy, V1Namespace, V1Pod } from '@kubernetes/client-node';
import {
  toObjectKey,
  toErrorMessage,
  type EventRecorder,
  type Logger,
  createReflector,
  defineResource,
  type Client,
  type KubeType,
  type Reflector,
} from '../../lib/kubernetes/index.ts';
import { type Applier, findReassigned } from './tables/apply.ts';
import {
  type AttachmentReading,
  type Endpoint,
  findEndpoints,
  type Attachment,
  type Pod,
  podSchema,
} from './objects/endpoints.ts';
import type { Scope, NftTable } from './tables/script.ts';
import { compile } from './compile.ts';
import { renderGuard, renderPolicy } from './tables/render.ts';
import { readPolicy, type Labels } from './objects/model.ts';

/** Dependencies of the enforcer. */
export interface EnforcerOptions {
  scope: Scope;
  sources: Sources;
  applier: Applier;
  recorder: EventRecorder;
  log: Logger;
  /** Reads the CNI records; `undefined` if source addresses are not verified. */
  readAttachments: () => Promise<AttachmentReading | undefined>;
  forgetFlows: (address: string) => Promise<void>;
  writeStatus: (status: EnforcerStatus) => Promise<void>;
}

/** The work of the enforcer, without its triggers. */
export interface Enforcer {
  /** Blocks all traffic: no pod is known, so none may send or receive, except to and from the node itself. */
  close(): Promise<void>;
  /** Brings the kernel to the state of the sources. */
  reconcile(): Promise<void>;
}

/** Creates an enforcer. */
export function createEnforcer(options: EnforcerOptions): Enforcer {
  const { scope, sources, applier, log } = options;
  let owners: ReadonlyMap<string, string> = new Map();
  let reported = new Map<string, string>();
  let lastReported = '';

  const apply = async (
    desired: DesiredState,
    state: EnforcerStatus['state'],
    reading: AttachmentReading | undefined,
    started: number,
  ): Promise<void> => {
    const changed = await applier.apply(desired.tables);
    const facts = {
      state,
      pods: desired.endpoints.length,
      policies: sources.policies.store.size,
      sourceGuard: reading !== undefined,
      refused: desired.refused,
      contestedAddresses: desired.contested,
      unreadableCniRecords: reading?.unreadable ?? [],
    };
    const reported = JSON.stringify(facts);
    if (!changed && reported === lastReported) return;
    lastReported = reported;
    const lastChangeMs = Math.round(performance.now() - started);
    log.info({ state, pods: facts.pods, policies: facts.policies, lastChangeMs }, 'rules applied');
    await options.writeStatus({ ...facts, appliedAt: new Date().toISOString(), lastChangeMs });
  };

  const forgetReassigned = async (endpoints: readonly Endpoint[]): Promise<void> => {
    const now = new Map(endpoints.map(({ address, uid }) => [address, uid]));
    const previousOwners = owners;
    owners = now;
    for (const address of findReassigned(previousOwners, now)) {
      await options.forgetFlows(address).catch((error: unknown) => {
        log.warn(
          { address, problem: toErrorMessage(error) },
          'connections of a deleted pod stay open until they time out: install conntrack',
        );
      });
    }
  };

  const report = (refused: readonly RefusedPolicy[]): void => {
    const now = new Map(refused.map((policy) => [toObjectKey(policy), policy.problems.join('; ')]));
    for (const [key, problems] of now) {
      if (reported.get(key) === problems) continue;
      log.error({ policy: key, problems }, 'invalid policy: all traffic of the pods that it selects is denied');
      const object = sources.policies.store.get(key);
      const message = `Not understood, so all traffic of the pods that it selects is denied: ${problems}`;
      if (object !== undefined)
        options.recorder.record(object, { type: 'Warning', reason: 'PolicyNotUnderstood', message, action: 'Enforce' });
    }
    reported = now;
  };

  return {
    async close() {
      const started = performance.now();
      const reading = await options.readAttachments();
      const nothing = { pods: [], namespaces: new Map(), policies: [], attachments: reading?.attachments };
      await apply(derive(nothing, scope), 'closed', reading, started);
    },
    async reconcile() {
      const started = performance.now();
      const reading = await options.readAttachments();
      const snapshot = takeSnapshot(sources, (pod, problem) => {
        log.error({ pod, problem }, 'invalid pod: it gets no network');
      });
      const desired = derive({ ...snapshot, attachments: reading?.attachments }, scope);
      await apply(desired, 'enforcing', reading, started);
      report(desired.refused);
      await forgetReassigned(desired.endpoints);
    },
  };
}

/** The state of the API server and the CNI plugins at one moment. */
export interface Snapshot {
  pods: readonly Pod[];
  namespaces: ReadonlyMap<string, Labels>;
  policies: readonly { namespace: string; name: string; spec: unknown }[];
  /** `undefined` if the CNI plugins keep no records here, so that sources cannot be verified. */
  attachments: readonly Attachment[] | undefined;
}

/** A policy that could not be parsed, and therefore denies all traffic of the pods that it selects. */
export interface RefusedPolicy {
  namespace: string;
  name: string;
  problems: readonly string[];
}

/** The state to enforce, and what to report about it. */
export interface DesiredState {
  tables: readonly NftTable[];
  endpoints: readonly Endpoint[];
  refused: readonly RefusedPolicy[];
  /** Addresses that two pods claim. */
  contested: readonly string[];
}

/** Derives the desired state. */
export function derive(snapshot: Snapshot, scope: Scope): DesiredState {
  const { endpoints, contested } = findEndpoints(snapshot.pods, snapshot.attachments ?? []);
  const readings = snapshot.policies.map(({ namespace, name, spec }) => readPolicy({ namespace, name }, spec));
  const rules = compile({ endpoints, namespaces: snapshot.namespaces, policies: readings.map(({ policy }) => policy) });
  const refused = readings
    .filter(({ problems }) => problems.length > 0)
    .map(({ policy, problems }) => ({ namespace: policy.namespace, name: policy.name, problems }));
  return {
    tables: [
      renderPolicy(rules, scope, snapshot.attachments !== undefined),
      renderGuard(snapshot.attachments ?? [], scope),
    ],
    endpoints,
    refused,
    contested,
  };
}

/** A NetworkPolicy as the API serves it. */
export type PolicyObject = KubeType<V1NetworkPolicy>;

const PODS = defineResource<KubeType<V1Pod>>({
  group: '',
  version: 'v1',
  kind: 'Pod',
  plural: 'pods',
  namespaced: true,
});
const NAMESPACES = defineResource<KubeType<V1Namespace>>({
  group: '',
  version: 'v1',
  kind: 'Namespace',
  plural: 'namespaces',
  namespaced: false,
});
const POLICIES = defineResource<PolicyObject>({
  group: 'networking.k8s.io',
  version: 'v1',
  kind: 'NetworkPolicy',
  plural: 'networkpolicies',
  namespaced: true,
});

/** The mirrors. */
export interface Sources {
  pods: Reflector<KubeType<V1Pod>>;
  namespaces: Reflector<KubeType<V1Namespace>>;
  policies: Reflector<PolicyObject>;
}

/** Creates the mirrors, which send no requests to the server until they run. */
export function createSources(client: Client, log: Logger): Sources {
  return {
    pods: createReflector({ client, log, resource: PODS }),
    namespaces: createReflector({ client, log, resource: NAMESPACES }),
    policies: createReflector({ client, log, resource: POLICIES }),
  };
}

/**
 * Reads the mirrors. Omits a pod with an unexpected shape, which therefore gets no network, and passes its name to
 * `onBadPod`.
 */
export function takeSnapshot(
  { pods, namespaces, policies }: Sources,
  onBadPod: (name: string, problem: string) => void,
): Omit<Snapshot, 'attachments'> {
  return {
    pods: pods.store.list().flatMap((object): Pod[] => {
      const parsed = podSchema.safeParse(object);
      if (parsed.success) return [parsed.data];
      onBadPod(`${object.metadata.namespace ?? ''}/${object.metadata.name}`, parsed.error.message);
      return [];
    }),
    namespaces: new Map(namespaces.store.list().map(({ metadata }) => [metadata.name, metadata.labels ?? {}])),
    policies: policies.store
      .list()
      .map(({ metadata, spec }) => ({ namespace: metadata.namespace ?? '', name: metadata.name, spec })),
  };
}

/** Content of the status file. */
export interface EnforcerStatus {
  /**
   * `closed`: nothing flows yet, because the API server has not responded; `enforcing`: the rules match the policies.
   */
  state: 'closed' | 'enforcing';
  /** RFC 3339. */
  appliedAt: string;
  /** Milliseconds that the last change took, from reading the sources to applying it in the kernel. */
  lastChangeMs: number;
  pods: number;
  policies: number;
  /** Whether the bridge's table verifies sources. */
  sourceGuard: boolean;
  refused: readonly RefusedPolicy[];
  contestedAddresses: readonly string[];
  unreadableCniRecords: readonly string[];
}

/** Writes the status file atomically, for `status` and for diagnosing a denial. */
export async function writeStatus(path: string, status: EnforcerStatus): Promise<void> {
  await mkdir(dirname(path), { recursive: true });
  const draft = `${path}.new`;
  await writeFile(draft, `${JSON.stringify(status, null, 2)}\n`);
  await rename(draft, path);
}
