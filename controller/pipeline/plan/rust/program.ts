// Finds the program of a Cargo package or workspace, its port, and what its build script needs.
import { posix } from 'node:path';
import { defaultNode } from '../../../../crds/languages.ts';
import { parseToml, readField, readText, readTexts } from '../../manifest.ts';
import type { Tree } from '../../tree.ts';
import { findExposedPort } from '../common/frontend.ts';
import { type Problem, renderStep } from '../recipe.ts';
import { buildInstallCommand, getManagerPackage } from '../node/manager.ts';
import { readProject } from '../node/project.ts';

export interface Program {
  readonly name: string;
  readonly others: readonly string[];
  /** Options that select features, with a leading space. */
  readonly features: string;
}

const plainName = /^[A-Za-z0-9_-]{1,80}$/;

/** Finds the default program, or the one named like the package or like a server, or the first. */
export function findProgram(tree: Tree): Program | undefined {
  const manifest = parseToml(tree.readFile('Cargo.toml'));
  const found = [
    ...listPrograms(tree, '.', manifest),
    ...listMembers(tree, manifest).flatMap((folder) => listPrograms(tree, folder)),
  ];
  const names = [...new Set(found)].filter((name) => plainName.test(name));
  const defaultRun = readText(manifest, 'package', 'default-run');
  const name =
    names.find((each) => each === defaultRun) ??
    names.find((each) => each === readText(manifest, 'package', 'name')) ??
    names.find((each) => /(?:^|[-_])(?:server|web|api|app|backend)$/.test(each)) ??
    names[0];
  if (name === undefined) return undefined;
  return { name, others: names.filter((each) => each !== name), features: selectDatabaseFeature(manifest) };
}

function listPrograms(
  tree: Tree,
  folder: string,
  manifest: unknown = parseToml(tree.readFile(posix.join(folder, 'Cargo.toml'))),
): string[] {
  const name = readText(manifest, 'package', 'name');
  const listed = readField(manifest, 'bin');
  const programNames = Array.isArray(listed) ? listed.flatMap((each) => readText(each, 'name') ?? []) : [];
  const files = tree.entries.flatMap((each) => {
    const match = each.path.startsWith(folder === '.' ? '' : `${folder}/`)
      ? /^src\/bin\/([\w-]{1,80})(?:\.rs|\/main\.rs)$/.exec(
          folder === '.' ? each.path : each.path.slice(folder.length + 1),
        )
      : null;
    return match?.[1] ?? [];
  });
  const mainProgram =
    name !== undefined && tree.has(posix.join(folder, 'src/main.rs')) && programNames.length === 0 ? [name] : [];
  return [...programNames, ...mainProgram, ...files];
}

/** Lists the member folders of a workspace; the last part may be "*". */
function listMembers(tree: Tree, manifest: unknown): string[] {
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

/** A program that supports several databases is built for the one that needs no server. */
function selectDatabaseFeature(manifest: unknown): string {
  const features = readField(manifest, 'features');
  const has = (name: string): boolean => readField(features, name) !== undefined;
  const standard = readTexts(features, 'default');
  return has('sqlite') && has('postgresql') && standard.length === 0 ? ' --features sqlite' : '';
}

const literals: readonly RegExp[] = [
  /(?:\.bind|TcpListener::bind|SocketAddr::from|\.run|\.parse)[^\n;]{0,60}?(?:"[\w.[\]]{0,40}:|\]\s{0,9},\s{0,9})(\d{4,5})\b/,
  /"(?:0\.0\.0\.0|127\.0\.0\.1|localhost|\[::\]):(\d{4,5})"/,
  /\b(?:default_value(?:_t)?)\s{0,9}=\s{0,9}"?[\w.[\]:]{0,30}?(\d{4,5})\b/,
  /\b\w{0,20}port\w{0,10}\b[^\n]{0,40}?[=(,]\s{0,9}(\d{4,5})(?:u16)?\b/i,
  /\.bind\(\s{0,9}\(\s{0,9}"[\w.]{1,40}"\s{0,9},\s{0,9}(\d{4,5})\s{0,9}\)/,
];
const aside = /(?:^|\/)(?:tests?|benches|examples|target)\//;

/** Returns undefined if there is none, or the port depends on the environment. Rocket reads ROCKET_PORT. */
export function findRustPort(tree: Tree): number | undefined {
  const files = tree.entries
    .filter((each) => each.kind === 'file' && each.path.endsWith('.rs') && !aside.test(each.path))
    .slice(0, 300)
    .map((each) => (tree.readFile(each.path, 64 * 1024) ?? '').replace(/^[ \t]*\/\/.*$/gm, ''));
  if (
    files.some((text) =>
      /(?:env::var|env::var_os|dotenv::var|var|env)\(\s{0,9}"PORT"|env\s{0,3}=\s{0,3}"PORT"|#\[launch\]|rocket::build/.test(
        text,
      ),
    )
  )
    return undefined;
  for (const pattern of literals)
    for (const text of files) {
      const port = Number(pattern.exec(text)?.[1]);
      if (port >= 1024 && port <= 65_535 && ![3306, 5432, 6379, 6333, 11_434, 27_017].includes(port)) return port;
    }
  return findExposedPort(tree);
}

const calls = /Command::new\(\s{0,20}"(bunx?|npm|npx|node|yarn|pnpm)"/;

/** Finds the first Node or Bun program that build.rs calls; undefined if it calls none. */
export function findBuildScriptTool(tree: Tree): string | undefined {
  return calls.exec(tree.readFile('build.rs') ?? '')?.[1];
}

/** Renders the lines before the compiler, with the repository in place: Node, the package manager, and the packages. */
export function buildScriptTools(tree: Tree, buildScriptTool: string): string[] {
  const project = readProject(tree);
  // Bun also works with another manager's lock file.
  const managers = [
    project === undefined ? undefined : getManagerPackage(project),
    buildScriptTool.startsWith('bun') && project?.manager !== 'bun' ? 'bun@1' : undefined,
  ].filter((each) => each !== undefined);
  const commands = [
    ...(managers.length === 0 ? [] : [`npm install --global --force ${managers.join(' ')}`]),
    ...(project === undefined
      ? []
      : [`{ ${buildInstallCommand(project.manager, project.locked ? project.file : undefined)}; }`]),
  ];
  return [
    `COPY --from=${defaultNode} /usr/local/bin/ /usr/local/bin/`,
    `COPY --from=${defaultNode} /usr/local/lib/node_modules/ /usr/local/lib/node_modules/`,
    ...(commands.length === 0
      ? []
      : renderStep(
          'build.rs',
          `installing what it calls (${buildScriptTool})`,
          // Node has its own list of certificate authorities; the image's list also has those of the installation's
          // mirror.
          `RUN --mount=type=cache,target=/root/.npm export NODE_EXTRA_CA_CERTS=/etc/ssl/certs/ca-certificates.crt; ${commands.join(' && ')}`,
        )),
  ];
}

const config = /^(?:[^/]{1,60}\/)?tauri\.conf\.json5?$/;
const servers =
  /^\s{0,9}"?(?:actix-web|axum|rocket|warp|hyper|tide|poem|salvo|gotham|ntex|tonic)"?(?:\.workspace)?\s{0,9}=/m;

/** Rejects known desktop frameworks; undefined if the program serves, or opens no window. */
export function detectDesktopApp(tree: Tree): Problem | undefined {
  const file = tree.entries.find((each) => each.kind === 'file' && config.test(each.path))?.path;
  if (file === undefined) return undefined;
  const manifests = tree.entries.filter(
    (each) => each.kind === 'file' && /^(?:[^/]{1,60}\/){0,2}Cargo\.toml$/.test(each.path),
  );
  if (manifests.some((each) => servers.test(tree.readFile(each.path) ?? ''))) return undefined;
  return {
    problem: {
      rule: 'plan/desktop-app',
      severity: 'error',
      file,
      message: 'This is a desktop app (Tauri): it opens a window on its own machine and answers no HTTP.',
      fix: 'Only apps that answer HTTP are hosted. If its pages work in a browser alone, set build.strategy: node in moorage.yaml.',
    },
  };
}
