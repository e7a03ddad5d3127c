// Keeps the data of an app: gives a planned app volumes for the paths in which its code keeps data, and reports the paths that
// do not last.
import { posix } from 'node:path';
import { appManifest, authorLimits, type ReportedSettings } from '../../../crds/app-manifest.ts';
import type { Finding } from '../../../crds/hosted-app.ts';
import type { PipelineInput } from '../contract.ts';
import { isReportable } from '../settings-report.ts';
import type { Tree } from '../tree.ts';
import { findData, type DataPath } from './data-paths.ts';
import type { DataSign } from './data-signs.ts';
import { isAuthoredDockerfile } from './dockerfile/text.ts';
import type { DeclaredVolume } from './platforms/declaration.ts';
import { formatVolume, isDataFolder, toVolumeName } from './platforms/compose/volumes.ts';
import { quoteShellWord, type Recipe } from './recipe.ts';

/** What is done about the data of an app. */
export interface LastingData {
  /** The settings with the added volumes. */
  readonly settings: ReportedSettings | undefined;
  /** Paths, relative to the app, that the start command of a planned image moves to the volume {@link linkFolder}. */
  readonly links: readonly DataPath[];
  /** What was added, as a sentence for the plan; absent: nothing. */
  readonly note?: string | undefined;
  readonly findings: readonly Finding[];
}

/** Where the app's own folder is in planned images. */
const plannedFolder = '/app';
/** Volume for files, and for folders that the image has files in. */
const linkFolder = '/data';

interface LastingInput {
  /** Tree of the app's folder. */
  readonly tree: Tree;
  readonly input: Pick<PipelineInput, 'build' | 'hasCommand' | 'pinned' | 'path' | 'services'>;
  readonly settings: ReportedSettings | undefined;
}

/** Plans volumes for the data of an app. Volumes that the author, or a file of another platform, has chosen stay. */
export function planLastingData(lasting: LastingInput): LastingData {
  const { tree, input, settings } = lasting;
  const isAuthored = isAuthoredDockerfile(tree, input.build);
  const base = isAuthored ? findWorkingFolder(tree.readFile(input.build.dockerfile) ?? '') : plannedFolder;
  const data = findData(tree, isAuthored ? 'authored' : 'planned');
  const paths = data.paths.filter((each) => isUsed(each, lasting) && !isCovered(each, base, settings));
  const { volumes, links, lost } = isAuthored ? { ...nowhere, lost: paths } : choosePlaces(lasting, paths);
  const added = volumes.length === 0 ? settings : addVolumes(settings, volumes, paths);
  const warn = (each: DataPath): Finding => warnAboutLoss(each, tree, input.path, base);
  const unplaced = listUnplaced(data.unplaced, lasting).map((each) => warnAboutUnplaced(each, input.path, base));
  if (added === undefined) return { settings, links: [], findings: [...paths.map(warn), ...unplaced] };
  return {
    settings: added,
    links,
    note: describeKept(paths.filter((each) => !lost.includes(each))),
    findings: [...lost.map(warn), ...unplaced],
  };
}

/** An author who has chosen volumes has decided where the data is kept. */
function listUnplaced(signs: readonly DataSign[], lasting: LastingInput): DataSign[] {
  const { input, settings } = lasting;
  if ((settings?.run?.volumes ?? []).length > 0 || input.pinned.includes('run.volumes')) return [];
  return signs.filter((each) => isUsed(each, lasting));
}

/** A database that a variable replaces is not used: run.env sets it, or a database server does. */
function isUsed({ file, line, what }: DataSign, { tree, input, settings }: LastingInput): boolean {
  const text = (tree.readFile(file) ?? '').split('\n')[line - 1] ?? '';
  const names = new Set((settings?.run?.env ?? []).map(({ name }) => name));
  const variables = [...text.matchAll(/\b[A-Z][A-Z0-9]*_[A-Z0-9_]+\b/g)].map(([name]) => name);
  if (variables.some((name) => names.has(name))) return false;
  const services = [...input.services, ...(settings?.services ?? [])];
  return !(what.startsWith('a database') && services.some(({ type }) => /^(?:postgres|mysql)/.test(type)));
}

function isCovered({ path }: DataPath, base: string | undefined, settings: LastingInput['settings']): boolean {
  const full = path.startsWith('/') ? path : posix.join(base ?? '/', path);
  const volumes = settings?.run?.volumes ?? [];
  return volumes.some((volume) => full === volume.path || full.startsWith(`${volume.path}/`));
}

interface Places {
  readonly volumes: readonly DeclaredVolume[];
  readonly links: readonly DataPath[];
  readonly lost: readonly DataPath[];
}

const nowhere: Places = { volumes: [], links: [], lost: [] };

/**
 * A folder without files of the image becomes a volume. Everything else is linked to one more volume, which the start
 * command of the plan does. None is added to volumes that someone has chosen.
 */
function choosePlaces({ tree, input, settings }: LastingInput, paths: readonly DataPath[]): Places {
  const { hasCommand, pinned } = input;
  if ((settings?.run?.volumes ?? []).length > 0 || pinned.includes('run.volumes')) return { ...nowhere, lost: paths };
  const canLink = ({ path }: DataPath): boolean => !hasCommand && !path.startsWith('/');
  const mountable = paths.filter((each) => isMountable(tree, each));
  const targets = [...new Set(mountable.map(toMountPath))];
  const separate = targets.filter((path) => !targets.some((other) => path.startsWith(`${other}/`)));
  const { count } = authorLimits.volumes;
  const needsLinks = paths.some((each) => !mountable.includes(each) && canLink(each));
  const mounted = separate.slice(0, needsLinks || (separate.length > count && !hasCommand) ? count - 1 : count);
  const isMounted = (each: DataPath): boolean =>
    mountable.includes(each) && mounted.some((path) => `${toMountPath(each)}/`.startsWith(`${path}/`));
  const links = paths.filter((each) => !isMounted(each) && canLink(each));
  const volumes = [...new Set([...mounted, ...(links.length > 0 ? [linkFolder] : [])])];
  return {
    volumes: volumes.map((path) => ({ name: toVolumeName(path), path })),
    links,
    lost: paths.filter((each) => !isMounted(each) && !links.includes(each)),
  };
}

/** Where a planned image would have the folder, or that of the file. */
function toMountPath({ path, kind }: DataPath): string {
  const folder = kind === 'folder' ? path : posix.dirname(path);
  return folder.startsWith('/') ? folder : posix.join(plannedFolder, folder);
}

/** A volume hides what the image has at its path. A file needs a folder of its own. */
function isMountable(tree: Tree, data: DataPath): boolean {
  const { path, kind } = data;
  const target = toMountPath(data);
  if (path.startsWith('/')) return target === linkFolder || isDataFolder(target);
  if (target === plannedFolder || !isDataFolder(target)) return false;
  return !tree
    .getSubtree(kind === 'folder' ? path : posix.dirname(path))
    .entries.some((each) => each.kind === 'file' && !/(?:^|\/)\.git(?:keep|ignore)$/.test(each.path));
}

/** Undefined if the settings have no room for them. */
function addVolumes(
  settings: ReportedSettings | undefined,
  volumes: readonly DeclaredVolume[],
  paths: readonly DataPath[],
): ReportedSettings | undefined {
  const { platform, ...own }: Partial<ReportedSettings> = settings ?? {};
  const read = appManifest.safeParse({ ...own, run: { ...own.run, volumes } });
  if (!read.success) return undefined;
  const files = [platform?.file, ...new Set(paths.map(({ file }) => file))].filter((each) => each !== undefined);
  const fields = [...(platform?.fields ?? []), 'run.volumes'].slice(-32);
  const added = { ...read.data, platform: { file: files.join(', ').slice(0, 200), fields } };
  return isReportable(added) ? added : undefined;
}

function describeKept(paths: readonly DataPath[]): string | undefined {
  const shown = paths.slice(0, 3).map(({ path, what }) => `${what} (${path})`);
  return shown.length === 0 ? undefined : `A volume keeps ${shown.join(', ')}.`;
}

function warnAboutLoss(data: DataPath, tree: Tree, appPath: string, base: string | undefined): Finding {
  const { path, kind, file, line, what } = data;
  const full = path.startsWith('/') || base === undefined ? path : posix.join(base, path);
  const folder = kind === 'folder' ? full : posix.dirname(full);
  const isOwnFolder = folder.startsWith('/') && isDataFolder(folder) && isMountable(tree, data);
  const place = isOwnFolder ? folder : posix.join(base ?? plannedFolder, 'data');
  const move = isOwnFolder ? 'Add' : `Write it to a folder of its own, such as ${place}, and add`;
  const otherwise = what.startsWith('a database')
    ? ' Or use a database server: services: [{name: db, type: postgres}].'
    : '';
  return {
    rule: 'data/not-lasting',
    severity: 'warning',
    file: posix.join(appPath, file),
    line,
    message: `The app keeps ${what} in ${full.slice(0, 150)}, which is on no volume: it is lost whenever the app is restarted or a new commit comes.`,
    fix: `${move} this to moorage.yaml: ${formatVolume(place)}.${otherwise}`,
  };
}

function warnAboutUnplaced({ file, line, what }: DataSign, appPath: string, base: string | undefined): Finding {
  const place = posix.join(base ?? plannedFolder, 'data');
  return {
    rule: 'data/not-lasting',
    severity: 'warning',
    file: posix.join(appPath, file),
    line,
    message: `The app keeps ${what}, and its code does not state in which folder. Unless that is on a volume, it is lost whenever the app is restarted or a new commit comes.`,
    fix: `Add the folder that it writes to, such as ${place}, to moorage.yaml: ${formatVolume(place)}.`,
  };
}

/** The working folder of the last stage of a Dockerfile; undefined if it is the one of its image. */
function findWorkingFolder(dockerfile: string): string | undefined {
  const lines = dockerfile
    .split(/\r?\n/)
    .map((line) => /^\s{0,20}(FROM|WORKDIR)\s{1,20}["']?([^\s"']{1,200})/i.exec(line));
  return lines.reduce<string | undefined>((folder, match) => {
    const [, word = '', value = ''] = match ?? [];
    if (word.toUpperCase() === 'FROM') return undefined;
    if (word === '' || value.includes('$')) return folder;
    return value.startsWith('/')
      ? posix.normalize(value)
      : folder === undefined
        ? undefined
        : posix.join(folder, value);
  }, undefined);
}

/**
 * Makes the start command of a planned image link these paths to the volume, where it is mounted. What the image has there
 * is copied at the first start. A file that is not there yet is a dangling link, through which it is created.
 */
export function addLinks(recipe: Recipe, links: readonly DataPath[]): Recipe {
  const { dockerfile } = recipe;
  const command = /^CMD \["sh","-c",(".*")\]$/m.exec(dockerfile ?? '');
  if (links.length === 0 || dockerfile === undefined || command === null) return recipe;
  const start = JSON.parse(command[1] ?? '""') as string;
  const text = `CMD ${JSON.stringify(['sh', '-c', `${renderLinks(links)}${start}`])}`;
  return { ...recipe, dockerfile: dockerfile.replace(command[0], () => text) };
}

function renderLinks(links: readonly DataPath[]): string {
  const calls = links.map(({ path, kind }) => {
    const [from, to] = [posix.join(plannedFolder, path), posix.join(linkFolder, path)].map(quoteShellWord);
    return `keep ${from ?? ''} ${to ?? ''}${kind === 'folder' ? ' folder' : ''}`;
  });
  return `keep() { mkdir -p "\${1%/*}" "\${2%/*}"; if [ -e "$1" ] && [ ! -L "$1" ]; then [ -e "$2" ] || cp -a "$1" "$2"; rm -rf "$1"; fi; [ -z "$3" ] || mkdir -p "$2"; [ -L "$1" ] || ln -s "$2" "$1"; }; if [ -w ${linkFolder} ]; then ${calls.join('; ')}; fi; `;
}
