// Builds the arguments of buildctl, and chooses the layer cache that a build reads and updates.
import { basename, dirname, join } from 'node:path';
import { z } from 'zod';
import { cacheTags } from '../../../crds/names.ts';
import type { PipelineInput } from '../contract.ts';
import type { PlanNotes } from '../handover.ts';
import { parseRegistryHost } from './daemon.ts';

export interface Solve {
  readonly input: PipelineInput;
  readonly notes: PlanNotes;
  /** If absent, no layer cache is used. */
  readonly cache?: LayerCache | undefined;
  readonly address: string;
  /** Commit time in seconds since 1970. */
  readonly time: number;
  readonly policyFile: string;
  readonly metadataFile: string;
  /** Environment of buildctl, the only process with the push token. */
  readonly environment: Readonly<Record<string, string>>;
}

function buildCommonArguments({ input, notes, address, time, policyFile }: Solve): string[] {
  const variables = new Map(
    [...input.build.args, ...(notes.authored ? [] : input.build.env)].map((each) => [each.name, each.value]),
  );
  const options = [
    `filename=${basename(notes.dockerfile)}`,
    // Marks the "# syntax=" line as already processed, so that the built-in frontend handles the build.
    'cmdline=docker/dockerfile',
    ...(variables.has('SOURCE_DATE_EPOCH') ? [] : [`build-arg:SOURCE_DATE_EPOCH=${time}`]),
    ...(notes.authored && input.build.target !== undefined ? [`target=${input.build.target}`] : []),
    ...[...variables].map(([name, value]) => `build-arg:${name}=${value}`),
  ];
  return [
    '--addr',
    address,
    'build',
    '--frontend',
    'dockerfile.v0',
    '--progress',
    'plain',
    '--source-policy-file',
    policyFile,
    '--local',
    `context=${notes.context}`,
    '--local',
    `dockerfile=${dirname(notes.dockerfile)}`,
    ...options.flatMap((option) => ['--opt', option]),
  ];
}

/** Builds the arguments for a lint run. */
export function buildLintArguments(solve: Solve): string[] {
  return [...buildCommonArguments(solve), '--opt', 'requestid=frontend.lint'];
}

/** Builds the arguments for build and push. If there is a cache, the build reads and updates it. */
export function buildImageArguments(solve: Solve): string[] {
  const { input, cache, metadataFile } = solve;
  const output = [
    'type=image',
    // Push under a tag: most registries garbage-collect untagged images.
    `name=${input.push}:${input.tag}`,
    'push=true',
    'oci-mediatypes=true',
    'compression=zstd',
    'compression-level=3',
    'store=true',
  ];
  const imported =
    cache === undefined ? [] : ['--import-cache', `type=registry,ref=${cache.ref}`, ...buildExportArguments(cache)];
  return [...buildCommonArguments(solve), '--output', output.join(','), '--metadata-file', metadataFile, ...imported];
}

/** Builds the arguments that fill a cache from the daemon's latest build. */
export function buildCacheArguments(solve: Solve, cache: LayerCache): string[] {
  return [...buildCommonArguments(solve), ...buildExportArguments(cache)];
}

function buildExportArguments({ ref, mode }: LayerCache): string[] {
  const options = 'image-manifest=true,oci-mediatypes=true,compression=zstd,ignore-error=true';
  return ['--export-cache', `type=registry,ref=${ref},mode=${mode},${options}`];
}

/** Returns the file that buildctl writes the digest to. */
export function toMetadataPath(folder: string): string {
  return join(folder, 'build-metadata.json');
}

interface LayerCache {
  /** Reference with tag, at the registry proxy. */
  readonly ref: string;
  /** BuildKit's names of the two modes. */
  readonly mode: 'max' | 'min';
}

const cacheManifest = z.object({ layers: z.array(z.object({ size: z.int().min(0) })) });
const requestMilliseconds = 30_000;

/**
 * Chooses the cache for this build; undefined if the installation keeps none. An app normally has a cache of all steps.
 * If that became too large, it has one with only the image's layers, which are stored anyway. Only the registry knows
 * which of the two an app has.
 */
export async function chooseCache(input: PipelineInput, token: string | undefined): Promise<LayerCache | undefined> {
  if (input.cache === undefined) return undefined;
  const isSmall = (await readCacheSize(input, cacheTags.image, token)) !== undefined;
  return isSmall
    ? { ref: `${input.cache}:${cacheTags.image}`, mode: 'min' }
    : { ref: `${input.cache}:${cacheTags.all}`, mode: 'max' };
}

/**
 * Returns the smaller cache to fill as well if the cache of all steps exceeds its limit. Later builds use only the
 * smaller one.
 */
export async function chooseSmallerCache(
  input: PipelineInput,
  used: LayerCache | undefined,
  token: string | undefined,
): Promise<LayerCache | undefined> {
  if (input.cache === undefined || input.cacheBytes === undefined || used?.mode !== 'max') return undefined;
  const size = await readCacheSize(input, cacheTags.all, token);
  const isOver = size !== undefined && size > input.cacheBytes;
  return isOver ? { ref: `${input.cache}:${cacheTags.image}`, mode: 'min' } : undefined;
}

/** Returns the total size of a cache's layers; undefined if there is no cache or the registry does not report it. */
async function readCacheSize(
  { cache = '', plainHosts }: PipelineInput,
  tag: string,
  token: string | undefined,
): Promise<number | undefined> {
  const host = parseRegistryHost(cache);
  const url = `${plainHosts.includes(host) ? 'http' : 'https'}://${host}/v2/${cache.slice(host.length + 1)}/manifests/${tag}`;
  const authorization = `Basic ${Buffer.from(`moorage:${token ?? ''}`).toString('base64')}`;
  try {
    const answer = await fetch(url, {
      headers: {
        accept: 'application/vnd.oci.image.manifest.v1+json',
        ...(token === undefined ? {} : { authorization }),
      },
      signal: AbortSignal.timeout(requestMilliseconds),
    });
    if (answer.ok) return cacheManifest.parse(await answer.json()).layers.reduce((bytes, { size }) => bytes + size, 0);
    await answer.body?.cancel();
    return undefined;
  } catch {
    return undefined;
  }
}
