// The controller of previews: creates, updates and removes the HostedApps that show pull requests and branches of an app. It keeps
// no record: the cluster has the previews that exist, and the git server lists the references that need one.
import type { Registry } from 'prom-client';
import { applyControl } from '../../crds/control.ts';
import { findPins } from '../../crds/effective-settings.ts';
import { hostedApp, type HostedApp } from '../../crds/hosted-app.ts';
import { annotations, labels } from '../../crds/names.ts';
import {
  formatMergeReference,
  isChosenBranch,
  shouldHavePreviews,
  isOwnedBy,
  parsePullReference,
} from '../../crds/previews.ts';
import type { Previews, PreviewReference } from '../../crds/previews.ts';
import { type GitAccess, isCommitId, scanReferences } from '../../lib/git/git.ts';
import {
  computeHash,
  createController,
  createLabelMapping,
  createWatch,
  deleteObject,
  done,
  isApiStatus,
  parseObjectKey,
  requeueAfter,
  type Client,
  type Controller,
  type Logger,
  type Reconcile,
} from '../../lib/kubernetes/index.ts';
import { markPrivate, readRepository, RepositoryError, type Repository } from '../../lib/repository.ts';
import { parseDuration } from '../../lib/values.ts';
import { hostedApps, type HostedAppObject } from '../objects/kinds.ts';
import { byApp, type Unpacker } from '../reconcile/caches.ts';
import { createBackgroundLookups, type BackgroundLookups } from '../reconcile/controller.ts';
import type { InstallationConfig } from '../reconcile/installation-config.ts';
import { planPreviews, resolvePreviews, type PreviewedApp } from './plan.ts';

type PreviewsConfig = Pick<InstallationConfig, 'appsNamespace' | 'gitHosts' | 'gitAccess' | 'previews'>;

export interface PreviewReconcilerOptions {
  readonly client: Client;
  readonly apps: Pick<Unpacker<HostedAppObject>, 'get' | 'listByIndex'>;
  readonly config: PreviewsConfig;
  readonly listings: BackgroundLookups<ListingQuery, Listing>;
  readonly now?: () => number;
}

/** Listings in progress at the same time at one host. */
const listingsPerHost = 2;
/** Time until a git server that did not answer is asked again. */
const retryMs = 60_000;
/** Time until another look at a preview that is being deleted, since the next one is created only after it is gone. */
const crowdedMs = 5_000;

export function createPreviewController({
  apps,
  ...options
}: {
  readonly client: Client;
  readonly apps: Unpacker<HostedAppObject>;
  readonly config: PreviewsConfig;
  readonly resyncMs: number;
  readonly log: Logger;
  readonly registry: Registry;
}): Controller {
  const { client, config, resyncMs, log, registry } = options;
  const listings = createBackgroundLookups({
    run: (query: ListingQuery) => listPreviewReferences(query, config.gitAccess),
    group: ({ repository }) => repository.host,
    limit: listingsPerHost,
    onResult(key) {
      controller.enqueue(key);
    },
  });
  const controller = createController({
    name: 'previews',
    ...{ resyncMs, log, registry },
    watches: [createWatch(apps.store), createWatch(apps.store, createLabelMapping(labels.app, config.appsNamespace))],
    reconcile: createPreviewReconciler({ client, apps, config, listings }),
  });
  return controller;
}

/** The last answer of the git server. */
interface KnownListing {
  /** Hash of what it was asked for. */
  readonly identity: string;
  readonly listing: Listing;
  readonly at: number;
}

/**
 * Creates the reconcile function. Between calls it keeps only the last listing of each app: after a restart nothing is changed
 * before the git server has answered.
 */
export function createPreviewReconciler(options: PreviewReconcilerOptions): Reconcile {
  const { client, apps, config, listings, now = Date.now } = options;
  const known = new Map<string, KnownListing>();

  const remove = async (previews: readonly HostedAppObject[], signal: AbortSignal): Promise<void> => {
    for (const preview of previews)
      if (preview.metadata.deletionTimestamp === undefined)
        await deleteObject(client, hostedApps, preview, { propagation: 'Background', signal });
  };

  /** The newest listing; starts another one when it is due. Undefined until there is one for these settings. */
  function readListing(key: string, previewed: PreviewedApp, repository: Repository): KnownListing | undefined {
    const identity = identifyListing(previewed);
    const taken = listings.take(key, identity);
    if (taken !== undefined) known.set(key, keepReferences(known.get(key), { identity, listing: taken, at: now() }));
    const last = known.get(key);
    const isSame = last?.identity === identity;
    if (!isSame || computeDueAt(previewed, last) <= now())
      listings.start(key, identity, { repository, previews: previewed.previews });
    return isSame ? last : undefined;
  }

  async function apply(
    previewed: PreviewedApp,
    { references }: Extract<Listing, { ok: true }>,
    log: Logger,
    signal: AbortSignal,
  ): Promise<boolean> {
    const { app } = previewed;
    // From the server: a cache could miss a preview that was just created, and there would be one too many.
    const existing = await listExisting(client, app, signal);
    const plan = planPreviews(previewed, references, existing);
    await remove(plan.remove, signal);
    for (const { object, spec } of plan.update) {
      const { uid, resourceVersion } = object.metadata;
      const patch = { metadata: { uid, resourceVersion }, spec };
      await client.patch(hostedApps, object.metadata, patch, { type: 'application/merge-patch+json', signal });
    }
    // Only after those that go are gone: they count until then.
    for (const manifest of plan.remove.length > 0 ? [] : plan.create) {
      try {
        await client.create(hostedApps, manifest, { signal, fieldManager: 'moorage' });
      } catch (error) {
        // 409 is also the answer when the quota could not be counted. That is tried again.
        if (!isApiStatus(error, 409) || error.reason !== 'AlreadyExists') throw error;
        log.warn({ preview: manifest.metadata.name }, 'the name of a preview is taken by another app');
      }
    }
    return plan.remove.length === 0 && !existing.some(({ metadata }) => metadata.deletionTimestamp !== undefined);
  }

  return async (key, { signal, log }) => {
    const { name } = parseObjectKey(key);
    const object = apps.get(key);
    const ofName = apps.listByIndex(byApp, name);
    if (object?.spec.previewOf !== undefined) {
      if (!hasOwner(object, apps)) await remove([object], signal);
      return done;
    }
    const prepared = object === undefined ? undefined : prepare(object, ofName.length > 0, config);
    if (object === undefined || prepared === undefined) {
      forget(known, listings, key);
      await remove(ofName, signal);
      return done;
    }
    const { previewed, repository } = prepared;
    await remove(
      ofName.filter((preview) => !isOwnedBy(preview, object)),
      signal,
    );
    const last = readListing(key, previewed, repository);
    if (last === undefined) return done;
    const isSettled = !last.listing.ok || (await apply(previewed, last.listing, log, signal));
    const dueMs = Math.max(0, computeDueAt(previewed, last) - now());
    return requeueAfter(isSettled ? dueMs : Math.min(dueMs, crowdedMs));
  };
}

/** The app with its settings and repository; undefined if it has no previews. */
function prepare(
  object: HostedAppObject,
  hasPreviews: boolean,
  { previews, gitHosts }: PreviewsConfig,
): { readonly previewed: PreviewedApp; readonly repository: Repository } | undefined {
  const app = hasPreviews || shouldPlan(object) ? parseApp(object) : undefined;
  const previewed = app === undefined ? undefined : resolvePreviews(app, previews);
  const { repo, private: isPrivate } = object.spec.source;
  const repository = readRepository(repo, gitHosts);
  if (previewed === undefined || repository instanceof RepositoryError) return undefined;
  return { previewed, repository: markPrivate(repository, isPrivate) };
}

function forget(known: Map<string, KnownListing>, listings: PreviewReconcilerOptions['listings'], key: string): void {
  known.delete(key);
  listings.forget(key);
}

/** If the server does not answer, its last listing still counts. */
function keepReferences(last: KnownListing | undefined, next: KnownListing): KnownListing {
  const isKept = !next.listing.ok && last?.listing.ok === true && last.identity === next.identity;
  return isKept ? { ...next, listing: last.listing } : next;
}

async function listExisting(client: Client, app: HostedApp, signal: AbortSignal): Promise<HostedAppObject[]> {
  const { name, namespace } = app.metadata;
  const found: HostedAppObject[] = [];
  const selection = { namespace, labelSelector: `${labels.app}=${name}` };
  for await (const object of client.listAll(hostedApps, { ...selection, signal })) found.push(object);
  return found;
}

/** Whether the cache has the app that owns a preview. */
function hasOwner(preview: HostedAppObject, apps: PreviewReconcilerOptions['apps']): boolean {
  const { namespace = '' } = preview.metadata;
  const owner = apps.get(`${namespace}/${preview.spec.previewOf?.app ?? ''}`);
  return owner !== undefined && isOwnedBy(preview, owner);
}

/** Whether the app may have previews. Most have none, and are not parsed. */
function shouldPlan({ spec, status }: HostedAppObject): boolean {
  const { pullRequests = false, branches = [] } = spec.previews ?? {};
  return shouldHavePreviews({ pullRequests, branches }) || status?.settings?.values.includes('"previews"') === true;
}

/** Undefined if the app cannot be parsed, which the controller of apps reports. */
function parseApp(object: HostedAppObject): HostedApp | undefined {
  const { data } = hostedApp.safeParse(object);
  return data === undefined
    ? undefined
    : { ...data, spec: applyControl(data.spec, data.metadata), pinned: findPins(object.spec) };
}

/** Changes with the settings, and with the annotation that a push hook writes; the git server is then asked again. */
function identifyListing({ app, previews: { pullRequests, branches } }: PreviewedApp): string {
  return computeHash([
    app.spec.source.repo,
    app.spec.source.private ?? false,
    pullRequests,
    branches,
    app.metadata.annotations?.[annotations.poll] ?? null,
  ]);
}

function computeDueAt({ app }: PreviewedApp, { at, listing }: KnownListing): number {
  return at + (listing.ok ? Math.max(30_000, parseDuration(app.spec.source.interval)) : retryMs);
}

// Listing. What a hook reported is never read: an event that is lost, repeated or late changes nothing.

export interface ListingQuery {
  readonly repository: Repository;
  readonly previews: Previews;
}

/** What the git server listed, or its error. */
export type Listing =
  | { readonly ok: true; readonly references: readonly PreviewReference[] }
  | { readonly ok: false; readonly message: string };

/** Longest reference that spec.previewOf can hold. */
const maximumNameLength = 250;

/** Enough for some hundred thousand references. */
const maximumBytes = 32 * 1024 * 1024;

/** Forges that keep refs/pull/N/head after a pull request is closed, and remove refs/pull/N/merge. */
const mergeReferenceHosts: ReadonlySet<string> = new Set(['github.com']);

/** Lists the references that these settings choose. Never rejects. */
export async function listPreviewReferences(
  { repository, previews }: ListingQuery,
  access?: GitAccess,
): Promise<Listing> {
  const hasMergeReferences = mergeReferenceHosts.has(repository.host);
  const patterns = [
    ...(previews.branches.length === 0 ? [] : ['refs/heads/*']),
    ...(previews.pullRequests ? ['refs/pull/*/head', 'refs/merge-requests/*/head'] : []),
    ...(previews.pullRequests && hasMergeReferences ? ['refs/pull/*/merge'] : []),
  ];
  const references: PreviewReference[] = [];
  const open = new Set<string>();
  const accept = (commit: string, name: string): void => {
    if (!isCommitId(commit)) return;
    if (name.endsWith('/merge')) open.add(name);
    const isWanted = parsePullReference(name) !== undefined || isChosenBranch(name, previews.branches);
    if (isWanted && name.length <= maximumNameLength) references.push({ name, commit });
  };
  try {
    await scanReferences(repository, patterns, accept, { access, maximumBytes });
  } catch (error) {
    return { ok: false, message: error instanceof Error ? error.message : String(error) };
  }
  const isOpen = ({ name }: PreviewReference): boolean =>
    !hasMergeReferences || parsePullReference(name) === undefined || open.has(formatMergeReference(name));
  return { ok: true, references: references.filter(isOpen) };
}
