// Reads which Java a build asks for.
import type { Tree } from '../../tree.ts';

const asked: readonly RegExp[] = [
  /<(?:java\.version|maven\.compiler\.(?:release|target|source)|release|jdk\.version)>\s{0,9}(?:1\.)?(\d{1,2})\s{0,9}</,
  /JavaLanguageVersion\.of\(\s{0,9}(\d{1,2})/,
  /(?:sourceCompatibility|targetCompatibility)\s{0,9}=?\s{0,9}(?:JavaVersion\.VERSION_)?["']?(?:1[._])?(\d{1,2})/,
  /jvmToolchain\(\s{0,9}(\d{1,2})/,
];
const oldest = 17;

const files: readonly (readonly [file: string, pattern: RegExp])[] = [
  ['system.properties', /^java\.runtime\.version\s{0,9}=\s{0,9}(?:1\.)?(\d{1,2})/m],
  ['.tool-versions', /^java\s{1,9}(?:[a-z]{1,20}-)?(\d{1,2})/m],
  ['.sdkmanrc', /^java=(\d{1,2})/m],
];

/** The version that the files name, 17 where they name none or an older one: newer Java compiles for older. */
export function javaVersion(tree: Tree, build: string): number {
  const named = [
    ...asked.map((pattern) => pattern.exec(build)),
    ...files.map(([file, pattern]) => pattern.exec(tree.text(file, 4096) ?? '')),
  ].find((match) => match !== null);
  return Math.max(oldest, Number(named?.[1] ?? oldest));
}
