// Lists the files that identify a language, whether Moorage plans it or not.
import type { Tree } from '../tree.ts';

export interface Marker {
  readonly language: string;
  /** File name. */
  readonly file: RegExp;
  /** Whether a `Language` in plan.ts plans it. If not, the rejection names the file. */
  readonly planned: boolean;
  /** It is ignored if this file exists too. */
  readonly unless?: string;
}

export interface FoundMarker {
  readonly language: string;
  readonly file: string;
  readonly planned: boolean;
}

/** Server languages other than Python and Node. */
export const markers: readonly Marker[] = [
  { language: 'Go', file: /^go\.mod$/, planned: true },
  { language: 'Rust', file: /^Cargo\.toml$/, planned: true },
  { language: 'Java', file: /^(?:pom\.xml|build\.gradle(?:\.kts)?|settings\.gradle(?:\.kts)?)$/, planned: true },
  { language: 'PHP', file: /^composer\.json$/, planned: true },
  { language: 'Ruby', file: /^Gemfile$/, planned: true },
  { language: 'Deno', file: /^deno\.jsonc?$/, planned: true, unless: 'package.json' },
  { language: '.NET', file: /^[^/]{1,100}\.(?:csproj|fsproj|vbproj|sln|slnx)$/, planned: true },
  { language: 'Elixir', file: /^mix\.exs$/, planned: true },
  { language: 'Scala', file: /^build\.sbt$/, planned: false },
  { language: 'Clojure', file: /^(?:project\.clj|deps\.edn)$/, planned: false },
  { language: 'Haskell', file: /^(?:stack\.yaml|[^/]{1,100}\.cabal)$/, planned: false },
  { language: 'Swift', file: /^Package\.swift$/, planned: false },
  { language: 'Dart', file: /^pubspec\.yaml$/, planned: false },
  { language: 'Crystal', file: /^shard\.yml$/, planned: false },
  { language: 'Zig', file: /^build\.zig$/, planned: false },
  { language: 'C++', file: /^CMakeLists\.txt$/, planned: false },
  { language: 'R', file: /^(?:app\.R|server\.R|DESCRIPTION)$/, planned: false },
];

/** Finds the markers at the root of a tree, one per language. */
export function findMarkers(tree: Tree): FoundMarker[] {
  const top = tree.entries.filter((each) => each.kind === 'file' && !each.path.includes('/'));
  return markers.flatMap(({ language, file, planned, unless }) => {
    const found = top.find((each) => file.test(each.path))?.path;
    return found === undefined || (unless !== undefined && tree.has(unless))
      ? []
      : [{ language, file: found, planned }];
  });
}

/** Returns whether this is the name of a marker file. */
export function isMarker(name: string): boolean {
  return markers.some(({ file }) => file.test(name));
}
