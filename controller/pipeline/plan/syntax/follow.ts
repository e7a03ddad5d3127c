// Follows the names in a value through the sources of a program, to literals, variables and options.
import type { Leaf, SourceCall, SourceFacts } from './leaves.ts';

export interface SourceFile {
  readonly path: string;
  readonly facts: SourceFacts;
}

/** A part that has a value. */
export type Atom = Exclude<Leaf, { kind: 'name' | 'call' }> & { readonly file: string };

/** Follows names and functions to literals, variables and options. */
export class Resolver {
  readonly #values = new Map<string, FoundValue[]>();
  /** By the last part of the name of the function. */
  readonly #calls = new Map<string, FoundCall[]>();
  #steps = 0;

  constructor(files: readonly SourceFile[]) {
    for (const file of files) {
      for (const [name, leaves] of file.facts.values) addTo(this.#values, name, { leaves, file });
      for (const call of file.facts.calls) addTo(this.#calls, call.name.split('.').at(-1) ?? '', { call, file });
    }
  }

  resolve(leaves: readonly Leaf[], file: SourceFile): Atom[] {
    this.#steps = 0;
    return this.#follow(leaves, file, []).slice(0, maximumAtoms);
  }

  #follow(leaves: readonly Leaf[], file: SourceFile, seen: readonly string[]): Atom[] {
    return leaves.flatMap((leaf): Atom[] => {
      if (leaf.kind !== 'name' && leaf.kind !== 'call') return [{ ...leaf, file: file.path }];
      if (seen.length >= maximumDepth || seen.includes(leaf.name) || (this.#steps += 1) > maximumSteps) return [];
      const found: Atom[] = [];
      for (const each of this.#findValues(leaf.name, file)) {
        found.push(...this.#follow(each.leaves, each.file, [...seen, leaf.name]));
        // What has a value needs no other of the same name.
        if (found.some(isLiteral)) break;
      }
      const isUnknown = found.length === 0 && leaf.kind === 'call';
      return isUnknown ? this.#follow(leaf.operands, file, [...seen, leaf.name]) : found;
    });
  }

  /** Lists the values of a name: first those of its last two parts, and of the same file. */
  #findValues(dotted: string, file: SourceFile): readonly FoundValue[] {
    const parts = dotted.split('.').filter((each) => each !== '');
    const last = parts.at(-1) ?? '';
    if (last === '' || common.test(last)) return [];
    const keys = parts.length > 1 ? [parts.slice(-2).join('.'), last] : [last];
    const found = keys.flatMap((key) =>
      (this.#values.get(key) ?? []).toSorted((one, other) => Number(other.file === file) - Number(one.file === file)),
    );
    return found.length > 0 || parts.length > 1 ? found : this.#findArguments(last, file);
  }

  /** A parameter has the values that calls of its function are given. */
  #findArguments(name: string, file: SourceFile): FoundValue[] {
    return [...file.facts.parameters].flatMap(([functionName, names]) => {
      const index = names.indexOf(name);
      const calls = index < 0 ? [] : (this.#calls.get(functionName) ?? []);
      return calls.flatMap(({ call, file: caller }) => {
        const leaves = call.args[index] ?? [];
        return leaves.length > 0 ? [{ leaves, file: caller }] : [];
      });
    });
  }
}

const maximumAtoms = 40;
const maximumDepth = 10;
/** A name may have many values, which name others. */
const maximumSteps = 300;

interface FoundValue {
  readonly leaves: readonly Leaf[];
  readonly file: SourceFile;
}

interface FoundCall {
  readonly call: SourceCall;
  readonly file: SourceFile;
}

function addTo<Value>(map: Map<string, Value[]>, key: string, value: Value): void {
  const list = map.get(key);
  if (list === undefined) map.set(key, [value]);
  else list.push(value);
}

/** A format or a colon alone is no value. */
const isLiteral = (atom: Atom): boolean =>
  atom.kind === 'number' || (atom.kind === 'text' && /\w/.test(atom.text.replace(/%\w|\{[^}]*\}/g, '')));

/** Methods of every type: their name says nothing of a function of the same name. */
const common = /^(?:new|from|into|parse|unwrap|expect|default|string|format|get|build|init|clone|load|int|run)$/i;
