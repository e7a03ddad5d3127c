// Chooses the .NET version that builds and runs an app: the one it targets if available, otherwise the next compatible
// one.
import { languages } from '../../../../crds/languages.ts';
import { readField, parseJson, readText } from '../../manifest.ts';
import type { Tree } from '../../tree.ts';
import { type PlanInput } from '../recipe.ts';
import type { DotnetProject } from './project.ts';

export type DotnetImage = (typeof languages.dotnet.images)[number];

export interface DotnetChoice {
  /** Runtime image. */
  readonly image: DotnetImage;
  /** SDK image, which may be newer. */
  readonly sdk: DotnetImage;
  /** Target framework to publish, such as net8.0. */
  readonly target: string | undefined;
  /** It runs on a newer .NET than its target. */
  readonly isRolledForward: boolean;
}

const newestImage = languages.dotnet.images[languages.dotnet.images.length - 1] ?? languages.dotnet.images[0];
const newest = newestImage.version;
/** No supported .NET version runs anything older than this ASP.NET Core. */
const oldest = 3;

/** Returns the choice, or the targets that no available image can run. */
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

/** Selects the newest runnable target. */
function selectNewestTarget(targets: readonly string[]): { target: string; version: number } | undefined {
  return targets
    .map((target) => ({ target, version: parseTargetVersion(target) }))
    .filter(({ version }) => version >= oldest && version <= newest)
    .toSorted((one, other) => other.version - one.version)[0];
}

/** Selects the oldest available .NET from that version on; the oldest overall if there is none. */
function selectOldestImage(
  version: number,
  { missingImages = [] }: PlanInput,
  needed: (image: DotnetImage) => readonly string[],
): DotnetImage | undefined {
  const fitting = languages.dotnet.images.filter((each) => each.version >= version);
  return fitting.find((each) => !needed(each).some((name) => missingImages.includes(name))) ?? fitting[0];
}

/** Parses 8 from net8.0 and net8.0-windows, 3 from netcoreapp3.1; returns 0 if it is not .NET (Core). */
function parseTargetVersion(target: string): number {
  return Number(/^(?:net(?=\d{1,2}\.)|netcoreapp)(\d{1,2})\.\d/.exec(target)?.[1] ?? 0);
}

function readPinnedMajor(tree: Tree): number {
  const version = readText(parseJson(tree.readFile('global.json')), 'sdk', 'version') ?? '';
  return Number(/^\d{1,2}/.exec(version)?.[0] ?? 0);
}

/**
 * Returns global.json without its exact version pin, which images with a later patch do not satisfy; undefined if it
 * pins none.
 */
export function removePin(tree: Tree): string | undefined {
  const parsed = parseJson(tree.readFile('global.json'));
  const sdk = readField(parsed, 'sdk');
  if (typeof parsed !== 'object' || parsed === null || sdk === undefined) return undefined;
  return JSON.stringify({ ...parsed, sdk: undefined });
}
