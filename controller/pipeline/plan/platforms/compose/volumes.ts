// Selects the volumes of a compose service that become disks of the app.
import { posix } from 'node:path';
import type { Finding } from '../../../../../crds/hosted-app.ts';
import type { Tree } from '../../../tree.ts';
import { createWarning, type DeclaredVolume } from '../declaration.ts';
import { toFolder } from './services.ts';
import type { ComposeService } from './read.ts';

type Mount = NonNullable<ComposeService['volumes']>[number];

/** Folders that are generated, or part of the image: a disk there would be useless, or hide the image's files. */
const remade =
  /(?:^|\/)(?:node_modules|\.next|\.nuxt|\.venv|venv|__pycache__|\.cache|cache|\.npm|static|staticfiles|dist|build|target|vendor|bundle|certs?|ssl)(?:\/|$)/i;
const code =
  /^\/(?:app|src|code|srv|opt|usr\/src\/app|usr\/src|var\/www(?:\/html)?|home\/[^/]{1,40}\/app|workspace|project|www|root|tmp|home)$/;
const ofSystem = /^\/(?:proc|sys|dev|etc|run|var\/run|lib|usr\/lib|bin)(?:\/|$)/;

export function findDisks(
  file: string,
  { name, volumes = [] }: ComposeService,
  tree: Tree,
): { volumes: DeclaredVolume[]; findings: Finding[] } {
  const lasting = volumes.map(cleanMount).filter((mount) => isDataMount(mount, tree));
  const disks = new Map(lasting.map(({ target }) => [target, toVolumeName(target)]));
  return {
    volumes: removeDuplicateNames([...disks].map(([path, label]) => ({ name: label, path }))),
    findings: [...warnAboutSocket(file, name, volumes), ...warnAboutFiles(file, name, volumes.map(cleanMount), tree)],
  };
}

function cleanMount({ source, target }: Mount): Mount {
  return { source, target: posix.normalize(target).replace(/(?!^)\/+$/, '') };
}

/** Returns whether a disk can be mounted there without hiding files of the image. */
export function isDataFolder(target: string): boolean {
  return target.startsWith('/') && !code.test(target) && !ofSystem.test(target) && !remade.test(target);
}

/** Returns whether it is a named or anonymous volume, or a host folder that is not part of the repository. */
function isDataMount({ source, target }: Mount, tree: Tree): boolean {
  if (!isDataFolder(target)) return false;
  if (source === '') return true;
  if (!/^[./~$]/.test(source)) return true;
  if (!/^\.\.?\//.test(source) && source !== '.') return false;
  const folder = toFolder(source);
  // A committed folder that contains only a placeholder is meant for data.
  const files = tree
    .getSubtree(folder)
    .entries.filter((each) => each.kind === 'file' && !/(?:^|\/)\.git(?:keep|ignore)$/.test(each.path));
  return (
    folder !== '.' &&
    !folder.startsWith('..') &&
    !tree.has(folder) &&
    files.length === 0 &&
    !/\.[a-z]{1,5}$/i.test(folder)
  );
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

function removeDuplicateNames(volumes: readonly DeclaredVolume[]): DeclaredVolume[] {
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
