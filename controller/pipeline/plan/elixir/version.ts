// Chooses the Elixir image for a project: by its requirement, or by the version that its author uses.
import { languages } from '../../../../crds/languages.ts';
import type { Tree } from '../../tree.ts';
import { type PlanInput } from '../recipe.ts';

export type ElixirImage = (typeof languages.elixir.images)[number];

export interface RequestedElixir {
  readonly file: string;
  /** The version as written. */
  readonly requestedVersion: string;
}

export interface ElixirChoice {
  readonly image: ElixirImage;
  /** A requested version that is not available. */
  readonly instead?: RequestedElixir;
}

const files: readonly (readonly [file: string, pattern: RegExp])[] = [
  ['.tool-versions', /^elixir\s{1,9}(\d{1,2}\.\d{1,2})/m],
  ['mise.toml', /^elixir\s{0,9}=\s{0,9}"(\d{1,2}\.\d{1,2})/m],
  ['elixir_buildpack.config', /^elixir_version=["']?(?:v|branch )?(\d{1,2}\.\d{1,2})/m],
  ['.elixir_buildpack.config', /^elixir_version=["']?(?:v|branch )?(\d{1,2}\.\d{1,2})/m],
];

/** Chooses the newest version that the requirement allows, or the version that a file names if it is available. */
export function chooseElixir(
  tree: Tree,
  { missingImages = [] }: PlanInput,
  mix: string,
): ElixirChoice | RequestedElixir {
  const { source, isAllowed } = parseRequirement(mix);
  const fitting = languages.elixir.images.filter(({ version }) => isAllowed(parseMinor(version)));
  if (fitting.length === 0) return { file: 'mix.exs', requestedVersion: source };
  const available = fitting.filter(({ build }) => !missingImages.includes(build));
  const usable = available.length === 0 ? fitting : available;
  const namedVersion = findNamedVersion(tree);
  const same = usable.find(({ version }) => version === namedVersion?.requestedVersion);
  const older =
    namedVersion !== undefined &&
    parseMinor(namedVersion.requestedVersion) < parseMinor(languages.elixir.images[0].version);
  const image = same ?? (older ? usable[0] : usable.at(-1)) ?? languages.elixir.images[0];
  return namedVersion === undefined || same !== undefined ? { image } : { image, instead: namedVersion };
}

function findNamedVersion(tree: Tree): RequestedElixir | undefined {
  for (const [file, pattern] of files) {
    const requestedVersion = pattern.exec(tree.readFile(file, 8192) ?? '')?.[1];
    if (requestedVersion !== undefined) return { file, requestedVersion };
  }
  return undefined;
}

interface Requirement {
  readonly source: string;
  /** Matches minor versions: only Elixir 1 exists. */
  readonly isAllowed: (minor: number) => boolean;
}

/** `elixir: "~> 1.14"`, also by an attribute of the module. */
function parseRequirement(mix: string): Requirement {
  const [, literal, attribute] = /\belixir:\s{0,9}(?:"([^"]{1,100})"|@(\w{1,60}))/.exec(mix) ?? [];
  const source =
    literal ??
    (attribute === undefined
      ? undefined
      : new RegExp(String.raw`@${attribute}\s{1,9}"([^"]{1,100})"`).exec(mix)?.[1]) ??
    '>= 1.0.0';
  const alternatives = source.split(/\s+or\s+/).map((each) => each.split(/\s+and\s+/));
  return { source, isAllowed: (minor) => alternatives.some((all) => all.every((each) => isConditionMet(each, minor))) };
}

function isConditionMet(condition: string, minor: number): boolean {
  const [, operator = '==', major = '1', minorText = '0', patch] =
    /^\s{0,9}(~>|>=|<=|>|<|==|!=)?\s{0,9}(\d{1,2})(?:\.(\d{1,3}))?(?:\.(\d{1,3}))?/.exec(condition) ?? [];
  // Elixir 2 would be newer than every available version.
  const requiredMinor = major === '1' ? Number(minorText) : Number(major) > 1 ? Infinity : -1;
  const rules: Readonly<Record<string, boolean>> = {
    '~>': patch === undefined ? minor >= requiredMinor : minor === requiredMinor,
    '>=': minor >= requiredMinor,
    '>': minor >= requiredMinor,
    '<=': minor <= requiredMinor,
    '<': minor < requiredMinor,
    '!=': true,
  };
  return rules[operator] ?? minor === requiredMinor;
}

function parseMinor(version: string): number {
  return Number(version.split('.')[1] ?? '0');
}
