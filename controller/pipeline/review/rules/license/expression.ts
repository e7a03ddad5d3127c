// Judges SPDX licence expressions: which licences count as open, alone and combined.
import parse from 'spdx-expression-parse';
import licenses from 'spdx-license-list';

/** Open by the judgement of the Free Software Foundation or by plain meaning, though never put before the OSI. */
const openBeyondOsi: ReadonlySet<string> = new Set([
  'CC0-1.0',
  'CC-BY-4.0',
  'CC-BY-SA-4.0',
  'WTFPL',
  'BSD-4-Clause',
  'BSD-2-Clause-Views',
  'BSD-3-Clause-Clear',
  'OpenSSL',
  'MIT-CMU',
  'X11',
  'PDDL-1.0',
  'Beerware',
]);

type Node = ReturnType<typeof parse>;

/** Is this SPDX id an open-source licence? */
export function openLicense(id: string): boolean {
  const plain = id.replace(/-(?:only|or-later)$|\+$/, '');
  return openBeyondOsi.has(id) || [id, plain, `${plain}-only`].some((each) => licenses[each]?.osiApproved === true);
}

/** Does an SPDX expression leave its reader an open way? "A OR B" needs one open side, "A AND B" both. */
export function openExpression(expression: string): boolean {
  if (expression.length > 500) return false;
  try {
    return open(parse(expression.trim()));
  } catch {
    return false;
  }
}

function open(node: Node): boolean {
  if ('license' in node) return openLicense(node.license);
  const [left, right] = [open(node.left), open(node.right)];
  return node.conjunction === 'or' ? left || right : left && right;
}
