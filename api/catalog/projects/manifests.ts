// The apps that every installation knows: HostedApps in manifests/apps, read once at start.
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseAllDocuments } from 'yaml';
import { z } from 'zod';
import { type HostedAppSpec, spec } from '../../../crds/hosted-app.ts';
import { annotations, group, kind, version } from '../../../crds/names.ts';

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
  const parsed = manifest.safeParse(hostedAppIn(path));
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

/** The HostedApp of a file, which may hold other objects beside it. */
function hostedAppIn(path: string): unknown {
  const objects = parseAllDocuments(readFileSync(path, 'utf8')).map((document) => {
    const [error] = document.errors;
    if (error !== undefined) throw new Error(`${path} is not valid: ${error.message}`);
    return document.toJS() as unknown;
  });
  const found = objects.filter((object) => z.looseObject({ kind: z.literal(kind) }).safeParse(object).success);
  if (found.length !== 1) throw new Error(`${path} is not valid: it must hold one ${kind}, and holds ${found.length}`);
  return found[0];
}
