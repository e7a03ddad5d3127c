// The controller of previews: creates, moves and removes the HostedApps that show pull requests and branches of an app. It has no
// record of its own. What exists is in the cluster, and what is wanted is what the git server lists.
import type { Registry } from 'prom-client';
import { applyControl } from '../../crds/control.ts';
import { findPins } from '../../crds/effective-settings.ts';
import { hostedApp, type HostedApp } from '../../crds/hosted-app.ts';
import { annotations, labels } from '../../crds/names.ts';
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
import { readRepository, RepositoryError, type GitHosts, type Repository } from '../../lib/repository.ts';
import { parseDuration } from '../../lib/values.ts';
import { hostedApps, type HostedAppObject } from '../objects/kinds.ts';
import { byApp, type Unpacker } from '../reconcile/caches.ts';
import { createBackgroundLookups, type BackgroundLookups } from '../reconcile/controller.ts';
import { listPreviewReferences, type Listing, type ListingQuery } from './listing.ts';
import { isPreviewOf, planPreviews, resolvePreviews, type PreviewedApp, type PreviewLimits } from './plan.ts';

export interface PreviewsConfig {
  readonly appsNamespace: string;
  readonly gitHosts: GitHosts;
  readonly gitReadSecret?: string | undefined;
  readonly previews: PreviewLimits;
}

export interface PreviewReconcilerOptions {
  readonly client: Client;
  readonly apps: Pick<Unpacker<HostedAppObject>, 'get' | 'listByIndex'>;
  readonly config: PreviewsConfig;
  readonly listings: BackgroundLookups<ListingQuery, Listing>;
  readonly now?: () => number;
}

/** Listings in progress at the same time at one host. */
const listingsPerHost = 2;
/** A git server that did not answer is asked again after this long, and at most this often. */
const retryMs = 60_000;
/** A preview that is being deleted has to be gone before another one takes its turn. */
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
    run: (query: ListingQuery) => listPreviewReferences(query, config.gitReadSecret),
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

/** What the git server listed last, for which question, and when. */
interface KnownListing {
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
        if (!isApiStatus(error, 409)) throw error;
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
      ofName.filter((preview) => !isPreviewOf(preview, object)),
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
  const repository = readRepository(object.spec.source.repo, gitHosts);
  if (previewed === undefined || repository instanceof RepositoryError) return undefined;
  return { previewed, repository };
}

function forget(known: Map<string, KnownListing>, listings: PreviewReconcilerOptions['listings'], key: string): void {
  known.delete(key);
  listings.forget(key);
}

/** A server that does not answer changes nothing: what it listed last still counts. */
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

/** Whether the app of a preview is in the cache, and is the one that it was made for. */
function hasOwner(preview: HostedAppObject, apps: PreviewReconcilerOptions['apps']): boolean {
  const { namespace = '' } = preview.metadata;
  const owner = apps.get(`${namespace}/${preview.spec.previewOf?.app ?? ''}`);
  return owner !== undefined && isPreviewOf(preview, owner);
}

/** Whether the app may have previews. Spares most apps from being parsed. */
function shouldPlan({ spec, status }: HostedAppObject): boolean {
  const { pullRequests = false, branches = [] } = spec.previews ?? {};
  return pullRequests || branches.length > 0 || status?.settings?.values.includes('"previews"') === true;
}

/** Undefined for one that cannot be read, which the controller of apps reports. */
function parseApp(object: HostedAppObject): HostedApp | undefined {
  const { data } = hostedApp.safeParse(object);
  return data === undefined
    ? undefined
    : { ...data, spec: applyControl(data.spec, data.metadata), pinned: findPins(object.spec) };
}

/** Another value asks the git server again: of the settings, or of the annotation that a push hook writes. */
function identifyListing({ app, previews: { pullRequests, branches } }: PreviewedApp): string {
  return computeHash([
    app.spec.source.repo,
    pullRequests,
    branches,
    app.metadata.annotations?.[annotations.poll] ?? null,
  ]);
}

function computeDueAt({ app }: PreviewedApp, { at, listing }: KnownListing): number {
  return at + (listing.ok ? Math.max(30_000, parseDuration(app.spec.source.interval)) : retryMs);
}
