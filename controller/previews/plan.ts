// Decides which previews an app has: from its settings, the references that its git server lists, and the previews that exist.
import { isDeepStrictEqual } from 'node:util';
import { readPreviews, readSettings, resolveSpec } from '../../crds/effective-settings.ts';
import type { HostedApp, HostedAppSpec, StoredSpec } from '../../crds/hosted-app.ts';
import { isSuspended } from '../../crds/control.ts';
import { group, kind, labels, version } from '../../crds/names.ts';
import {
  choosePreviews,
  formatPreviewName,
  shouldHavePreviews,
  isOwnedBy,
  limitPreviewDisk,
  type PreviewReference,
  type Previews,
} from '../../crds/previews.ts';
import { isSubset, type Manifest } from '../../lib/kubernetes/index.ts';
import type { HostedAppObject } from '../objects/kinds.ts';
import type { InstallationConfig } from '../reconcile/installation-config.ts';

/** Time without a request after which a preview sleeps. */
const idleAfter = '10m';

/** An app that can have previews, with its settings resolved. */
export interface PreviewedApp {
  readonly app: HostedApp;
  readonly spec: HostedAppSpec;
  readonly previews: Previews;
}

/** What the installation allows. */
export type PreviewLimits = InstallationConfig['previews'];

/** Resolves whether and how an app has previews; undefined if it has none. */
export function resolvePreviews(app: HostedApp, { limit, canSleep }: PreviewLimits): PreviewedApp | undefined {
  const { spec: stored, metadata, status } = app;
  const isGone = metadata.deletionTimestamp !== undefined || isSuspended(stored);
  if (stored.previewOf !== undefined || isGone || !canSleep) return undefined;
  const wanted = readPreviews(app);
  const previews = { ...wanted, limit: Math.min(wanted.limit, limit) };
  if (!shouldHavePreviews(wanted) || previews.limit === 0) return undefined;
  return { app, spec: resolveSpec(app, readSettings(status?.settings?.values)), previews };
}

/** A preview that should exist. */
export interface WantedPreview {
  readonly name: string;
  readonly reference: PreviewReference;
}

/** What has to change. Removals come first, so that there are never more previews than the limit. */
export interface PreviewPlan {
  readonly remove: readonly HostedAppObject[];
  readonly update: readonly { readonly object: HostedAppObject; readonly spec: StoredSpec }[];
  readonly create: readonly Manifest[];
}

/**
 * Plans the previews of an app.
 *
 * @param existing all HostedApps with the app's label, including those that are being deleted
 */
export function planPreviews(
  previewed: PreviewedApp,
  references: readonly PreviewReference[],
  existing: readonly HostedAppObject[],
): PreviewPlan {
  const { app, previews } = previewed;
  const wanted = choosePreviews(references, previews, app.status?.source?.reference).map((reference) => ({
    name: formatPreviewName(app.metadata.name, reference.name),
    reference,
  }));
  const isWanted = (object: HostedAppObject): boolean =>
    isOwnedBy(object, app) &&
    wanted.some(
      ({ name, reference }) => name === object.metadata.name && reference.name === object.spec.previewOf?.reference,
    );
  const free = previews.limit - existing.length;
  const missing = wanted.filter(({ name }) => !existing.some(({ metadata }) => metadata.name === name));
  return {
    remove: existing.filter((object) => !isEnding(object) && !isWanted(object)),
    update: existing.flatMap((object) => {
      const found = wanted.find(({ name }) => name === object.metadata.name);
      if (found === undefined || isEnding(object) || !isWanted(object)) return [];
      const spec = buildPreviewSpec(previewed, found.reference);
      return isCurrent(object, spec) ? [] : [{ object, spec }];
    }),
    create: missing.slice(0, Math.max(0, free)).map((each) => buildPreview(previewed, each)),
  };
}

function isEnding({ metadata }: HostedAppObject): boolean {
  return metadata.deletionTimestamp !== undefined;
}

/** Ignores the fields that the API server fills in. Services are compared whole, so that a removed one counts. */
function isCurrent({ spec }: HostedAppObject, wanted: StoredSpec): boolean {
  return isSubset(wanted, spec) && isDeepStrictEqual(spec.services ?? [], wanted.services ?? []);
}

function buildPreview(previewed: PreviewedApp, { name, reference }: WantedPreview): Manifest {
  const { metadata } = previewed.app;
  const apiVersion = `${group}/${version}`;
  return {
    apiVersion,
    kind,
    metadata: {
      name,
      namespace: metadata.namespace,
      labels: { [labels.app]: metadata.name, [labels.partOf]: 'moorage', [labels.managedBy]: 'moorage' },
      ownerReferences: [{ apiVersion, kind, name: metadata.name, uid: metadata.uid, controller: true }],
    },
    spec: buildPreviewSpec(previewed, reference),
  };
}

/**
 * The spec of a preview. It has nothing of the app that could be a secret: no variables, no control, no Secrets. Its limits
 * are those of the app, so that a pull request cannot raise them.
 */
function buildPreviewSpec({ app, spec }: PreviewedApp, { name, commit }: PreviewReference): StoredSpec {
  const { repo, path, private: isPrivate } = app.spec.source;
  return {
    source: {
      ...{ repo, revision: commit },
      ...(path === '.' ? {} : { path }),
      ...(isPrivate === true ? { private: true } : {}),
    },
    build: { resources: spec.build.resources, timeout: spec.build.timeout },
    run: { resources: spec.run.resources, idleAfter, idle: 'sleep' },
    services: spec.services.map(({ name: service, type, version: wanted, disk, memory }) => ({
      ...{ name: service, type },
      ...(wanted === undefined ? {} : { version: wanted }),
      ...{ disk: limitPreviewDisk(disk), memory },
    })),
    models: { enabled: false, dailyBudgetUsd: '0' },
    agents: { enabled: false },
    author: { share: '0' },
    deletionPolicy: 'Delete',
    previewOf: { app: app.metadata.name, reference: name },
  };
}
