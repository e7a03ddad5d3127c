// From what the API server and the CNI plugins say to the tables that enforce it. Pure.
import { compile } from './compile.ts';
import { findEndpoints, type Attachment, type Endpoint, type Pod } from './endpoints.ts';
import { renderGuard } from './guard.ts';
import { readPolicy } from './model.ts';
import { renderPolicy } from './render.ts';
import type { Scope } from './scope.ts';
import type { Labels } from './selector.ts';
import type { NftTable } from './tables.ts';

/** What was observed. */
export interface Observed {
  pods: readonly Pod[];
  namespaces: ReadonlyMap<string, Labels>;
  policies: readonly { namespace: string; name: string; spec: unknown }[];
  /** `undefined`: the CNI plugins keep no records here, so that sources cannot be proved. */
  attachments: readonly Attachment[] | undefined;
}

/** A policy that is not understood, and so denies everything for the pods that it selects. */
export interface RefusedPolicy {
  namespace: string;
  name: string;
  problems: readonly string[];
}

/** What is to be enforced, and what should be known about it. */
export interface Wanted {
  tables: readonly NftTable[];
  endpoints: readonly Endpoint[];
  refused: readonly RefusedPolicy[];
  /** Addresses that two pods claim. */
  contested: readonly string[];
}

/** Derives the wanted state. */
export function derive(observed: Observed, scope: Scope): Wanted {
  const { endpoints, contested } = findEndpoints(observed.pods, observed.attachments ?? []);
  const readings = observed.policies.map(({ namespace, name, spec }) => readPolicy({ namespace, name }, spec));
  const rules = compile({ endpoints, namespaces: observed.namespaces, policies: readings.map(({ policy }) => policy) });
  const refused = readings
    .filter(({ problems }) => problems.length > 0)
    .map(({ policy, problems }) => ({ namespace: policy.namespace, name: policy.name, problems }));
  return {
    tables: [
      renderPolicy(rules, scope, observed.attachments !== undefined),
      renderGuard(observed.attachments ?? [], scope),
    ],
    endpoints,
    refused,
    contested,
  };
}
