// Reads Python sources with a real parser, so that text in strings and comments is never taken for code.
import type { SyntaxNode } from '@lezer/common';
import { parser } from '@lezer/python';
import { keepByText, listChildren, readNode, readWithinStack } from './tree.ts';
import { findAnnotationMinor, findVersionLimits } from './python-versions.ts';

/** What a plan needs to know about one source file. */
export interface PythonModule {
  readonly imports: readonly PythonImport[];
  /** Variables that exist once the module is imported: none of functions, classes or the main guard. */
  readonly variables: ReadonlyMap<string, PythonVariable>;
  /** Every assignment to one of these variables, in order: `app = FastAPI()`, then `app = wrap(app)`. */
  readonly assignments: readonly (PythonVariable & { readonly name: string })[];
  /** Functions of the module itself. */
  readonly functions: readonly PythonFunction[];
  /** Names of the base classes of each class of the module. */
  readonly classes: ReadonlyMap<string, readonly string[]>;
  /** Every call and decorator, wherever it is. */
  readonly calls: readonly PythonCall[];
  /** Values of variables in any scope, and defaults of parameters; the first of each name. */
  readonly values: ReadonlyMap<string, PythonValue>;
  /** It has the guard `if __name__ == "__main__"`, so it runs when started by name. */
  readonly isScript: boolean;
  /** The oldest Python 3 that its syntax and standard modules need, such as 10 for 3.10; 0 if any fits. */
  readonly oldestMinor: number;
  /** The newest Python 3 that still has the standard modules that it imports; Infinity if any does. */
  readonly newestMinor: number;
}

export interface PythonImport {
  /** Dotted, with a leading dot per level if it is relative. */
  readonly module: string;
  /** Empty for `import module`. */
  readonly names: readonly ImportedName[];
  /** Name that `import module` binds. */
  readonly as?: string;
  /** The module can be loaded without it: it is in a function, in `try` or under a condition. */
  readonly isOptional?: true;
}

interface ImportedName {
  readonly name: string;
  readonly as: string;
}

interface PythonVariable {
  readonly value: PythonValue;
  /** Text of its annotation. */
  readonly annotation?: string;
}

export interface PythonFunction {
  readonly name: string;
  /** It can be called without arguments. */
  readonly isCallableBare: boolean;
  readonly returnsValue: boolean;
  readonly annotation?: string;
  readonly calls: readonly PythonCall[];
}

export interface PythonCall {
  /** Dotted, such as `app.run`; a part that is not a name is empty, so `make().run` is `.run`. */
  readonly callee: string;
  readonly args: readonly PythonArgument[];
  readonly isDecorator: boolean;
  /** Names of the functions around it, the outermost first. */
  readonly scope: readonly string[];
}

interface PythonArgument {
  readonly name?: string;
  readonly value: PythonValue;
}

export type PythonValue =
  | { readonly kind: 'number'; readonly number: number }
  | { readonly kind: 'text'; readonly text: string }
  | { readonly kind: 'name'; readonly name: string }
  | { readonly kind: 'call'; readonly call: PythonCall }
  | { readonly kind: 'tuple'; readonly items: readonly PythonValue[] }
  /** Either of two: `a or b`, `a if c else b`. */
  | { readonly kind: 'either'; readonly items: readonly PythonValue[] }
  | { readonly kind: 'other'; readonly text: string };

/** Parses a source. Incomplete or wrong code gives what can be read of it. */
export const parsePython = keepByText<PythonModule>(500, readModule);

interface Draft {
  readonly text: string;
  readonly imports: PythonImport[];
  readonly variables: Map<string, PythonVariable>;
  readonly assignments: (PythonVariable & { readonly name: string })[];
  readonly functions: PythonFunction[];
  readonly classes: Map<string, readonly string[]>;
  readonly calls: PythonCall[];
  readonly values: Map<string, PythonValue>;
  isScript: boolean;
  oldestMinor: number;
  newestMinor: number;
}

interface Place {
  readonly scope: readonly string[];
  /** Runs on import, in the scope of the module. */
  readonly isModule: boolean;
  /** In `try` or under a condition. */
  readonly isOptional?: true;
}

function readModule(text: string): PythonModule {
  const draft: Draft = {
    text,
    imports: [],
    variables: new Map(),
    assignments: [],
    functions: [],
    classes: new Map(),
    calls: [],
    values: new Map(),
    isScript: false,
    oldestMinor: 0,
    newestMinor: Number.POSITIVE_INFINITY,
  };
  readWithinStack(() => {
    visitChildren(parser.parse(text).topNode, { scope: [], isModule: true }, draft);
  });
  const { oldest, newest } = findVersionLimits(draft.imports);
  draft.oldestMinor = Math.max(draft.oldestMinor, oldest);
  draft.newestMinor = newest;
  return draft;
}

function visitChildren(node: SyntaxNode, place: Place, draft: Draft): void {
  for (const child of listChildren(node)) visit(child, place, draft);
}

function visit(node: SyntaxNode, place: Place, draft: Draft): void {
  const visitScope = scopes[node.name];
  if (visitScope !== undefined) {
    visitScope(node, place, draft);
    return;
  }
  readers[node.name]?.(node, place, draft);
  visitChildren(node, place, draft);
}

type Visit = (node: SyntaxNode, place: Place, draft: Draft) => void;

/** Nodes whose children are in another scope, or need no visit. */
const scopes: Readonly<Record<string, Visit>> = {
  ImportStatement: (node, { isModule, isOptional }, draft) => {
    const optional = isModule && isOptional !== true ? {} : { isOptional: true as const };
    draft.imports.push(...readImport(node, draft.text).map((each) => ({ ...each, ...optional })));
  },
  TryStatement: (node, place, draft) => {
    visitChildren(node, { ...place, isOptional: true }, draft);
  },
  FunctionDefinition: visitFunction,
  ClassDefinition: visitClass,
  IfStatement: visitCondition,
  LambdaExpression: (node, place, draft) => {
    visitChildren(node, { ...place, isModule: false }, draft);
  },
};

const requireMinor =
  (minor: number): Visit =>
  (_node, _place, draft) => {
    draft.oldestMinor = Math.max(draft.oldestMinor, minor);
  };

const readers: Readonly<Record<string, Visit>> = {
  AssignStatement: readAssignment,
  CallExpression: (node, place, draft) => {
    draft.calls.push(readCall(node, place.scope, draft.text));
  },
  Decorator: (node, place, draft) => {
    draft.calls.push(readDecorator(node, place.scope, draft.text));
  },
  TypeDef: (node, _place, draft) => {
    const oldest = findAnnotationMinor(readNode(node, draft.text), draft.imports);
    draft.oldestMinor = Math.max(draft.oldestMinor, oldest);
  },
  MatchStatement: requireMinor(10),
  TypeDefinition: requireMinor(12),
  TypeParamList: requireMinor(12),
};

function visitFunction(node: SyntaxNode, place: Place, draft: Draft): void {
  const name = readNode(node.getChild('VariableName'), draft.text);
  const parameters = node.getChild('ParamList');
  const start = draft.calls.length;
  if (parameters !== null) readDefaults(parameters, draft);
  visitChildren(node, { scope: [...place.scope, name], isModule: false }, draft);
  if (!place.isModule) return;
  const annotation = node.getChild('TypeDef');
  draft.functions.push({
    name,
    isCallableBare: parameters === null || !hasRequiredParameter(parameters, draft.text),
    returnsValue: hasReturnedValue(node),
    ...(annotation === null ? {} : { annotation: readAnnotation(annotation, draft.text) }),
    calls: draft.calls.slice(start),
  });
}

function visitClass(node: SyntaxNode, place: Place, draft: Draft): void {
  const name = readNode(node.getChild('VariableName'), draft.text);
  const bases = listChildren(node.getChild('ArgList')).filter(isExpression);
  if (place.isModule)
    draft.classes.set(
      name,
      bases.map((each) => readNode(each, draft.text)),
    );
  visitChildren(node, { ...place, isModule: false }, draft);
}

/** Code under the main guard does not run on import. The branches of other conditions may. */
function visitCondition(node: SyntaxNode, place: Place, draft: Draft): void {
  let isGuarded = false;
  for (const child of listChildren(node)) {
    if (isExpression(child)) {
      const condition = readNode(child, draft.text);
      isGuarded = /^\(?\s*__name__\s*(?:==\s*["']__(?:main|mp_main)__["']|in\b)/.test(condition);
      if (isGuarded && place.isModule) draft.isScript = true;
    } else if (child.name === 'else') isGuarded = false;
    visit(child, { ...place, isModule: place.isModule && !isGuarded, isOptional: true }, draft);
  }
}

function readAssignment(node: SyntaxNode, place: Place, draft: Draft): void {
  const children = listChildren(node);
  const last = children.at(-1);
  const isBound = children.some((each) => each.name === 'AssignOp');
  if (last === undefined || !isBound || !isExpression(last)) return;
  const value = toValue(last, place.scope, draft.text);
  const annotation = node.getChild('TypeDef');
  // `a = b = Flask()` binds both.
  for (const target of children.slice(0, -1)) {
    if (target.name !== 'VariableName') continue;
    const name = readNode(target, draft.text);
    if (!draft.values.has(name)) draft.values.set(name, value);
    if (!place.isModule) continue;
    const variable = { value, ...(annotation === null ? {} : { annotation: readAnnotation(annotation, draft.text) }) };
    draft.variables.set(name, variable);
    draft.assignments.push({ name, ...variable });
  }
}

function readImport(node: SyntaxNode, text: string): PythonImport[] {
  const children = listChildren(node);
  const isFrom = children[0]?.name === 'from';
  const importAt = children.findIndex((each) => each.name === 'import');
  const names = readImportedNames(children.slice(importAt + 1), text);
  if (!isFrom) return names.map(({ name, as }) => ({ module: name, names: [], as }));
  const module = children
    .slice(1, importAt)
    .map((each) => readNode(each, text))
    .join('');
  return [{ module, names }];
}

/** Reads `a.b as c, d`. */
function readImportedNames(nodes: readonly SyntaxNode[], text: string): ImportedName[] {
  const groups: SyntaxNode[][] = [[]];
  for (const node of nodes)
    if (node.name === ',') groups.push([]);
    else if (node.name !== '(' && node.name !== ')' && node.name !== 'Comment') groups.at(-1)?.push(node);
  return groups.flatMap((group) => {
    const words = group.map((node) => readNode(node, text));
    const asAt = words.indexOf('as');
    const name = (asAt < 0 ? words : words.slice(0, asAt)).join('');
    const as = asAt < 0 ? undefined : words[asAt + 1];
    return name === '' ? [] : [{ name, as: as ?? name }];
  });
}

function readCall(node: SyntaxNode, scope: readonly string[], text: string, depth = 0): PythonCall {
  const callee = node.firstChild === null ? '' : readDotted(node.firstChild, text);
  return { callee, args: readArguments(node.getChild('ArgList'), scope, text, depth), isDecorator: false, scope };
}

/** A decorator's name is a flat list of nodes. */
function readDecorator(node: SyntaxNode, scope: readonly string[], text: string): PythonCall {
  const callee = listChildren(node)
    .filter(({ name }) => ['VariableName', 'PropertyName', '.'].includes(name))
    .map((each) => readNode(each, text))
    .join('');
  return { callee, args: readArguments(node.getChild('ArgList'), scope, text), isDecorator: true, scope };
}

function readArguments(list: SyntaxNode | null, scope: readonly string[], text: string, depth = 0): PythonArgument[] {
  const args: PythonArgument[] = [];
  const children = listChildren(list);
  for (const [index, node] of children.entries()) {
    if (!isExpression(node) || children[index + 1]?.name === 'AssignOp') continue;
    const isNamed = children[index - 1]?.name === 'AssignOp';
    const value = toValue(node, scope, text, depth + 1);
    args.push(isNamed ? { name: readNode(children[index - 2] ?? null, text), value } : { value });
  }
  return args;
}

/** Reads the default of each parameter as the value of its name. */
function readDefaults(parameters: SyntaxNode, draft: Draft): void {
  const children = listChildren(parameters);
  for (const [index, node] of children.entries()) {
    const value = children[index + 1];
    if (node.name !== 'AssignOp' || value === undefined) continue;
    const name = children.slice(0, index).findLast((each) => each.name === 'VariableName');
    if (name === undefined || draft.values.has(readNode(name, draft.text))) continue;
    draft.values.set(readNode(name, draft.text), toValue(value, [], draft.text));
  }
}

/** Reads `Flask` of `: Flask` and `-> Flask`. */
function readAnnotation(node: SyntaxNode, text: string): string {
  return readNode(node, text).replace(/^(?::|->)\s*/, '');
}

function hasRequiredParameter(parameters: SyntaxNode, text: string): boolean {
  const groups: SyntaxNode[][] = [[]];
  for (const node of listChildren(parameters))
    if (node.name === ',') groups.push([]);
    else if (node.name !== '(' && node.name !== ')') groups.at(-1)?.push(node);
  return groups.some((group) => {
    const [first] = group;
    const isOptional = group.some(({ name }) => name === 'AssignOp');
    return first !== undefined && !isOptional && !/^[*/]/.test(readNode(first, text));
  });
}

/** Returns whether the function itself, and not one inside it, returns something. */
function hasReturnedValue(node: SyntaxNode): boolean {
  return listChildren(node).some((child) => {
    if (child.name === 'FunctionDefinition' || child.name === 'LambdaExpression') return false;
    if (child.name !== 'ReturnStatement') return hasReturnedValue(child);
    const value = listChildren(child)[1];
    return value !== undefined && value.name !== 'None';
  });
}

/** Calls in calls are read again at each level, so only as deep as a person would write. */
const maximumDepth = 6;

function toValue(node: SyntaxNode, scope: readonly string[], text: string, depth = 0): PythonValue {
  const written = readNode(node, text);
  const convert = depth > maximumDepth ? undefined : converters[node.name];
  if (convert === undefined) return { kind: 'other', text: written };
  const operands = listChildren(node).filter(isExpression);
  const convertAll = (nodes: readonly SyntaxNode[]): PythonValue[] =>
    nodes.map((each) => toValue(each, scope, text, depth + 1));
  return convert({ node, written, scope, text, depth, operands, convertAll });
}

interface Expression {
  readonly node: SyntaxNode;
  readonly written: string;
  readonly scope: readonly string[];
  /** The whole source. */
  readonly text: string;
  readonly depth: number;
  readonly operands: readonly SyntaxNode[];
  readonly convertAll: (nodes: readonly SyntaxNode[]) => PythonValue[];
}

const toTuple = ({ operands, convertAll }: Expression): PythonValue => ({ kind: 'tuple', items: convertAll(operands) });
const toInner = ({ written, operands, convertAll }: Expression): PythonValue =>
  convertAll(operands.slice(0, 1))[0] ?? { kind: 'other', text: written };

const converters: Readonly<Record<string, (expression: Expression) => PythonValue>> = {
  Number: ({ written }) => ({ kind: 'number', number: Number(written.replaceAll('_', '')) }),
  String: ({ written }) => ({ kind: 'text', text: unquote(written) }),
  VariableName: ({ written }) => ({ kind: 'name', name: written }),
  MemberExpression: ({ node, written, text }) => {
    // A subscript keeps its brackets, so that os.environ["PORT"] can be recognized.
    const dotted = readDotted(node, text);
    return dotted === '' || dotted.startsWith('.') || written.includes('[')
      ? { kind: 'other', text: written }
      : { kind: 'name', name: dotted };
  },
  CallExpression: ({ node, scope, text, depth }) => ({ kind: 'call', call: readCall(node, scope, text, depth) }),
  ParenthesizedExpression: toInner,
  AwaitExpression: toInner,
  TupleExpression: toTuple,
  ArrayExpression: toTuple,
  ConditionalExpression: ({ operands: [first, , second], convertAll }) => ({
    kind: 'either',
    items: convertAll([first, second].filter((each) => each !== undefined)),
  }),
  BinaryExpression: ({ node, written, operands, convertAll }) =>
    listChildren(node).some(({ name }) => name === 'or' || name === 'and')
      ? { kind: 'either', items: convertAll(operands) }
      : { kind: 'other', text: written },
};

/** Reads `a.b.c`; parts that are not names are empty. */
function readDotted(node: SyntaxNode, text: string): string {
  if (node.name === 'VariableName') return readNode(node, text);
  if (node.name !== 'MemberExpression') return '';
  const property = node.getChild('PropertyName');
  if (property === null || node.firstChild === null) return '';
  return `${readDotted(node.firstChild, text)}.${readNode(property, text)}`;
}

function unquote(written: string): string {
  const [, , text = written] = /^[A-Za-z]{0,2}("""|'''|"|')([\s\S]*)\1$/.exec(written) ?? [];
  return text;
}

/** Nodes that are neither punctuation nor keywords: those start with a capital letter. */
function isExpression({ name }: SyntaxNode): boolean {
  return /^[A-Z]/.test(name) && !['AssignOp', 'Comment', 'Body', 'ArgList', 'TypeDef'].includes(name);
}

// Questions that plans ask.

/** Returns whether the module imports a library or module, anywhere in its code. */
export function hasImport({ imports }: PythonModule, library: string): boolean {
  return imports.some(
    ({ module, names }) =>
      module === library ||
      module.startsWith(`${library}.`) ||
      names.some(({ name }) => `${module}.${name}` === library),
  );
}

/** Returns whether it imports something relative to its own package. */
export function hasRelativeImport({ imports }: PythonModule): boolean {
  return imports.some(({ module }) => module.startsWith('.'));
}

/** First parts of the modules that it imports: `shop` of `from shop.models import Item`. */
export function listImportedRoots({ imports }: PythonModule): ReadonlySet<string> {
  return new Set(imports.flatMap(({ module }) => (module.startsWith('.') ? [] : [module.split('.')[0] ?? ''])));
}

/** Returns whether it calls something whose dotted name matches. Decorators are not calls. */
export function hasCall({ calls }: Pick<PythonModule, 'calls'>, callee: RegExp): boolean {
  return calls.some((each) => !each.isDecorator && callee.test(each.callee));
}

export function hasDecorator({ calls }: PythonModule, callee: RegExp): boolean {
  return calls.some((each) => each.isDecorator && callee.test(each.callee));
}
