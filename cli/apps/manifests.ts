// The manifests of the eight apps: read and checked, and pointed at the cluster's own git server where it hosts a copy.
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { parse } from 'yaml';
import { z } from 'zod';
import { spec } from '../../crds/hosted-app.ts';
import { acceptedRepository } from '../../lib/repository.ts';
import { paths } from '../../localnode/paths.ts';

/** On a manifest: hexadecimal digits of each key of each Secret that is made for the app, as JSON. */
const generated = 'moorage.dev/generated-secrets';

const digits = z.record(z.string(), z.record(z.string(), z.int().min(16).max(256)));
const jsonText = z.string().transform((text, context) => {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    context.addIssue({ code: 'custom', message: 'is not JSON' });
    return z.NEVER;
  }
});

const manifest = z.looseObject({
  apiVersion: z.literal('moorage.dev/v1alpha1'),
  kind: z.literal('HostedApp'),
  metadata: z.looseObject({ name: z.string(), annotations: z.record(z.string(), z.string()).default({}) }),
  spec: z.looseObject({ source: z.looseObject({ repo: z.string() }) }),
});
type Document = z.output<typeof manifest>;

/** One app, as its manifest describes it. */
export interface AppManifest {
  readonly slug: string;
  /** owner/name at its git host. */
  readonly repository: string;
  /** Digits of each key, by the name of the Secret. */
  readonly secrets: Readonly<Record<string, Readonly<Record<string, number>>>>;
  readonly document: Document;
}

/** All of them, by slug. @throws ZodError for one that is no HostedApp */
export async function readManifests(folder = join(paths.root, 'manifests', 'apps')): Promise<AppManifest[]> {
  const files = (await readdir(folder)).filter((file) => file.endsWith('.yaml')).sort();
  return Promise.all(files.map(async (file) => readManifest(await readFile(join(folder, file), 'utf8'))));
}

export function readManifest(text: string): AppManifest {
  const document = manifest.parse(parse(text));
  // The server checks it again; here a mistake is found without one.
  const { source } = spec.parse(document.spec);
  const { owner, name } = acceptedRepository(source.repo);
  const { [generated]: secrets = '{}' } = document.metadata.annotations;
  return {
    slug: document.metadata.name,
    repository: `${owner}/${name}`,
    secrets: jsonText.pipe(digits).parse(secrets),
    document,
  };
}

/** The same app, from a copy of its repository that the cluster's git server has. */
export function hostedFrom({ document }: AppManifest, repo: string): Document {
  const { revision: _revision, ...source } = document.spec.source;
  return { ...document, spec: { ...document.spec, source: { ...source, repo } } };
}
