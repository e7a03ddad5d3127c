// The loop: whenever a pod, namespace, policy or CNI record changes, derive the tables anew and apply the difference.
import { keyOf, messageOf, type EventRecorder, type Logger } from '../../lib/kubernetes/index.ts';
import type { Applier } from './tables/apply.ts';
import type { AttachmentReading } from './objects/attachments.ts';
import type { Endpoint } from './objects/endpoints.ts';
import { reassigned } from './tables/flows.ts';
import type { Scope } from './tables/scope.ts';
import { takeSnapshot, type Sources } from './objects/sources.ts';
import { derive, type RefusedPolicy, type Desired } from './state.ts';
import type { EnforcerStatus } from './status-file.ts';

/** What the loop works with. */
export interface EnforcerOptions {
  scope: Scope;
  sources: Sources;
  applier: Applier;
  recorder: EventRecorder;
  log: Logger;
  /** Reads the CNI records; `undefined` when sources are not to be proved. */
  readAttachments: () => Promise<AttachmentReading | undefined>;
  forgetFlows: (address: string) => Promise<void>;
  writeStatus: (status: EnforcerStatus) => Promise<void>;
}

/** The enforcer's own work, without what calls for it. */
export interface Enforcer {
  /** Shuts everything: no pod is known, so none may send or be reached (but by the node itself). */
  close(): Promise<void>;
  /** Brings the kernel to what the sources show now. */
  reconcile(): Promise<void>;
}

/** Makes an enforcer. */
export function createEnforcer(options: EnforcerOptions): Enforcer {
  const { scope, sources, applier, log } = options;
  let owners: ReadonlyMap<string, string> = new Map();
  let reported = new Map<string, string>();
  let lastReported = '';

  const apply = async (
    desired: Desired,
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
    const before = owners;
    owners = now;
    for (const address of reassigned(before, now)) {
      await options.forgetFlows(address).catch((error: unknown) => {
        log.warn(
          { address, problem: messageOf(error) },
          'connections of a deleted pod stay open until they time out: install conntrack',
        );
      });
    }
  };

  const report = (refused: readonly RefusedPolicy[]): void => {
    const now = new Map(refused.map((policy) => [keyOf(policy), policy.problems.join('; ')]));
    for (const [key, problems] of now) {
      if (reported.get(key) === problems) continue;
      log.error({ policy: key, problems }, 'policy not understood: all traffic of the pods that it selects is denied');
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
        log.error({ pod, problem }, 'pod not understood: it gets no network');
      });
      const desired = derive({ ...snapshot, attachments: reading?.attachments }, scope);
      await apply(desired, 'enforcing', reading, started);
      report(desired.refused);
      await forgetReassigned(desired.endpoints);
    },
  };
}
