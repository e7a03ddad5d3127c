// Creates the record of each app: from its HostedApp, or from its manifest if it is not deployed.
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseAllDocuments } from 'yaml';
import { z } from 'zod';
import { readSettings, resolveSpec } from '../../../crds/effective-settings.ts';
import { type HostedAppSpec, spec } from '../../../crds/hosted-app.ts';
import { annotations, group, kind, labels, version } from '../../../crds/names.ts';
import { readSlug } from '../../../crds/slugs.ts';
import { toPublicStatus } from '../../../crds/public-status.ts';
import { parseAcceptedRepository, hashRepository } from '../../../lib/repository.ts';
import { type App, readRepository } from '../../apps/index.ts';
import { parseForgeRepository, type ForgeRepository } from './forges.ts';

export const projectStates = ['live', 'in_pipeline', 'rejected', 'not_deployed'] as const;

export interface ProjectRecord {
  readonly slug: string;
  /** Name of its HostedApp, under which it is measured. */
  readonly id: string;
  readonly title: string;
  readonly titleZh: string | null;
  readonly description: string;
  readonly descriptionZh: string | null;
  readonly category: CatalogApp['listing']['category'];
  /** Address of the original project. */
  readonly repo: string;
  /** Address of the repository that is built. */
  readonly source: string;
  readonly forge: ForgeRepository | undefined;
  readonly state: (typeof projectStates)[number];
  /** Start of this state. */
  readonly since: string | null;
  /** Undefined where it is not deployed. */
  readonly app: App | undefined;
  /** Somebody else's app has its name on the cluster. */
  readonly isNameTaken: boolean;
  /** Text that a search matches. */
  readonly text: string;
}

type Listing = Pick<ProjectRecord, 'slug' | 'id' | 'titleZh' | 'descriptionZh' | 'source'> & {
  readonly listing: CatalogApp['listing'];
  readonly note?: string | undefined;
};

/** An app of the catalog, with the app of its name on the cluster where that is the same. */
export function createCatalogRecord(known: CatalogApp, app: App | undefined): ProjectRecord {
  const hostedApp = app !== undefined && isSameApp(app, known) ? app : undefined;
  const described = {
    ...known,
    id: known.slug,
    titleZh: known.titleZh ?? null,
    descriptionZh: known.descriptionZh ?? null,
    source: hostedApp === undefined ? known.source : readRepository(hostedApp).url,
  };
  return createRecord(described, hostedApp, app !== undefined && hostedApp === undefined);
}

/** An app that was submitted or made by hand. */
export function createAppRecord(app: App): ProjectRecord {
  const { listing } = isWithheld(app)
    ? { listing: { category: resolveSpec(app, undefined).listing.category } }
    : resolveSpec(app, readSettings(app.status?.built?.settings));
  const noted = app.metadata.annotations ?? {};
  return createRecord(
    {
      slug: readSlug(app),
      id: app.metadata.name,
      listing,
      note: isWithheld(app) ? undefined : app.spec.submission?.note,
      titleZh: noted[annotations.titleZh] ?? null,
      descriptionZh: noted[annotations.descriptionZh] ?? null,
      source: readRepository(app).url,
    },
    app,
    false,
  );
}

/**
 * Whether what is said of an app is not shown: a stranger submitted it, and it has never been live (its address stays in
 * the status).
 */
function isWithheld({ metadata, status }: App): boolean {
  return metadata.labels?.[labels.caller] !== undefined && status?.url === undefined;
}

/**
 * The operator of the installation may deploy an app of the catalog from wherever it likes; what somebody submitted is it
 * only if it comes from the same repository.
 */
function isSameApp(app: App, { source }: CatalogApp): boolean {
  const isSubmitted = app.metadata.labels?.[labels.caller] !== undefined;
  return (
    !isSubmitted || hashRepository(readRepository(app).url) === hashRepository(parseAcceptedRepository(source).url)
  );
}

function createRecord({ listing, note, ...known }: Listing, app: App | undefined, isNameTaken: boolean): ProjectRecord {
  const title = listing.title ?? known.slug;
  const description = listing.description ?? note ?? '';
  const repo = listing.upstream ?? known.source;
  const text = [known.slug, title, known.titleZh, description, known.descriptionZh, repo, known.source];
  return {
    ...known,
    title,
    description,
    category: listing.category,
    repo,
    forge: parseForgeRepository(repo),
    ...readState(app),
    app,
    isNameTaken,
    text: text.join('\n').toLowerCase(),
  };
}

function readState(app: App | undefined): Pick<ProjectRecord, 'state' | 'since'> {
  if (app === undefined) return { state: 'not_deployed', since: null };
  const { status, since } = toPublicStatus(app);
  return { state: status, since: since ?? app.metadata.creationTimestamp };
}

export const appsFolder = join(import.meta.dirname, '../../../manifests/apps');

const manifest = z.object({
  apiVersion: z.literal(`${group}/${version}`),
  kind: z.literal(kind),
  metadata: z.object({ name: z.string(), annotations: z.record(z.string(), z.string()).default({}) }),
  spec,
});

/** An app of the catalog, as its manifest describes it. */
export interface CatalogApp {
  readonly slug: string;
  readonly listing: HostedAppSpec['listing'];
  readonly titleZh: string | undefined;
  readonly descriptionZh: string | undefined;
  /** Address of the repository that is built. */
  readonly source: string;
}

/** Reads every file of the folder. @throws Error that names the file and each field that is wrong */
export function readCatalogApps(folder: string = appsFolder): CatalogApp[] {
  return readdirSync(folder)
    .filter((name) => name.endsWith('.yaml'))
    .sort()
    .map((name) => readCatalogApp(join(folder, name), name.slice(0, -'.yaml'.length)));
}

function readCatalogApp(path: string, slug: string): CatalogApp {
  const parsed = manifest.safeParse(readHostedApp(path));
  if (!parsed.success)
    throw new Error(
      `${path} is not valid:\n${parsed.error.issues.map((issue) => `  ${issue.path.join('.')}: ${issue.message}`).join('\n')}`,
    );
  const { metadata, spec: described } = parsed.data;
  if (metadata.name !== slug)
    throw new Error(`${path} is not valid: metadata.name must be ${slug}, as the file is named`);
  return {
    slug,
    listing: described.listing,
    titleZh: metadata.annotations[annotations.titleZh],
    descriptionZh: metadata.annotations[annotations.descriptionZh],
    source: described.source.repo,
  };
}

/** The HostedApp of a file, which may hold other objects too. */
function readHostedApp(path: string): unknown {
  const objects = parseAllDocuments(readFileSync(path, 'utf8')).map((document) => {
    const [error] = document.errors;
    if (error !== undefined) throw new Error(`${path} is not valid: ${error.message}`);
    return document.toJS() as unknown;
  });
  const matches = objects.filter((object) => z.looseObject({ kind: z.literal(kind) }).safeParse(object).success);
  if (matches.length !== 1)
    throw new Error(`${path} is not valid: it must hold one ${kind}, and holds ${matches.length}`);
  return matches[0];
}
