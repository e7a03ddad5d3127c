// Lock files that were written behind a mirror of the npm registry: their packages are fetched from the registry itself.
import { step } from '../dockerfile-text.ts';

/** Mirrors with the paths of the registry, by host and folder. Builders may not reach them, and one of them is gone. */
const mirrors = [
  'registry.npmmirror.com',
  'registry.npm.taobao.org',
  'mirrors.huaweicloud.com/repository/npm',
  'mirrors.cloud.tencent.com/npm',
  'mirrors.tencent.com/npm',
];
const name = '[A-Za-z0-9._~-]{1,214}';
/** As JavaScript and sed read it; the path in the registry is the second group. */
const mirrored = `https?://(${mirrors.join('|').replaceAll('.', '[.]')})/((@${name}/)?${name}/-/)`;
const inLock = new RegExp(mirrored);

/** Whether a lock file names one. */
export function namesMirror(lock: string): boolean {
  return inLock.test(lock);
}

/** The command that rewrites a lock file. Its checksums stay, so what is installed is what was locked. */
export function rewriteCommand(file: string): string {
  return `sed -E -i 's#${mirrored}#https://registry.npmjs.org/\\2#g' ${file}`;
}

/** Lines that run it in the image. */
export function withoutMirrors(file: string): string[] {
  return step(file, 'reading packages from the npm registry, not from its mirrors', `RUN ${rewriteCommand(file)}`);
}
