// Which versions of Python the workflows of a repository test with: what its author knows to work.
import type { Tree } from '../../tree.ts';

const workflow = /^\.github\/workflows\/[^/]{1,100}\.ya?ml$/;
const maximumFiles = 10;
const fileBytes = 64 * 1024;

/** The lowest of each workflow that names any, such as "3.12"; matrices are lists in one line or one item a line. */
export function testedPythons(tree: Tree): readonly { readonly file: string; readonly lowest: string }[] {
  return tree.entries
    .filter(({ kind, path }) => kind === 'file' && workflow.test(path))
    .slice(0, maximumFiles)
    .flatMap(({ path }) => {
      const minors = named(tree.text(path, fileBytes) ?? '');
      return minors.length === 0 ? [] : [{ file: path, lowest: `3.${Math.min(...minors)}` }];
    });
}

function named(text: string): number[] {
  const values = text.matchAll(
    /^[ \t-]{0,60}python(?:-version|_version)?:[ \t]{0,9}([^\n]{0,300}(?:\n[ \t]{1,60}- [^\n:]{1,40})*)/gm,
  );
  return [...values].flatMap(([, value = '']) =>
    [...value.matchAll(/\b3\.(\d{1,2})\b/g)].map(([, minor]) => Number(minor)),
  );
}
