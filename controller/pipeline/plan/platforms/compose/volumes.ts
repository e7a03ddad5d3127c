// Selects the volumes of a compose service that become disks of the app.
import { posix } from 'node:path';
import type { Finding } from '../../../../../crds/hosted-app.ts';
import type { Tree } from '../../../tree.ts';
import { createWarning, type DeclaredVolume } from '../declaration.ts';
import { toFolder } from './services.ts';
import { interpolate, type ComposeService, type Lookup } from './read.ts';

type Mount = NonNullable<ComposeService['volumes']>[number];

/** Folders that are generated, or part of the image: a disk there would be useless, or hide the image's files. */
const remade =
  /(?:^|\/)(?:node_modules|\.next|\.nuxt|\.venv|venv|__pycache__|\.cache|cache|\.npm|static|staticfiles|dist|build|target|vendor|bundle|certs?|ssl)(?:\/|$)/i;
const code =
  /^\/(?:app|src|code|srv|opt|usr\/src\/app|usr\/src|var\/www(?:\/html)?|home\/[^/]{1,40}\/app|workspace|project|www|root|tmp|home)$/;
const ofSystem = /^\/(?:proc|sys|dev|etc|run|var\/run|lib|usr\/lib|bin)(?:\/|$)/;
/** Names of folders and files that people give to data. */
const dataName =
  /(?:^|[/._-])(?:data|db|dbs|database|databases|uploads?|uploaded|storage|media|instance|persist(?:ent)?|sqlite|state|chroma(?:_?db)?|qdrant|vector_?(?:db|store)|index(?:es)?|files|documents|backups?|content)(?:[/._-]|$)/i;
const databaseFile = /\.(?:db3?|sqlite3?|json)$/i;

export interface MountedVolume extends DeclaredVolume {
  /** Name of the volume, or folder of the host; empty: neither. */
  readonly source: string;
}

/**
 * Selects the mounts of a service that hold data. One that cannot become a disk is reported with the lines of moorage.yaml
 * that keep its data.
 */
export function findDisks(
  file: string,
  { name, volumes = [] }: ComposeService,
  tree: Tree,
  lookup: Lookup = () => undefined,
): { volumes: MountedVolume[]; findings: Finding[] } {
  const mounts = volumes.map((mount) => cleanMount(mount, lookup));
  const lasting = mounts.filter((mount) => isDataMount(mount, tree));
  const disks = new Map(lasting.map((each) => [each.target, each]));
  const lost = mounts.filter((mount) => !lasting.includes(mount) && hasData(mount));
  return {
    volumes: removeDuplicateNames([...disks].map(([path, { source }]) => ({ name: toVolumeName(path), path, source }))),
    findings: [
      ...warnAboutSocket(file, name, volumes),
      ...warnAboutFiles(
        file,
        name,
        mounts.filter((mount) => !lost.includes(mount)),
        tree,
      ),
      ...lost.slice(0, 4).map((mount) => warnAboutLoss(file, name, mount, tree)),
    ],
  };
}

/** A variable without a value names a folder of the host too. */
function cleanMount({ source, target, isReadOnly }: Mount, lookup: Lookup): Mount {
  const path = interpolate(target, lookup) ?? target;
  return {
    source: interpolate(source, lookup) ?? source,
    target: path === '' ? '' : posix.normalize(path).replace(/(?!^)\/+$/, ''),
    isReadOnly,
  };
}

/** Returns whether a folder has a name that people give to data, and that no tool generates. */
export function isDataName(path: string): boolean {
  return dataName.test(posix.basename(path)) && !remade.test(`/${path}`);
}

/** Returns whether a disk can be mounted there without hiding files of the image. */
export function isDataFolder(target: string): boolean {
  if (!target.startsWith('/') || code.test(target) || ofSystem.test(target)) return false;
  // Uploads below a folder of generated files are not generated.
  return !remade.test(target) || (dataName.test(posix.basename(target)) && !remade.test(`/${posix.basename(target)}`));
}

/** Returns whether it is a named or anonymous volume, or a host folder that is not part of the repository. */
function isDataMount({ source, target, isReadOnly }: Mount, tree: Tree): boolean {
  if (!isDataFolder(target)) return false;
  if (source === '' || /^[^./~$]/.test(source)) return true;
  if (isReadOnly || /\.[a-z]{1,7}\d?$/i.test(source)) return false;
  if (/^[/~$]/.test(source)) return !ofHost.test(source);
  const folder = toFolder(source);
  return folder !== '.' && !folder.startsWith('..') && !tree.has(folder) && listFiles(tree, folder).length === 0;
}

/** Parts of the host's own system, such as its clock and its container runtime. */
const ofHost =
  /^\/(?:etc|proc|sys|dev|run|var\/run|var\/lib\/docker|usr|lib|bin)(?:\/|$)|^\/$|^~\/?$|^\$\{?(?:PWD|HOME)\}?\/?$|^(?:~|\$\{?HOME\}?)\/\./;

/** The files of a committed folder. One that contains only a placeholder is meant for data. */
function listFiles(tree: Tree, folder: string): string[] {
  return tree
    .getSubtree(folder)
    .entries.filter((each) => each.kind === 'file' && !/(?:^|\/)\.git(?:keep|ignore)$/.test(each.path))
    .map(({ path }) => path);
}

/** Returns whether losing what is written there would surprise the author. */
function hasData({ source, target, isReadOnly }: Mount): boolean {
  if (isReadOnly || !target.startsWith('/') || ofSystem.test(target) || ofHost.test(source)) return false;
  if (remade.test(`/${posix.basename(target)}`)) return false;
  const isNamed = /^[A-Za-z0-9]/.test(source);
  if (isNamed) return true;
  return source !== '' && (dataName.test(posix.basename(source)) || dataName.test(posix.basename(target)));
}

function warnAboutLoss(file: string, name: string, { source, target }: Mount, tree: Tree): Finding {
  const shown = source === '' ? target : `${source}:${target}`;
  const isFile = databaseFile.test(source) || tree.has(toFolder(source));
  const folder = isFile ? posix.join(posix.dirname(target), 'data') : posix.join(target, 'data');
  const why = isFile
    ? 'it is a single file, and a volume here is a folder'
    : `${target} holds files of the image, which a volume would hide`;
  return createWarning(
    'compose/not-lasting',
    file,
    `The service ${name} keeps data in ${shown.slice(0, 150)}, which does not become a volume: ${why}. What the app writes there is lost whenever it is restarted or a new commit comes.`,
    `Write the data to a folder of its own, and add it to moorage.yaml: ${formatVolume(folder)}`,
  );
}

/** The lines of moorage.yaml that make a folder last. */
export function formatVolume(path: string): string {
  return `run: {volumes: [{name: ${toVolumeName(path)}, path: ${path}}]}`;
}

export function toVolumeName(path: string): string {
  const label = path
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '-')
    .replace(/^[^a-z]+/, '')
    .slice(-30)
    .replace(/^[^a-z]+|-+$/g, '');
  return label === '' ? 'data' : label;
}

/** Names a volume after its component, too. */
export function addPrefix(component: string, volume: string): string {
  return `${component}-${volume}`.slice(0, 30).replace(/-+$/, '');
}

function removeDuplicateNames(volumes: readonly MountedVolume[]): MountedVolume[] {
  return volumes.filter(({ name }, index) => volumes.findIndex((each) => each.name === name) === index);
}

function warnAboutSocket(file: string, name: string, volumes: readonly Mount[]): Finding[] {
  if (!volumes.some(({ source }) => source.endsWith('docker.sock'))) return [];
  return [
    createWarning(
      'compose/docker-socket',
      file,
      `The service ${name} mounts the socket of Docker, which no app here has.`,
      'Turn off in its settings what starts containers.',
    ),
  ];
}

function warnAboutFiles(file: string, name: string, volumes: readonly Mount[], tree: Tree): Finding[] {
  const files = volumes.filter(
    ({ source, target }) => /^\.\//.test(source) && tree.has(toFolder(source)) && target !== '',
  );
  if (files.length === 0) return [];
  const shown = files
    .slice(0, 4)
    .map(({ source }) => source)
    .join(', ');
  return [
    createWarning(
      'compose/mounted-file',
      file,
      `The service ${name} mounts files of the repository (${shown}), which is not done here.`,
      'Copy them in the Dockerfile if the app reads them.',
    ),
  ];
}

const maximumVolumes = 20;

/** Reads the folders that the VOLUME instructions of an image's last stage declare. */
export function readDockerfileVolumes(text: string | undefined): DeclaredVolume[] {
  const joined = (text ?? '').slice(0, 256 * 1024).replaceAll(/\\\r?\n/g, ' ');
  const stage = joined.split(/^[ \t]{0,20}FROM[ \t]/im).at(-1) ?? '';
  const paths = [...stage.matchAll(/^[ \t]{0,20}VOLUME[ \t]{1,20}([^\n#]{1,500})/gim)]
    .flatMap(([, list = '']) => splitVolumes(list.trim()))
    .map((path) => posix.normalize(path).replace(/(?!^)\/+$/, ''))
    .filter((path) => isDataFolder(path) && !/[$\s:]/.test(path));
  return [...new Set(paths)].slice(0, maximumVolumes).map((path) => ({ name: toVolumeName(path), path }));
}

function splitVolumes(list: string): string[] {
  if (!list.startsWith('[')) return list.split(/\s{1,20}/);
  return [...list.matchAll(/"([^"]{1,200})"/g)].map(([, path = '']) => path);
}
