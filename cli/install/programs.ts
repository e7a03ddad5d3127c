// Finds helm, kubectl and kind: on the PATH if the version fits, or else compiled into the cache.
import { access, constants, mkdir } from 'node:fs/promises';
import { delimiter, join } from 'node:path';
import semver from 'semver';
import { getBinaryPath, buildPart } from '../../localnode/binaries/build.ts';
import { getRecipe } from '../../localnode/binaries/recipes.ts';
import { findGo } from '../../localnode/binaries/toolchain.ts';
import { kindVersion } from '../kind/docker.ts';
import { paths } from '../../localnode/paths.ts';
import { run } from '../../localnode/shell.ts';

interface Tool {
  name: string;
  /** Arguments with which it prints its version. */
  version: readonly string[];
  /** Versions that fit, as a semver range. */
  range: string;
  /** Where to get it. */
  link: string;
}

/** kubectl supports API servers one minor version apart; those that Moorage runs on have this version or a near one. */
const kubernetes = semver.parse(getRecipe('kubernetes').version);
const minor = kubernetes?.minor ?? 0;

export const tools = {
  // `--force-conflicts`, with which an upgrade takes fields back, came with Helm 4.
  helm: { name: 'helm', version: ['version', '--short'], range: '>=4.0.0', link: 'https://helm.sh/docs/intro/install' },
  kubectl: {
    name: 'kubectl',
    version: ['version', '--client'],
    range: `>=1.${minor - 2}.0`,
    link: 'https://kubernetes.io/docs/tasks/tools',
  },
  // Node images are made for a release of kind; later releases read them too.
  kind: { name: 'kind', version: ['version'], range: `>=${kindVersion.slice(1)}`, link: 'https://kind.sigs.k8s.io' },
} as const satisfies Record<string, Tool>;

/** The first version in what a tool prints, such as `1.35.4` of `Client Version: v1.35.4`. */
export function parseVersion(output: string): string | undefined {
  return /\bv?(\d+\.\d+\.\d+(?:-[0-9A-Za-z.-]+)?)/.exec(output)?.[1];
}

/** Whether what a tool prints names a version that fits. A pre-release counts as the release that it comes before. */
export function hasFittingVersion(tool: Tool, output: string): boolean {
  const version = parseVersion(output);
  return version !== undefined && semver.satisfies(version, tool.range, { includePrerelease: true });
}

/** The command's path if it is on the PATH, or undefined. */
async function findOnPath(name: string): Promise<string | undefined> {
  for (const folder of (process.env['PATH'] ?? '').split(delimiter)) {
    const file = join(folder, name);
    if (
      await access(file, constants.X_OK).then(
        () => true,
        () => false,
      )
    )
      return file;
  }
  return undefined;
}

/** A fitting program on the PATH, or else the one from `provide`. The error says what to install. */
async function findTool(tool: Tool, provide: () => Promise<string>): Promise<string> {
  const present = await findOnPath(tool.name);
  const output = present === undefined ? '' : await run(present, tool.version).catch(() => '');
  if (present !== undefined && hasFittingVersion(tool, output)) return present;
  try {
    return await provide();
  } catch (error) {
    const state =
      present === undefined ? 'none is on the PATH' : `${present} is ${parseVersion(output) ?? 'of unknown version'}`;
    const reason = error instanceof Error ? error.message : String(error);
    throw new Error(
      `${tool.name} ${tool.range} is needed (${state}) and could not be compiled: install it from ${tool.link}\n  ${reason}`,
      { cause: error },
    );
  }
}

export async function findHelm(): Promise<string> {
  return await findTool(tools.helm, async () => {
    await buildPart('helm');
    return getBinaryPath('helm', 'helm');
  });
}

export async function findKubectl(): Promise<string> {
  return await findTool(tools.kubectl, async () => {
    await buildPart('kubectl');
    return getBinaryPath('kubectl', 'kubectl');
  });
}

/** kind's module needs no patches, so the go command installs it, verified by the checksum database. */
export async function findKind(): Promise<string> {
  return await findTool(tools.kind, async () => {
    const folder = join(paths.cache, 'bin', `kind-${kindVersion}`);
    const kind = join(folder, 'kind');
    const isThere = await access(kind, constants.X_OK).then(
      () => true,
      () => false,
    );
    if (isThere) return kind;
    await mkdir(folder, { recursive: true });
    await run(await findGo(), ['install', '-trimpath', `sigs.k8s.io/kind@${kindVersion}`], {
      env: { GOBIN: folder, CGO_ENABLED: '0', GOFLAGS: '' },
    });
    return kind;
  });
}
