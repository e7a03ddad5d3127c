// Follows a start script that only calls another one, here or in a folder below.
import { readKeys, parseJson, readText } from '../../manifest.ts';
import type { Tree } from '../../tree.ts';

const calls = /^(?:npm|pnpm|yarn|bun|cd)\s/;
const inFolder = /(?:--cwd|--prefix|-w|--workspace|--filter|-C|^cd)[ =](?:\.\/)?([\w@./-]{1,100})/;
const installsFirst = /^(?:yarn(?: install)?|npm (?:i|ci|install)|pnpm (?:i|install)|bun (?:i|install)) && /;

/** The command that a start script comes to; undefined when there is no start script. */
export function finalStart(tree: Tree, scripts: Readonly<Record<string, string>>): string | undefined {
  const start = scripts['start'];
  if (start === undefined || !calls.test(start)) return start;
  const folder = inFolder.exec(start)?.[1];
  const manifest = folder === undefined ? { scripts } : parseJson(tree.text(`${folder}/package.json`));
  const names = readKeys(manifest, 'scripts');
  const own = start.split(/\s+/).find((word, index) => index > 0 && names.includes(word) && isOther(word, folder));
  const called = own === undefined ? undefined : readText(manifest, 'scripts', own);
  return (called ?? start).replace(installsFirst, '');
}

/** A script that calls itself is not followed; one of the same name in a folder is another. */
function isOther(name: string, folder: string | undefined): boolean {
  return folder !== undefined || name !== 'start';
}
