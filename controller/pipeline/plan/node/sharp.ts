// Sharp for the versions of Next.js that do not bring it. Without it they scale pictures in JavaScript: that takes a
// minute and half a gigabyte for one photo, and a limit of memory ends it without a word.
import semver from 'semver';
import { formatReport } from '../build-warnings.ts';
import { copy, step } from '../dockerfile-text.ts';
import type { NodeProject } from './project.ts';

const version = '0.33.5';
const folder = '/opt/sharp';
/** Next.js has scaled pictures since 10, and brings sharp since 15. */
const needed = { from: 10, until: 15 };

/** True for a server of Next.js that has no sharp of its own, where there is one for its Node. */
export function wantsSharp({ ranges, dependencies }: NodeProject, image: string): boolean {
  const range = ranges['next'] ?? '';
  if (dependencies.has('sharp') || image.startsWith('node:16') || semver.validRange(range) === null) return false;
  const major = semver.minVersion(range)?.major ?? 0;
  return major >= needed.from && major < needed.until;
}

/** The app runs without it too, so that a failure is a warning; the folder is there for the next stage in any case. */
export function installSharp(cache: string): string[] {
  const install = `npm install --prefix ${folder} sharp@${version}`;
  return step(
    'package.json',
    'installing sharp, by which Next.js scales pictures',
    `RUN ${cache} ${install} || { rm -rf ${folder} && mkdir ${folder} && ${formatReport('sharp', 'package.json')}; }`,
  );
}

export function copySharp(): string[] {
  return [copy([`${folder}/`], `${folder}/`, '--from=build'), `ENV NEXT_SHARP_PATH=${folder}/node_modules/sharp`];
}
