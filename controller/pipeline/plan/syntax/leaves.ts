// Describes what plans read of a Go or Rust source: its calls, and the literals and names that each value is made of.
import type { SyntaxNode } from '@lezer/common';
import { hasDeepNesting, keepByText, readNode } from './tree.ts';

/**
 * A part of a value, in the order of the code. A value is the list of its parts, because an address is put together in
 * many ways: `":" + port`, `fmt.Sprintf("%s:%d", host, port)`, `env::var("PORT").unwrap_or("3000".into())`.
 */
export type Leaf =
  | (Written & { readonly kind: 'text'; readonly text: string })
  | (Written & { readonly kind: 'number'; readonly number: number })
  /** Dotted, such as `config.Server.Port`. */
  | { readonly kind: 'name'; readonly name: string }
  /** A call. Its parts are those of what the function returns, if the source is there; else those of its operands. */
  | { readonly kind: 'call'; readonly name: string; readonly operands: readonly Leaf[] }
  /** A variable of the environment. */
  | { readonly kind: 'variable'; readonly name: string }
  /** An option of the command line, with its dashes: `-addr`. */
  | { readonly kind: 'option'; readonly name: string };

/** Where a literal is. */
interface Written {
  /** Its text in the source, such as `[127, 0, 0, 1]`. */
  readonly source: string;
  /** Starts at 1. */
  readonly line: number;
}

export interface SourceCall {
  /** Dotted; a part that is not a name is empty, so `make().run` is `.run`. In Rust, `::` is a dot too. */
  readonly name: string;
  readonly args: readonly (readonly Leaf[])[];
}

/** What a plan needs to know about one source. */
export interface SourceFacts {
  readonly calls: readonly SourceCall[];
  /**
   * Values of variables, constants, fields, options and results of functions in any scope, by name. A field of a type is
   * listed as `Type.Field` too. Several values of one name are joined.
   */
  readonly values: ReadonlyMap<string, readonly Leaf[]>;
  /** Names of the parameters of each function. */
  readonly parameters: ReadonlyMap<string, readonly string[]>;
}

export interface FactsDraft extends SourceFacts {
  readonly text: string;
  readonly calls: SourceCall[];
  readonly values: Map<string, Leaf[]>;
  readonly parameters: Map<string, readonly string[]>;
}

export function createDraft(text: string): FactsDraft {
  return { text, calls: [], values: new Map(), parameters: new Map() };
}

const maximumLeaves = 60;

/** Adds to the values of a name. Long ones hold no address. */
export function addValue(draft: FactsDraft, name: string, leaves: readonly Leaf[]): void {
  if (name === '' || name === '_' || leaves.length === 0) return;
  const known = draft.values.get(name) ?? [];
  draft.values.set(name, [...known, ...leaves].slice(0, maximumLeaves));
}

/** Makes a parser of sources that reads nothing of those that would take too long. */
export function createSourceReader<Facts extends object>(read: (text: string) => Facts): (text: string) => Facts {
  return keepByText(500, (text) => read(hasDeepNesting(text) ? '' : text));
}

export function locate(node: SyntaxNode, text: string): Written {
  return { source: readNode(node, text), line: findLine(text, node.from) };
}

/** Ends of the lines of the source that is read at the moment. */
let lines: { readonly text: string; readonly ends: readonly number[] } = { text: '', ends: [] };

function findLine(text: string, offset: number): number {
  if (lines.text !== text) lines = { text, ends: [...text.matchAll(/\n/g)].map(({ index }) => index) };
  let [low, high] = [0, lines.ends.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((lines.ends[middle] ?? offset) < offset) low = middle + 1;
    else high = middle;
  }
  return low + 1;
}

/** Returns whether a call reads a variable of the environment: `os.Getenv("PORT")`, `env_or("PORT", "3000")`. */
export function isVariableRead(name: string, first: readonly Leaf[] | undefined): string | undefined {
  const [leaf] = first ?? [];
  if (leaf?.kind !== 'text' || !/^[A-Z][A-Z0-9_]{1,60}$/.test(leaf.text)) return undefined;
  return /(?:env|var|get|lookup|must|read|require|fetch|int|string)\w{0,20}$/i.test(name) ? leaf.text : undefined;
}
