// The files by which a language is known at a glance, whether Moorage plans it or not.
import type { Tree } from '../tree.ts';

export interface Marker {
  readonly language: string;
  /** Name of the file. */
  readonly file: RegExp;
  /** A `Language` in plan.ts plans it. Until then its file is named in the refusal. */
  readonly planned: boolean;
  /** It says nothing beside this file. */
  readonly unless?: string;
}

export interface FoundMarker {
  readonly language: string;
  readonly file: string;
  readonly planned: boolean;
}

/** Languages of servers other than Python and Node. */
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

/** The markers at the top of a tree, one a language. */
export function findMarkers(tree: Tree): FoundMarker[] {
  const top = tree.entries.filter((each) => each.kind === 'file' && !each.path.includes('/'));
  return markers.flatMap(({ language, file, planned, unless }) => {
    const found = top.find((each) => file.test(each.path))?.path;
    return found === undefined || (unless !== undefined && tree.has(unless))
      ? []
      : [{ language, file: found, planned }];
  });
}

/** Is this the name of a marker's file? */
export function isMarker(name: string): boolean {
  return markers.some(({ file }) => file.test(name));
}
