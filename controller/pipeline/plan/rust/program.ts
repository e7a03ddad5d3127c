// Finds the program of a Cargo package or workspace.
import { posix } from 'node:path';
import { readField, parseToml, readText, readTexts } from '../../manifest.ts';
import type { Tree } from '../../tree.ts';

export interface Program {
  readonly name: string;
  readonly others: readonly string[];
  /** Options that choose features, with a space before. */
  readonly features: string;
}

const plainName = /^[A-Za-z0-9_-]{1,80}$/;

/** The default program, the one that is called like the package or like a server, or the first. */
export function findProgram(tree: Tree): Program | undefined {
  const manifest = parseToml(tree.text('Cargo.toml'));
  const found = [
    ...programsOf(tree, '.', manifest),
    ...members(tree, manifest).flatMap((folder) => programsOf(tree, folder)),
  ];
  const names = [...new Set(found)].filter((name) => plainName.test(name));
  const wanted = readText(manifest, 'package', 'default-run');
  const name =
    names.find((each) => each === wanted) ??
    names.find((each) => each === readText(manifest, 'package', 'name')) ??
    names.find((each) => /(?:^|[-_])(?:server|web|api|app|backend)$/.test(each)) ??
    names[0];
  if (name === undefined) return undefined;
  return { name, others: names.filter((each) => each !== name), features: databaseFeature(manifest) };
}

function programsOf(
  tree: Tree,
  folder: string,
  manifest: unknown = parseToml(tree.text(posix.join(folder, 'Cargo.toml'))),
): string[] {
  const name = readText(manifest, 'package', 'name');
  const listed = readField(manifest, 'bin');
  const named = Array.isArray(listed) ? listed.flatMap((each) => readText(each, 'name') ?? []) : [];
  const files = tree.entries.flatMap((each) => {
    const match = each.path.startsWith(folder === '.' ? '' : `${folder}/`)
      ? /^src\/bin\/([\w-]{1,80})(?:\.rs|\/main\.rs)$/.exec(
          folder === '.' ? each.path : each.path.slice(folder.length + 1),
        )
      : null;
    return match?.[1] ?? [];
  });
  const own = name !== undefined && tree.has(posix.join(folder, 'src/main.rs')) && named.length === 0 ? [name] : [];
  return [...named, ...own, ...files];
}

/** Folders of the members of a workspace; the last part may be "*". */
function members(tree: Tree, manifest: unknown): string[] {
  return readTexts(manifest, 'workspace', 'members')
    .slice(0, 50)
    .flatMap((member) =>
      member.endsWith('/*')
        ? tree.entries
            .filter((each) => each.kind === 'directory' && posix.dirname(each.path) === member.slice(0, -2))
            .map((each) => each.path)
        : [member],
    );
}

/** A program of several databases is built for the one that needs no server. */
function databaseFeature(manifest: unknown): string {
  const features = readField(manifest, 'features');
  const has = (name: string): boolean => readField(features, name) !== undefined;
  const standard = readTexts(features, 'default');
  return has('sqlite') && has('postgresql') && standard.length === 0 ? ' --features sqlite' : '';
}
