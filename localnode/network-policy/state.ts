// Derives the tables to enforce from what the API server and the CNI plugins show. Pure.
import { compile } from './compile.ts';
import { findEndpoints, type Attachment, type Endpoint, type Pod } from './objects/endpoints.ts';
import { renderGuard } from './tables/guard.ts';
import { readPolicy } from './objects/model.ts';
import { renderPolicy } from './tables/render.ts';
import type { Scope } from './tables/scope.ts';
import type { Labels } from './objects/selector.ts';
import type { NftTable } from './tables/tables.ts';

/** What the API server and the CNI plugins show at one moment. */
export interface Snapshot {
  pods: readonly Pod[];
  namespaces: ReadonlyMap<string, Labels>;
  policies: readonly { namespace: string; name: string; spec: unknown }[];
  /** `undefined`: the CNI plugins keep no records here, so that sources cannot be proved. */
  attachments: readonly Attachment[] | undefined;
}

/** A policy that is not understood, and so denies all traffic of the pods that it selects. */
export interface RefusedPolicy {
  namespace: string;
  name: string;
  problems: readonly string[];
}

/** What is to be enforced, and what should be known about it. */
export interface Desired {
  tables: readonly NftTable[];
  endpoints: readonly Endpoint[];
  refused: readonly RefusedPolicy[];
  /** Addresses that two pods claim. */
  contested: readonly string[];
}

/** Derives the desired state. */
export function derive(snapshot: Snapshot, scope: Scope): Desired {
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
