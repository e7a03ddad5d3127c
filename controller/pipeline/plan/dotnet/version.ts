// Chooses the .NET that an app is built by and runs on: its own where there is one, else the next that takes it.
import { readField, parseJson, readText } from '../../manifest.ts';
import type { Tree } from '../../tree.ts';
import { images, type PlanInput } from '../recipe.ts';
import type { DotnetProject } from './project.ts';

export type DotnetImage = (typeof images.dotnet)[number];

export interface DotnetChoice {
  /** What it runs on. */
  readonly image: DotnetImage;
  /** What builds it, which may be newer. */
  readonly sdk: DotnetImage;
  /** The target that is published, such as net8.0. */
  readonly target: string | undefined;
  /** It runs on a newer .NET than it was written for. */
  readonly isRolledForward: boolean;
}

const newestImage = images.dotnet[images.dotnet.length - 1] ?? images.dotnet[0];
const newest = newestImage.version;
/** Older ASP.NET Core is not taken by any .NET that is maintained. */
const oldest = 3;

/** The choice, or the targets that nothing here can run. */
export function chooseDotnet(
  tree: Tree,
  { targets }: DotnetProject,
  input: PlanInput,
): DotnetChoice | { readonly asked: string } {
  const best = selectNewestTarget(targets);
  if (best === undefined && targets.length > 0) return { asked: targets.join(', ') };
  const image = selectOldestImage(best?.version ?? newest, input, (each) => [each.build, each.run]) ?? newestImage;
  const sdk = selectOldestImage(Math.max(image.version, readPinnedMajor(tree)), input, (each) => [each.build]) ?? image;
  return {
    image,
    sdk,
    target: targets.length > 1 ? best?.target : undefined,
    isRolledForward: best !== undefined && best.version < image.version,
  };
}

/** The newest of the targets that can be run here. */
function selectNewestTarget(targets: readonly string[]): { target: string; version: number } | undefined {
  return targets
    .map((target) => ({ target, version: parseTargetVersion(target) }))
    .filter(({ version }) => version >= oldest && version <= newest)
    .toSorted((one, other) => other.version - one.version)[0];
}

/** The oldest .NET from that version on whose images are there; the oldest at all where none is. */
function selectOldestImage(
  version: number,
  { missingImages = [] }: PlanInput,
  needed: (image: DotnetImage) => readonly string[],
): DotnetImage | undefined {
  const fitting = images.dotnet.filter((each) => each.version >= version);
  return fitting.find((each) => !needed(each).some((name) => missingImages.includes(name))) ?? fitting[0];
}

/** 8 of net8.0 and net8.0-windows, 3 of netcoreapp3.1; 0 of what is none of .NET (Core). */
function parseTargetVersion(target: string): number {
  return Number(/^(?:net(?=\d{1,2}\.)|netcoreapp)(\d{1,2})\.\d/.exec(target)?.[1] ?? 0);
}

function readPinnedMajor(tree: Tree): number {
  const version = readText(parseJson(tree.text('global.json')), 'sdk', 'version') ?? '';
  return Number(/^\d{1,2}/.exec(version)?.[0] ?? 0);
}

/** global.json without the exact version that it pins, which images of a later patch do not have; undefined where it pins none. */
export function removePin(tree: Tree): string | undefined {
  const parsed = parseJson(tree.text('global.json'));
  const sdk = readField(parsed, 'sdk');
  if (typeof parsed !== 'object' || parsed === null || sdk === undefined) return undefined;
  return JSON.stringify({ ...parsed, sdk: undefined });
}
