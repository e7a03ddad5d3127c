// Reads JavaScript and TypeScript with a real parser: imports, calls, and the values of variables and properties.
import type { SyntaxNode } from '@lezer/common';
import { parser } from '@lezer/javascript';
import { keepByText, listChildren, readNode, readWithinStack } from './tree.ts';

export interface ScriptModule {
  /** Package or file that each name is imported or required from. */
  readonly imports: ReadonlyMap<string, string>;
  /** Everything that is imported, also without a name. */
  readonly sources: readonly string[];
  /** Variables of any scope, by name; the last assignment of each. */
  readonly variables: ReadonlyMap<string, ScriptValue>;
  /** What each of them is declared with, if that is written. */
  readonly initial: ReadonlyMap<string, ScriptValue>;
  readonly calls: readonly ScriptCall[];
  /** What the file exports by default, or with module.exports. */
  readonly exported?: ScriptValue;
}

export interface ScriptCall {
  /** Dotted, such as `app.listen`; a part that is not a name is empty, so `make().listen` is `.listen`. */
  readonly callee: string;
  /** The package or file, if the callee is an import() or require(): `(await import('x')).default`. */
  readonly source?: string;
  readonly args: readonly ScriptValue[];
}

export type ScriptValue =
  /** `null` counts as undefined. */
  | { readonly kind: 'literal'; readonly value: string | number | boolean | undefined }
  | { readonly kind: 'name'; readonly name: string }
  | { readonly kind: 'call'; readonly call: ScriptCall }
  | {
      readonly kind: 'object';
      readonly fields: ReadonlyMap<string, ScriptValue>;
      readonly spread: readonly ScriptValue[];
    }
  | { readonly kind: 'list'; readonly items: readonly ScriptValue[] }
  | { readonly kind: 'function'; readonly returned: readonly ScriptValue[] }
  | {
      readonly kind: 'conditional';
      readonly condition: ScriptValue;
      readonly then: ScriptValue;
      readonly otherwise: ScriptValue;
    }
  | { readonly kind: 'binary'; readonly operator: string; readonly left: ScriptValue; readonly right: ScriptValue }
  | { readonly kind: 'not'; readonly value: ScriptValue }
  | { readonly kind: 'other'; readonly text: string };

const language = parser.configure({ dialect: 'ts jsx' });
/** Nested values are read again at each level, so only as deep as a person would write. */
const maximumDepth = 16;

/** Parses a source. Incomplete or wrong code gives what can be read of it. */
export const parseScript = keepByText<ScriptModule>(200, readModule);

interface Draft {
  readonly text: string;
  readonly imports: Map<string, string>;
  readonly sources: string[];
  readonly variables: Map<string, ScriptValue>;
  readonly initial: Map<string, ScriptValue>;
  readonly calls: ScriptCall[];
  exported?: ScriptValue;
}

function readModule(text: string): ScriptModule {
  const draft: Draft = { text, imports: new Map(), sources: [], variables: new Map(), initial: new Map(), calls: [] };
  readWithinStack(() => {
    visit(language.parse(text).topNode, draft);
  });
  return draft;
}

function visit(node: SyntaxNode, draft: Draft): void {
  readers[node.name]?.(node, draft);
  for (const child of listChildren(node)) visit(child, draft);
}

const readers: Readonly<Record<string, (node: SyntaxNode, draft: Draft) => void>> = {
  ImportDeclaration: readImport,
  VariableDeclaration: readVariables,
  AssignmentExpression: readAssignment,
  ExportDeclaration: readDefaultExport,
  CallExpression: (node, draft) => {
    const call = readCall(node, draft.text, 0);
    draft.calls.push(call);
    const source = call.callee === 'require' ? readLiteralText(call.args[0]) : undefined;
    if (source !== undefined) draft.sources.push(source);
  },
  NewExpression: (node, draft) => {
    draft.calls.push(readCall(node, draft.text, 0));
  },
  TaggedTemplateExpression: (node, draft) => {
    draft.calls.push(readTagged(node, draft.text));
  },
  DynamicImport: (node, draft) => {
    const source = readImportSource(node, draft.text);
    if (source !== undefined) draft.sources.push(source);
  },
};

function readImport(node: SyntaxNode, draft: Draft): void {
  const written = node.getChild('String');
  if (written === null) return;
  const source = unquote(readNode(written, draft.text));
  draft.sources.push(source);
  for (const name of [
    ...node.getChildren('VariableDefinition'),
    ...(node.getChild('ImportGroup')?.getChildren('VariableDefinition') ?? []),
  ])
    draft.imports.set(readNode(name, draft.text), source);
}

function readVariables(node: SyntaxNode, draft: Draft): void {
  const children = listChildren(node);
  for (const [index, child] of children.entries()) {
    if (child.name !== 'Equals') continue;
    const value = toValue(children[index + 1], draft.text, 0);
    const source = readSource(value);
    const target = children.slice(0, index).findLast(({ name }) => /^(?:VariableDefinition|ObjectPattern)$/.test(name));
    if (target?.name === 'VariableDefinition') {
      const name = readNode(target, draft.text);
      draft.variables.set(name, value);
      if (!draft.initial.has(name)) draft.initial.set(name, value);
      if (source !== undefined) draft.imports.set(name, source);
    } else if (target !== undefined) readPattern(target, value, draft);
  }
}

/** Reads `const { PORT = 3000, x } = process.env`, and the names of `const { x } = require('y')`. */
function readPattern(pattern: SyntaxNode, value: ScriptValue, draft: Draft): void {
  const source = readSource(value);
  for (const property of pattern.getChildren('PatternProperty')) {
    const children = listChildren(property);
    const name = readNode(children[0] ?? null, draft.text);
    const as = readNode(property.getChild('VariableDefinition') ?? children[0] ?? null, draft.text);
    if (source !== undefined) draft.imports.set(as, source);
    else if (value.kind === 'name') draft.variables.set(as, { kind: 'name', name: `${value.name}.${name}` });
  }
}

function readAssignment(node: SyntaxNode, draft: Draft): void {
  const [target, operator, written] = listChildren(node);
  if (target === undefined || operator?.name !== 'Equals') return;
  const name = readDotted(target, draft.text);
  const value = toValue(written, draft.text, 0);
  if (name === 'module.exports' || name === 'exports.default') draft.exported = value;
  // Also fields, such as `config.output = 'export'`.
  else if (name !== '' && !name.startsWith('.')) draft.variables.set(name, value);
}

function readDefaultExport(node: SyntaxNode, draft: Draft): void {
  const children = listChildren(node);
  if (!children.some(({ name }) => name === 'default')) return;
  const value = children.find((each) => isExpression(each));
  if (value !== undefined) draft.exported = toValue(value, draft.text, 0);
}

function readCall(node: SyntaxNode, text: string, depth: number): ScriptCall {
  const called = listChildren(node).find(isExpression);
  const args = listChildren(node.getChild('ArgList')).filter(isExpression);
  const source = called === undefined ? undefined : findImportSource(called, text);
  return {
    callee: called === undefined ? '' : readDotted(called, text),
    ...(source === undefined ? {} : { source }),
    args: args.map((each) => toValue(each, text, depth + 1)),
  };
}

/** `$`git log`` calls $ with the text. */
function readTagged(node: SyntaxNode, text: string): ScriptCall {
  const [tag, template] = listChildren(node);
  const written = readNode(template ?? null, text).slice(1, -1);
  return { callee: tag === undefined ? '' : readDotted(tag, text), args: [{ kind: 'literal', value: written }] };
}

/** Finds the import() or require() in `(await import('x')).default`, `require('x').default` and `require('x')`. */
function findImportSource(node: SyntaxNode, text: string): string | undefined {
  if (node.name === 'DynamicImport') return readImportSource(node, text);
  if (node.name === 'CallExpression') {
    const [called, list] = listChildren(node);
    const argument = called !== undefined && readNode(called, text) === 'require' ? list?.getChild('String') : null;
    return argument === null || argument === undefined ? undefined : unquote(readNode(argument, text));
  }
  const inner = listChildren(node).find(isExpression);
  const isWrapper = ['MemberExpression', 'ParenthesizedExpression', 'AwaitExpression'].includes(node.name);
  return isWrapper && inner !== undefined ? findImportSource(inner, text) : undefined;
}

function readImportSource(node: SyntaxNode, text: string): string | undefined {
  const written = node.getChild('String');
  return written === null ? undefined : unquote(readNode(written, text));
}

/** Package of a value that is itself an import() or require(). */
function readSource(value: ScriptValue): string | undefined {
  if (value.kind !== 'call') return undefined;
  const { call } = value;
  if (call.callee === 'require') return readLiteralText(call.args[0]);
  return call.callee === '' && call.args.length === 0 ? call.source : undefined;
}

function toValue(node: SyntaxNode | undefined, text: string, depth: number): ScriptValue {
  const written = readNode(node ?? null, text);
  const convert = node === undefined || depth > maximumDepth ? undefined : converters[node.name];
  if (node === undefined || convert === undefined) return { kind: 'other', text: written };
  const operands = listChildren(node).filter(isExpression);
  return convert({ node, written, text, depth, operands, inner: (index) => toValue(operands[index], text, depth + 1) });
}

interface Expression {
  readonly node: SyntaxNode;
  readonly written: string;
  /** The whole source. */
  readonly text: string;
  readonly depth: number;
  readonly operands: readonly SyntaxNode[];
  readonly inner: (index: number) => ScriptValue;
}

const toFunction = ({ node, text, depth }: Expression): ScriptValue => ({
  kind: 'function',
  returned: listReturned(node, text, depth),
});
const toCall = ({ node, text, depth }: Expression): ScriptValue => ({
  kind: 'call',
  call: readCall(node, text, depth),
});
const toFirst = ({ inner }: Expression): ScriptValue => inner(0);

const converters: Readonly<Record<string, (expression: Expression) => ScriptValue>> = {
  Number: ({ written }) => ({ kind: 'literal', value: Number(written.replaceAll('_', '')) }),
  String: ({ written }) => ({ kind: 'literal', value: unquote(written) }),
  TemplateString: ({ written }) =>
    written.includes('${') ? { kind: 'other', text: written } : { kind: 'literal', value: written.slice(1, -1) },
  BooleanLiteral: ({ written }) => ({ kind: 'literal', value: written === 'true' }),
  null: () => ({ kind: 'literal', value: undefined }),
  VariableName: ({ written }) =>
    written === 'undefined' ? { kind: 'literal', value: undefined } : { kind: 'name', name: written },
  MemberExpression: ({ node, text }) => toMember(node, text),
  CallExpression: toCall,
  NewExpression: toCall,
  DynamicImport: ({ node, written, text }) => toImport(node, written, text),
  ParenthesizedExpression: toFirst,
  AwaitExpression: toFirst,
  ArrayExpression: ({ operands, inner }) => ({ kind: 'list', items: operands.map((_, index) => inner(index)) }),
  ObjectExpression: ({ node, text, depth }) => toObject(node, text, depth),
  ArrowFunction: toFunction,
  FunctionExpression: toFunction,
  FunctionDeclaration: toFunction,
  ConditionalExpression: ({ inner }) => ({
    kind: 'conditional',
    condition: inner(0),
    then: inner(1),
    otherwise: inner(2),
  }),
  BinaryExpression: ({ node, text, depth }) => toBinary(listChildren(node), text, depth),
  UnaryExpression: ({ written, inner }) => toUnary(written, inner(0)),
};

/** Reads a value that is a text. */
export function readLiteralText(value: ScriptValue | undefined): string | undefined {
  return value?.kind === 'literal' && typeof value.value === 'string' ? value.value : undefined;
}

function toMember(node: SyntaxNode, text: string): ScriptValue {
  const written = readNode(node, text);
  const subscript = /^([\w.]{1,100})\[\s*["'](\w{1,100})["']\s*\]$/.exec(written);
  const name = subscript === null ? readDotted(node, text) : `${subscript[1] ?? ''}.${subscript[2] ?? ''}`;
  const source = findImportSource(node, text);
  if (source !== undefined) return { kind: 'call', call: { callee: '', source, args: [] } };
  return name === '' || name.startsWith('.') ? { kind: 'other', text: written } : { kind: 'name', name };
}

function toImport(node: SyntaxNode, written: string, text: string): ScriptValue {
  const source = readImportSource(node, text);
  return source === undefined
    ? { kind: 'other', text: written }
    : { kind: 'call', call: { callee: '', source, args: [] } };
}

function toObject(node: SyntaxNode, text: string, depth: number): ScriptValue {
  const fields = new Map<string, ScriptValue>();
  const spread: ScriptValue[] = [];
  for (const property of node.getChildren('Property')) {
    const children = listChildren(property);
    if (children[0]?.name === 'Spread') {
      spread.push(toValue(children[1], text, depth + 1));
      continue;
    }
    const key = children.find((each) => !['async', 'get', 'set', 'Star'].includes(each.name));
    const name = unquote(readNode(key ?? null, text));
    const at = children.findIndex((each) => each.name === ':');
    // A shorthand: `{ adapter }`; otherwise a method.
    if (at >= 0) fields.set(name, toValue(children[at + 1], text, depth + 1));
    else if (children.length === 1) fields.set(name, { kind: 'name', name });
    else fields.set(name, { kind: 'function', returned: listReturned(property, text, depth) });
  }
  return { kind: 'object', fields, spread };
}

/** Lists what a function itself may return; the body of a short arrow function is returned. */
function listReturned(node: SyntaxNode, text: string, depth: number): ScriptValue[] {
  const block = node.getChild('Block');
  if (block === null) {
    const body = listChildren(node).at(-1);
    return body === undefined ? [] : [toValue(body, text, depth + 1)];
  }
  return listReturns(block).map((each) => toValue(listChildren(each).find(isExpression), text, depth + 1));
}

function listReturns(node: SyntaxNode): SyntaxNode[] {
  return listChildren(node).flatMap((child) =>
    child.name === 'ReturnStatement' ? [child] : /Function|Method/.test(child.name) ? [] : listReturns(child),
  );
}

function toBinary(children: readonly SyntaxNode[], text: string, depth: number): ScriptValue {
  const [left, sign, right] = children;
  const operator = readNode(sign ?? null, text);
  // Types of TypeScript change no value.
  if (operator === 'satisfies' || operator === 'as') return toValue(left, text, depth + 1);
  return {
    kind: 'binary',
    operator,
    left: toValue(left, text, depth + 1),
    right: toValue(right, text, depth + 1),
  };
}

/** `+process.env.PORT` has the value of its operand here. */
function toUnary(written: string, value: ScriptValue): ScriptValue {
  if (written.startsWith('!')) return { kind: 'not', value };
  return written.startsWith('+') ? value : { kind: 'other', text: written };
}

function readDotted(node: SyntaxNode, text: string): string {
  if (node.name === 'VariableName' || node.name === 'this') return readNode(node, text);
  if (node.name === 'ParenthesizedExpression' || node.name === 'AwaitExpression') {
    const inner = listChildren(node).find(isExpression);
    return inner?.name === 'MemberExpression' || inner?.name === 'VariableName' ? readDotted(inner, text) : '';
  }
  if (node.name !== 'MemberExpression') return '';
  const property = node.getChild('PropertyName');
  if (property === null || node.firstChild === null) return '';
  return `${readDotted(node.firstChild, text)}.${readNode(property, text)}`;
}

function unquote(written: string): string {
  return /^(["'`])([\s\S]*)\1$/.exec(written)?.[2] ?? written;
}

/** Nodes that are neither punctuation nor keywords: those start with a capital letter. */
function isExpression({ name }: SyntaxNode): boolean {
  return (
    (/^[A-Z]/.test(name) || name === 'null' || name === 'this') &&
    !['Equals', 'LineComment', 'BlockComment', 'ArgList', 'TypeArgList', 'LogicOp', 'CompareOp', 'ArithOp'].includes(
      name,
    )
  );
}
