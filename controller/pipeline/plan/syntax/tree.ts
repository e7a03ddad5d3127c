// Reads the trees that Lezer's parsers make of sources, the same way for every language.
import type { SyntaxNode } from '@lezer/common';

/** Keeps what was read of a source by its text, since one plan reads the same sources several times. */
export function keepByText<Facts extends object>(
  maximumKept: number,
  read: (text: string) => Facts,
): (text: string) => Facts {
  const known = new Map<string, Facts>();
  return (text) => {
    const found = known.get(text);
    if (found !== undefined) return found;
    const facts = read(text);
    if (known.size >= maximumKept) known.clear();
    known.set(text, facts);
    return facts;
  };
}

/** Runs a visit of a tree. Code that is nested deeper than the stack is read up to there. */
export function readWithinStack(visit: () => void): void {
  try {
    visit();
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
  }
}

/** Visits a node and, while `visit` returns true, what is in it. */
export function visitTree(node: SyntaxNode, visit: (node: SyntaxNode) => boolean): void {
  if (!visit(node)) return;
  for (const child of listChildren(node)) visitTree(child, visit);
}

/** Time and memory of the parsers grow with each level of ambiguous brackets; people write fewer than 50. */
const maximumNesting = 250;

export function hasDeepNesting(text: string): boolean {
  let depth = 0;
  for (const [bracket] of text.matchAll(/[([{)\]}]/g)) {
    depth = Math.max(0, depth + ('([{'.includes(bracket) ? 1 : -1));
    if (depth > maximumNesting) return true;
  }
  return false;
}

export function listChildren(node: SyntaxNode | null): SyntaxNode[] {
  const children: SyntaxNode[] = [];
  for (let child = node?.firstChild ?? null; child !== null; child = child.nextSibling) children.push(child);
  return children;
}

export function readNode(node: SyntaxNode | null | undefined, text: string): string {
  return node === null || node === undefined ? '' : text.slice(node.from, node.to);
}
