// Chooses the Node image that a project requests.
import semver from 'semver';
import type { Finding } from '../../../../crds/hosted-app.ts';
import { defaultNode, languages } from '../../../../crds/languages.ts';
import type { Tree } from '../../tree.ts';
import { readKeys, parseJson, readText } from '../../manifest.ts';

export interface NodeChoice {
  readonly image: string;
  /** A sentence that names the file and the requested version; absent if there is no request. */
  readonly because?: string;
  readonly findings: readonly Finding[];
}

interface VersionRequest {
  readonly file: string;
  /** The request as written. */
  readonly words: string;
  readonly isFitting: (major: number) => boolean;
  /** The requested major version; absent for a range. */
  readonly major?: number;
}

const newest = languages.node.images.at(-1)?.version ?? 24;
const names: Readonly<Record<string, number>> = { gallium: 16, hydrogen: 18, iron: 20, jod: 22, krypton: 24 };

/** Returns the image of the requested version, or the nearest one with a warning. */
export function chooseNode(
  tree: Tree,
  dependencies: Readonly<Record<string, string>>,
  missingImages: readonly string[] = [],
): NodeChoice {
  const available = languages.node.images.filter(({ image }) => !missingImages.includes(image));
  const request =
    readVersionFile(tree) ??
    readManifestVersion(tree) ??
    inferVersionFromScripts(tree) ??
    inferVersionFromAge(tree, dependencies);
  if (request === undefined) return { image: defaultNode, findings: [] };
  const fitting = available.filter(({ version }) => request.isFitting(version));
  const found = fitting.find(({ version }) => version === request.major) ?? fitting.at(-1);
  if (found !== undefined) {
    const because = found.image === defaultNode ? {} : { because: `${request.file} asks for Node ${request.words}.` };
    return { image: found.image, ...because, findings: [] };
  }
  const nearest = selectNearest(request, available);
  return { image: nearest.image, findings: [createUnavailableFinding(request, nearest.version, available)] };
}

type NodeImage = (typeof languages.node.images)[number];

function selectNearest({ major, words }: VersionRequest, available: readonly NodeImage[]): NodeImage {
  const wantedMajor = major ?? semver.minVersion(words)?.major ?? newest;
  const last = available.at(-1) ?? languages.node.images[languages.node.images.length - 1] ?? languages.node.images[0];
  return available.find((each) => each.version >= wantedMajor) ?? last;
}

function createUnavailableFinding(
  { file, words }: VersionRequest,
  used: number,
  available: readonly NodeImage[],
): Finding {
  return {
    rule: 'plan/node-version',
    severity: 'warning',
    file,
    message: `${file} asks for Node ${words}, which is not available; Node ${used} is used.`,
    fix: `Ask for one of ${available.map(({ version }) => version).join(', ')} if the app runs on it; otherwise, add a Dockerfile with the version that it needs.`,
  };
}

/** Reads a single version from .nvmrc, .node-version or .tool-versions. */
function readVersionFile(tree: Tree): VersionRequest | undefined {
  for (const file of ['.nvmrc', '.node-version']) {
    const request = parseSingleVersion(file, tree.readFile(file, 1000) ?? '');
    if (request !== undefined) return request;
  }
  const tool = /^[ \t]{0,9}node(?:js)?[ \t]{1,9}([^\s#]{1,40})/m.exec(
    tree.readFile('.tool-versions', 16 * 1024) ?? '',
  )?.[1];
  return tool === undefined ? undefined : parseSingleVersion('.tool-versions', tool);
}

function parseSingleVersion(file: string, version: string): VersionRequest | undefined {
  const words = version.trim().split(/\s/, 1)[0] ?? '';
  const code = /^lts[/-](\w{1,20})$/i.exec(words)?.[1]?.toLowerCase();
  const major = code === undefined ? Number(/^v?(\d{1,3})\b/.exec(words)?.[1]) : names[code];
  return major === undefined || Number.isNaN(major)
    ? undefined
    : { file, words, major, isFitting: (each) => each === major };
}

/** Reads `volta.node`, then the range in `engines.node`. */
function readManifestVersion(tree: Tree): VersionRequest | undefined {
  const manifest = parseJson(tree.readFile('package.json'));
  const pinned = parseSingleVersion('package.json', readText(manifest, 'volta', 'node') ?? '');
  const range = readText(manifest, 'engines', 'node');
  if (pinned !== undefined || range === undefined) return pinned;
  if (range.length > 200 || semver.validRange(range) === null) return undefined;
  return { file: 'package.json', words: range, isFitting: (major) => semver.intersects(range, `${major}.x`) };
}

const legacyOption = '--openssl-legacy-provider';

/**
 * Detects scripts that re-enable an old hash algorithm for an old bundler. The option does not exist before Node 17,
 * and is not needed there.
 */
function inferVersionFromScripts(tree: Tree): VersionRequest | undefined {
  const manifest = parseJson(tree.readFile('package.json'));
  const asks = readKeys(manifest, 'scripts').some((name) =>
    readText(manifest, 'scripts', name)?.includes(legacyOption),
  );
  return asks
    ? { file: 'package.json', words: `18 by ${legacyOption}`, major: 18, isFitting: (each) => each >= 17 }
    : undefined;
}

/** Bundlers from before Node 17 use a hash algorithm that later versions reject. */
const aged: Readonly<Record<string, number>> = {
  'react-scripts': 5,
  webpack: 5,
  '@vue/cli-service': 5,
  next: 11,
  nuxt: 3,
  gatsby: 3,
  '@angular-devkit/build-angular': 12,
  'laravel-mix': 6,
};
const locks = ['package-lock.json', 'yarn.lock', 'pnpm-lock.yaml'];
const lockBytes = 16 * 1024 * 1024;

/** A range may allow newer versions than the lock file has, and "latest" names none. */
function inferVersionFromAge(tree: Tree, dependencies: Readonly<Record<string, string>>): VersionRequest | undefined {
  const used = Object.entries(aged).filter(([name]) => Object.hasOwn(dependencies, name));
  const lock = used.length === 0 ? undefined : locks.find((each) => tree.has(each));
  const text = lock === undefined ? '' : (tree.readFile(lock, lockBytes) ?? '');
  for (const [name, since] of used) {
    const locked = findLockedVersion(text, name);
    const version = locked ?? dependencies[name] ?? '';
    const lowest = computeLowestMajor(version);
    if (lowest === undefined || lowest >= since) continue;
    const file = locked === undefined || lock === undefined ? 'package.json' : lock;
    return { file, words: `16 by its ${name} ${version}`, major: 16, isFitting: (each) => each === 16 };
  }
  return undefined;
}

/** Reads the first version of a package in a lock file of npm, Yarn or pnpm. */
function findLockedVersion(lock: string, name: string): string | undefined {
  const word = name.replace(/[/.]/g, String.raw`\$&`);
  return [
    String.raw`^\s{2,4}"(?:node_modules/)?${word}": \{\s{1,20}"version": "(\d[\w.+-]{0,40})"`,
    String.raw`^"?${word}@[^\n]{1,300}:\n {2}version:? "?(\d[\w.+-]{0,40})"?`,
    String.raw`^ {2}(?:'|/)?${word}[@/](\d[\w.+-]{0,40})`,
  ]
    .map((pattern) => new RegExp(pattern, 'm').exec(lock)?.[1])
    .find((version) => version !== undefined);
}

function computeLowestMajor(range: string | undefined): number | undefined {
  if (range === undefined || range.length > 100 || semver.validRange(range) === null || range === '*') return undefined;
  return semver.minVersion(range)?.major;
}
