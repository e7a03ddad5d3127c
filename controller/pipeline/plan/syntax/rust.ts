// Reads Rust sources with a real parser, so that text in strings, comments and tests is never taken for code.
import type { SyntaxNode } from '@lezer/common';
import { parser } from '@lezer/rust';
import {
  addValue,
  createDraft,
  createSourceReader,
  type FactsDraft,
  isVariableRead,
  type Leaf,
  locate,
  type SourceFacts,
} from './leaves.ts';
import { listChildren, readNode, readWithinStack, visitTree } from './tree.ts';

export interface RustSource extends SourceFacts {
  /** Dotted paths of attributes: `launch`, `tokio.main`. */
  readonly attributes: readonly string[];
  /** Dotted paths of macros that are called: `sqlx.query`. */
  readonly macros: readonly string[];
  /** Files and folders that become part of the program when it is compiled. */
  readonly embeds: readonly RustEmbed[];
  /** Dotted paths of what it uses, up to the first brace: `sqlx`. */
  readonly uses: readonly string[];
}

export interface RustEmbed {
  readonly path: string;
  readonly line: number;
  /** A file, relative to the source; or a folder, relative to its package. */
  readonly kind: 'file' | 'folder';
}

interface RustDraft extends FactsDraft {
  readonly attributes: string[];
  readonly macros: string[];
  readonly embeds: RustEmbed[];
  readonly uses: string[];
}

/** Parses a source. Incomplete or wrong code gives what can be read of it. Modules of tests are left out. */
export const parseRust = createSourceReader<RustSource>((text) => {
  const draft: RustDraft = { ...createDraft(text), attributes: [], macros: [], embeds: [], uses: [] };
  const top = parser.parse(text).topNode;
  readWithinStack(() => {
    visitTree(top, (node) => {
      if (isTest(node, text)) return false;
      readers[node.name]?.(node, draft);
      return true;
    });
  });
  return draft;
});

/** An item below `#[cfg(test)]` or `#[test]`. */
function isTest(node: SyntaxNode, text: string): boolean {
  if (node.name !== 'AttributeItem') return false;
  const attributes = node.getChildren('Attribute').map((each) => readNode(each, text));
  return attributes.some((each) => /^#\[\s*(?:cfg\(\s*(?:all\(\s*)?test\b|(?:\w+::)*test\s*\])/.test(each));
}

type Read = (node: SyntaxNode, draft: RustDraft) => void;

const readers: Readonly<Record<string, Read>> = {
  LetDeclaration: readBinding,
  ConstItem: readBinding,
  StaticItem: readBinding,
  AssignmentExpression: (node, draft) => {
    const [target, , value] = listChildren(node);
    if (target !== undefined) addNamed(draft, readPath(target, draft.text), toLeaves(value, draft.text));
  },
  FunctionItem: readFunction,
  FieldInitializer: readInitializer,
  StructExpression: readShorthands,
  FieldDeclarationList: readOptions,
  CallExpression: readCall,
  Attribute: readAttribute,
  MacroInvocation: readMacro,
  UseDeclaration: (node, draft) => {
    const [, path = ''] = /^use\s+((?:\w+(?:::)?)+)/.exec(readNode(node, draft.text)) ?? [];
    draft.uses.push(path.replaceAll('::', '.'));
  },
};

function addNamed(draft: RustDraft, path: string, leaves: readonly Leaf[]): void {
  const parts = path.split('.');
  addValue(draft, parts.at(-1) ?? '', leaves);
  if (parts.length > 1) addValue(draft, parts.slice(-2).join('.'), leaves);
}

/** Reads `let addr = "…"`, `const PORT: u16 = 3000` and `let Ok(port) = env::var("PORT")`. */
function readBinding(node: SyntaxNode, draft: RustDraft): void {
  const children = listChildren(node);
  const at = children.findIndex(({ name }) => name === '=');
  const leaves = at < 0 ? [] : toLeaves(children[at + 1], draft.text);
  for (const name of listBound(children.slice(0, at))) addValue(draft, readNode(name, draft.text), leaves);
}

function listBound(nodes: readonly SyntaxNode[]): SyntaxNode[] {
  return nodes.flatMap((each) => (each.name === 'BoundIdentifier' ? [each] : listBound(listChildren(each))));
}

function readFunction(node: SyntaxNode, draft: RustDraft): void {
  const name = readNode(node.getChild('BoundIdentifier'), draft.text);
  const parameters = node.getChild('ParamList')?.getChildren('Parameter') ?? [];
  draft.parameters.set(
    name,
    parameters.flatMap((each) => listBound(listChildren(each)).map((inner) => readNode(inner, draft.text))),
  );
  const last = listChildren(node.getChild('Block')).at(-2);
  // Its last expression is its result; one with fields is kept by them.
  if (last !== undefined && last.name !== 'LetDeclaration') addValue(draft, name, toLeaves(last, draft.text));
}

function readInitializer(node: SyntaxNode, draft: RustDraft): void {
  const value = listChildren(node).at(-1);
  const type = readNode(node.parent?.parent?.firstChild, draft.text);
  const field = readNode(node.getChild('FieldIdentifier'), draft.text);
  addNamed(draft, `${type}.${field}`, toLeaves(value, draft.text));
}

/** Reads `Config { port }`, whose field has the value of the variable. */
function readShorthands(node: SyntaxNode, draft: RustDraft): void {
  const type = readNode(node.firstChild, draft.text);
  for (const each of node.getChild('FieldInitializerList')?.getChildren('ShorthandFieldInitializer') ?? []) {
    const name = readNode(each, draft.text);
    addValue(draft, `${type}.${name}`, [{ kind: 'name', name }]);
  }
}

/** Reads the attributes of fields that clap and envconfig fill: `#[arg(long, env = "PORT", default_value = "3000")]`. */
function readOptions(node: SyntaxNode, draft: RustDraft): void {
  let attributes: SyntaxNode[] = [];
  for (const child of listChildren(node)) {
    if (child.name === 'Attribute') attributes.push(child);
    if (child.name !== 'FieldDeclaration') continue;
    const field = readNode(child.getChild('FieldIdentifier'), draft.text);
    for (const each of attributes) addValue(draft, field, readOption(each, field, draft.text));
    attributes = [];
  }
}

function readOption(attribute: SyntaxNode, field: string, text: string): Leaf[] {
  const meta = attribute.getChild('MetaItem');
  if (!/^(?:arg|clap|structopt|envconfig|serde)$/.test(readNode(meta?.firstChild, text))) return [];
  const groups = splitTokens(listChildren(meta?.getChild('ParenthesizedTokens') ?? null));
  return groups.flatMap((group): Leaf[] => {
    const [name, sign, value] = group;
    const key = readNode(name, text);
    const leaves = sign?.name === '=' && value !== undefined ? toTokenLeaves(group.slice(2), text) : [];
    const [first] = leaves;
    if (key === 'long')
      return [{ kind: 'option', name: `--${first?.kind === 'text' ? first.text : field.replaceAll('_', '-')}` }];
    if (key === 'env' || key === 'from')
      return [{ kind: 'variable', name: first?.kind === 'text' ? first.text : field.toUpperCase() }];
    return /^default(?:_value(?:_t)?)?$/.test(key) ? leaves : [];
  });
}

/** Splits tokens in parentheses at their commas. */
function splitTokens(tokens: readonly SyntaxNode[]): SyntaxNode[][] {
  const groups: SyntaxNode[][] = [[]];
  for (const token of tokens)
    if (token.name === ',') groups.push([]);
    else if (token.name !== '(' && token.name !== ')') groups.at(-1)?.push(token);
  return groups;
}

/** Reads its path, and the folder of `#[folder = "dist"]`, which rust-embed compiles into the program. */
function readAttribute(node: SyntaxNode, draft: RustDraft): void {
  const meta = node.getChild('MetaItem');
  const path = meta?.firstChild ? readPath(meta.firstChild, draft.text) : '';
  draft.attributes.push(path);
  const value = meta?.getChild('String');
  if (path !== 'folder' || value === null || value === undefined) return;
  const folder = readNode(value, draft.text).slice(1, -1);
  draft.embeds.push({ path: folder, line: locate(value, draft.text).line, kind: 'folder' });
}

const including = /^(?:std\.)?include_(?:str|bytes|dir)$/;

function readMacro(node: SyntaxNode, draft: RustDraft): void {
  const name = node.firstChild === null ? '' : readPath(node.firstChild, draft.text);
  draft.macros.push(name);
  const tokens = listChildren(node.getChild('ParenthesizedTokens')).filter((each) => isExpression(each));
  const [path] = tokens;
  if (!including.test(name) || path?.name !== 'String' || tokens.length > 1) return;
  const isFolder = name.endsWith('_dir');
  const written = readNode(path, draft.text).slice(1, -1);
  draft.embeds.push({
    path: isFolder ? written.replace(/^\$CARGO_MANIFEST_DIR\/?/, '') : written,
    line: locate(path, draft.text).line,
    kind: isFolder ? 'folder' : 'file',
  });
}

function readCall(node: SyntaxNode, draft: RustDraft): void {
  const args = listArguments(node).map((each) => toLeaves(each, draft.text));
  draft.calls.push({ name: readCallee(node, draft.text), args });
}

function readCallee(node: SyntaxNode, text: string): string {
  return node.firstChild === null ? '' : readPath(node.firstChild, text);
}

function listArguments(node: SyntaxNode): SyntaxNode[] {
  return listChildren(node.getChild('ArgList')).filter(isExpression);
}

const maximumDepth = 14;

/** Lists the literals, names and calls that an expression is made of. */
function toLeaves(node: SyntaxNode | undefined, text: string, depth = 0): Leaf[] {
  if (node === undefined || depth > maximumDepth) return [];
  const address = readAddress(node, text);
  if (address !== undefined) return [address];
  const convert = converters[node.name];
  if (convert !== undefined) return convert(node, text, depth);
  return listChildren(node)
    .filter(isExpression)
    .flatMap((each) => toLeaves(each, text, depth + 1));
}

type Convert = (node: SyntaxNode, text: string, depth: number) => Leaf[];
const toName: Convert = (node, text) => [{ kind: 'name', name: readPath(node, text) }];

const converters: Readonly<Record<string, Convert>> = {
  String: toTextLeaves,
  RawString: toTextLeaves,
  Integer: (node, text) => [toNumber(node, text)],
  Identifier: toName,
  ScopedIdentifier: toName,
  FieldExpression: toName,
  CallExpression: toCallLeaves,
  MacroInvocation: (node, text) => toTokenLeaves(listChildren(node.getChild('ParenthesizedTokens')), text),
  // Its fields are kept by their names.
  StructExpression: () => [],
};

function toCallLeaves(node: SyntaxNode, text: string, depth: number): Leaf[] {
  const name = readCallee(node, text);
  const args = listArguments(node).map((each) => toLeaves(each, text, depth + 1));
  const variable = isVariableRead(name, args[0]);
  if (variable !== undefined) return [{ kind: 'variable', name: variable }, ...args.slice(1).flat()];
  return [{ kind: 'call', name, operands: [...toReceiverLeaves(node.firstChild, text, depth), ...args.flat()] }];
}

/** Reads `x` of `x.unwrap()`, `x.parse::<u16>()` and `x?.run()`. */
function toReceiverLeaves(callee: SyntaxNode | null, text: string, depth: number): Leaf[] {
  const method = callee?.name === 'GenericFunction' ? callee.firstChild : callee;
  return method?.name === 'FieldExpression' ? toLeaves(method.firstChild ?? undefined, text, depth + 1) : [];
}

/** A format text names variables in braces. */
function toTextLeaves(node: SyntaxNode, text: string): Leaf[] {
  const literal = readNode(node, text).replace(/^r?#*"|"#*$/g, '');
  const named = [...literal.matchAll(/\{([a-z_]\w{0,40})(?::[^}]{0,10})?\}/g)].map(([, name = '']): Leaf => ({
    kind: 'name',
    name,
  }));
  return [{ kind: 'text', text: literal, ...locate(node, text) }, ...named];
}

function toNumber(node: SyntaxNode, text: string): Leaf {
  const digits = readNode(node, text)
    .replaceAll('_', '')
    .replace(/[ui](?:8|16|32|64|size)$/, '');
  return { kind: 'number', number: Number(digits), ...locate(node, text) };
}

/** Reads `[127, 0, 0, 1]`, `Ipv4Addr::new(127, 0, 0, 1)` and `Ipv4Addr::LOCALHOST`. */
function readAddress(node: SyntaxNode, text: string): Leaf | undefined {
  const written = readNode(node, text);
  if (written.length > 80) return undefined;
  const numbers =
    /^(?:\[|(?:\w{1,20}::)*Ipv4Addr::new\()\s*(\d{1,3})\s*,\s*(\d{1,3})\s*,\s*(\d{1,3})\s*,\s*(\d{1,3})\s*,?\s*[\])]$/.exec(
      written,
    );
  if (numbers !== null) return { kind: 'text', text: numbers.slice(1).join('.'), ...locate(node, text) };
  const [, name] = /^(?:\w{1,20}::)*Ipv[46]Addr::(LOCALHOST|UNSPECIFIED)$/.exec(written) ?? [];
  if (name === undefined) return undefined;
  return { kind: 'text', text: name === 'LOCALHOST' ? '127.0.0.1' : '0.0.0.0', ...locate(node, text) };
}

/** Tokens of a macro or an attribute have no structure of expressions. */
function toTokenLeaves(tokens: readonly SyntaxNode[], text: string, depth = 0): Leaf[] {
  if (depth > maximumDepth) return [];
  return tokens.flatMap((each) => {
    if (each.name === 'Identifier' || each.name === 'FieldIdentifier')
      return [{ kind: 'name', name: readNode(each, text) }];
    const isGroup = each.name.endsWith('Tokens');
    return isGroup ? toTokenLeaves(listChildren(each), text, depth + 1) : toLeaves(each, text, maximumDepth);
  });
}

/** Reads `a.b`, `a::b` and `a::b::<T>` as dotted names; parts that are not names are empty. */
function readPath(node: SyntaxNode, text: string): string {
  if (/^(?:Identifier|ScopeIdentifier|BoundIdentifier|FieldIdentifier|self)$/.test(node.name))
    return readNode(node, text);
  if (node.name === 'GenericFunction') return node.firstChild === null ? '' : readPath(node.firstChild, text);
  if (node.name === 'ScopedIdentifier') return readNode(node, text).replaceAll(/\s*::\s*/g, '.');
  if (node.name !== 'FieldExpression' || node.firstChild === null) return '';
  return `${readPath(node.firstChild, text)}.${readNode(node.getChild('FieldIdentifier'), text)}`;
}

/** Nodes that are neither punctuation, operators, types nor comments. */
function isExpression({ name }: SyntaxNode): boolean {
  return /^[A-Z]/.test(name) && !/(?:Op|Comment|TypeArgList|ParamList|Pattern|Attribute)$/.test(name);
}
