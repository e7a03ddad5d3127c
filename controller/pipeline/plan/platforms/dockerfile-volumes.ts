// Which folders a Dockerfile declares as volumes in its last stage.
import { posix } from 'node:path';
import { isDataFolder, volumeName } from './compose/volumes.ts';
import type { DeclaredVolume } from './declaration.ts';

const maximum = 20;

export function dockerfileVolumes(text: string | undefined): DeclaredVolume[] {
  const joined = (text ?? '').slice(0, 256 * 1024).replaceAll(/\\\r?\n/g, ' ');
  const stage = joined.split(/^[ \t]{0,20}FROM[ \t]/im).at(-1) ?? '';
  const paths = [...stage.matchAll(/^[ \t]{0,20}VOLUME[ \t]{1,20}([^\n#]{1,500})/gim)]
    .flatMap(([, given = '']) => listed(given.trim()))
    .map((path) => posix.normalize(path).replace(/(?!^)\/+$/, ''))
    .filter((path) => isDataFolder(path) && !/[$\s:]/.test(path));
  return [...new Set(paths)].slice(0, maximum).map((path) => ({ name: volumeName(path), path }));
}

function listed(given: string): string[] {
  if (!given.startsWith('[')) return given.split(/\s{1,20}/);
  return [...given.matchAll(/"([^"]{1,200})"/g)].map(([, path = '']) => path);
}
