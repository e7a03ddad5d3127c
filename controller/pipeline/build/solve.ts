// The arguments of buildctl: one way to ask for checks, one to build and push.
import { basename, dirname, join } from 'node:path';
import type { PipelineInput } from '../contract.ts';
import type { PlanNotes } from '../notes.ts';
import type { LayerCache } from './layer-cache.ts';

export interface Solve {
  readonly input: PipelineInput;
  readonly notes: PlanNotes;
  /** Absent: no layer cache is used. */
  readonly cache?: LayerCache | undefined;
  readonly address: string;
  /** Time of the commit, seconds since 1970. */
  readonly time: number;
  readonly policyFile: string;
  readonly metadataFile: string;
  /** Environment of buildctl, which alone holds the token for pushing. */
  readonly environment: Readonly<Record<string, string>>;
}

function common({ input, notes, address, time, policyFile }: Solve): string[] {
  const given = new Map(
    [...input.build.args, ...(notes.authored ? [] : input.build.env)].map((each) => [each.name, each.value]),
  );
  const options = [
    `filename=${basename(notes.dockerfile)}`,
    // Says that the "# syntax=" line was heeded already, so that the built-in frontend, which is that of the line, goes
    // on.
    'cmdline=docker/dockerfile',
    ...(given.has('SOURCE_DATE_EPOCH') ? [] : [`build-arg:SOURCE_DATE_EPOCH=${time}`]),
    ...(notes.authored && input.build.target !== undefined ? [`target=${input.build.target}`] : []),
    ...[...given].map(([name, value]) => `build-arg:${name}=${value}`),
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

/** Asks for the checks of the Dockerfile only. */
export function lintArguments(solve: Solve): string[] {
  return [...common(solve), '--opt', 'requestid=frontend.lint'];
}

/** Builds, pushes and, where a cache is named, uses and refills it. */
export function buildArguments(solve: Solve): string[] {
  const { input, cache, metadataFile } = solve;
  const output = [
    'type=image',
    // Under a tag: what has none is nobody's to most registries, and is collected.
    `name=${input.push}:${input.tag}`,
    'push=true',
    'oci-mediatypes=true',
    'compression=zstd',
    'compression-level=3',
    'store=true',
  ];
  const imported = cache === undefined ? [] : ['--import-cache', `type=registry,ref=${cache.ref}`, ...exporting(cache)];
  return [...common(solve), '--output', output.join(','), '--metadata-file', metadataFile, ...imported];
}

/** Fills a cache with what the daemon has built just now. */
export function cacheArguments(solve: Solve, cache: LayerCache): string[] {
  return [...common(solve), ...exporting(cache)];
}

function exporting({ ref, mode }: LayerCache): string[] {
  const options = 'image-manifest=true,oci-mediatypes=true,compression=zstd,ignore-error=true';
  return ['--export-cache', `type=registry,ref=${ref},mode=${mode},${options}`];
}

/** Where buildctl leaves the digest. */
export function metadataPath(folder: string): string {
  return join(folder, 'build-metadata.json');
}
