// Rule: the repository says, in a way that can be recognised, that it is open source.
import type { Finding } from '../../../../../crds/hosted-app.ts';
import { parseToml, parseJson, field } from '../../../manifest.ts';
import type { Tree } from '../../../tree.ts';
import { openExpression } from './expression.ts';
import { recognise } from './text.ts';
import type { Rule } from '../../rule.ts';

const fileName = /^(?:.+[-_.])?(?:li[cs]en[cs]e|copying|unlicense)(?:[-_.].+)?$/i;
const textExtension = /\.(?:md|markdown|txt|rst|adoc|html)$/i;
const codeExtension = /\.[a-z0-9]{1,4}$/i;
const maximumFiles = 20;

const fixAbsent =
  'Add a LICENSE file with the full text of an open-source licence (MIT, Apache-2.0, GPL-3.0, …; see choosealicense.com), or set its SPDX identifier in package.json or pyproject.toml.';
const fixUnclear =
  'Use the unmodified text of an open-source licence (see choosealicense.com). Terms that restrict who may use the code, or for what purpose, are not open source.';

export const license: Rule = {
  name: 'license',
  check({ tree, input }) {
    const folders = input.path === '.' ? ['.'] : [input.path, '.'];
    const unclear: Finding[] = [];
    for (const folder of folders) {
      const found = lookIn(tree.below(folder), folder === '.' ? '' : `${folder}/`);
      if (found === 'open') return [];
      unclear.push(...found);
    }
    const [first] = unclear;
    if (first !== undefined) return [first];
    return [
      {
        rule: 'license/missing',
        severity: 'error',
        message: 'No licence was found, so only the author has the right to run this code.',
        fix: fixAbsent,
      },
    ];
  },
};

/** Looks at one folder: 'open', or what speaks against it. */
function lookIn(tree: Tree, prefix: string): 'open' | Finding[] {
  const against: Finding[] = [];
  for (const path of licenseFiles(tree)) {
    const verdict = recognise(tree.text(path, 256 * 1024) ?? '');
    if (verdict.open) return 'open';
    against.push({
      rule: 'license/unrecognised',
      severity: 'error',
      file: `${prefix}${path}`,
      message: verdict.reason,
      fix: fixUnclear,
    });
  }
  // A text that says otherwise weighs more than a name in a manifest.
  if (against.length > 0) return against;
  for (const [path, expression] of declared(tree)) {
    if (openExpression(expression)) return 'open';
    against.push({
      rule: 'license/unrecognised',
      severity: 'error',
      file: `${prefix}${path}`,
      message: `"${expression}" is not the SPDX identifier of an open-source licence.`,
      fix: fixAbsent,
    });
  }
  return against;
}

function licenseFiles(tree: Tree): string[] {
  const top = tree.entries.filter(
    (each) => each.kind === 'file' && (!each.path.includes('/') || /^LICENSES\/[^/]+$/.test(each.path)),
  );
  return top
    .map((each) => each.path)
    .filter((path) => path.startsWith('LICENSES/') || (fileName.test(path) && looksLikeText(path)))
    .slice(0, maximumFiles);
}

function looksLikeText(path: string): boolean {
  return textExtension.test(path) || !codeExtension.test(path) || /\.(?:mit|apache|gpl|bsd|isc|mpl)$/i.test(path);
}

/** What manifests declare: path and SPDX expression. */
function* declared(tree: Tree): Generator<[string, string]> {
  const npm = parseJson(tree.text('package.json'));
  const license = field(npm, 'license');
  if (typeof license === 'string') yield ['package.json', license];
  const python = field(parseToml(tree.text('pyproject.toml')), 'project', 'license');
  if (typeof python === 'string') yield ['pyproject.toml', python];
  const text = field(python, 'text');
  if (typeof text === 'string') yield ['pyproject.toml', text.length < 100 ? text : text.slice(0, 100)];
  const poetry = field(parseToml(tree.text('pyproject.toml')), 'tool', 'poetry', 'license');
  if (typeof poetry === 'string') yield ['pyproject.toml', poetry];
}
