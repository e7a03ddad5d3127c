// Reads Go sources with a real parser, so that text in strings, comments and other functions is never taken for code.
import type { SyntaxNode } from '@lezer/common';
import { parser } from '@lezer/go';
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

export interface GoSource extends SourceFacts {
  /** It is of package main, with a function main that is always built. */
  readonly isMain: boolean;
  /** Patterns of its `//go:embed` lines. */
  readonly embeds: readonly string[];
  /** Commands of cobra and urfave/cli. */
  readonly commands: readonly GoCommand[];
}

/** A command that a program offers on its command line. */
export interface GoCommand {
  /** First word of its usage. */
  readonly use: string;
  /** It does something by itself, and not only by its subcommands. */
  readonly runs: boolean;
  /** Variable that holds it, or function that makes it. */
  readonly holder: string;
}

interface GoDraft extends FactsDraft {
  isMain: boolean;
  readonly embeds: string[];
  readonly commands: GoCommand[];
}

/** Parses a source. Incomplete or wrong code gives what can be read of it. */
export const parseGo = createSourceReader<GoSource>((text) => {
  const draft: GoDraft = { ...createDraft(text), isMain: false, embeds: [], commands: [] };
  const top = parser.parse(text).topNode;
  const isProgram = readNode(top.getChild('PackageClause')?.getChild('DefName'), text) === 'main';
  const isIgnored = listChildren(top).some(
    (node) => node.name === 'LineComment' && /^\/\/(?:go:build|\s?\+build) ignore\b/.test(readNode(node, text)),
  );
  readWithinStack(() => {
    visitTree(top, (node) => {
      readers[node.name]?.(node, draft);
      return true;
    });
  });
  return { ...draft, isMain: isProgram && !isIgnored && draft.isMain };
});

type Read = (node: SyntaxNode, draft: GoDraft) => void;

const readers: Readonly<Record<string, Read>> = {
  LineComment: (node, draft) => {
    const [, patterns] = /^\/\/go:embed[ \t]{1,9}(.{1,300})$/.exec(readNode(node, draft.text).trimEnd()) ?? [];
    if (patterns !== undefined) draft.embeds.push(...patterns.trim().split(/\s+/));
  },
  ConstSpec: readAssignment,
  VarSpec: readAssignment,
  VarDecl: readAssignment,
  Assignment: readAssignment,
  FieldDecl: readTaggedField,
  FunctionDecl: readFunction,
  MethodDecl: readFunction,
  CallExpr: readCall,
  TypedLiteral: readTypedLiteral,
  LiteralValue: readCommand,
};

/** Reads `a, b := 1, 2`, `const port = "80"` and `config.Server.Port = "80"`. */
function readAssignment(node: SyntaxNode, draft: GoDraft): void {
  const children = listChildren(node).filter(({ name }) => name !== ',');
  const at = children.findIndex(({ name }) => name === '=' || name === ':=');
  if (at < 0) return;
  const targets = children.slice(0, at).filter(({ name }) => /^(?:DefName|VariableName|SelectorExpr)$/.test(name));
  const values = children.slice(at + 1).filter(isExpression);
  for (const [index, target] of targets.entries()) {
    // Both names of `value, found := os.LookupEnv("PORT")` have one value.
    const value = values[index] ?? values[0];
    if (value !== undefined) addNamed(draft, readDotted(target, draft.text), toLeaves(value, draft.text));
  }
}

function addNamed(draft: GoDraft, dotted: string, leaves: readonly Leaf[]): void {
  const parts = dotted.split('.');
  addValue(draft, parts.at(-1) ?? '', leaves);
  if (parts.length > 1) addValue(draft, parts.slice(-2).join('.'), leaves);
}

const tagNames = /\b(?:default|envDefault|env-default|env|envconfig|mapstructure):"([^"]{1,100})"/g;

/** Reads the tags that name a field's variable and its default. */
function readTaggedField(node: SyntaxNode, draft: GoDraft): void {
  const tag = node.getChild('String');
  if (tag === null) return;
  const leaves = [...readNode(tag, draft.text).matchAll(tagNames)].flatMap(([whole, value = '']): Leaf[] => {
    if (/^(?:env-?default|default)/i.test(whole)) return [{ kind: 'text', text: value, ...locate(tag, draft.text) }];
    const [name = ''] = value.split(',');
    return /^[A-Z][A-Z0-9_]*$/.test(name) ? [{ kind: 'variable', name }] : [];
  });
  const type = readNode(node.parent?.parent?.parent?.getChild('DefName'), draft.text);
  for (const field of node.getChildren('FieldName')) addNamed(draft, `${type}.${readNode(field, draft.text)}`, leaves);
}

function readFunction(node: SyntaxNode, draft: GoDraft): void {
  const name = readNode(node.getChild('DefName') ?? node.getChild('FieldName'), draft.text);
  if (node.name === 'FunctionDecl' && name === 'main') draft.isMain = true;
  const lists = node.getChildren('Parameters');
  const parameters = (node.name === 'MethodDecl' ? lists[1] : lists[0])?.getChildren('Parameter') ?? [];
  draft.parameters.set(
    name,
    parameters.flatMap((each) => each.getChildren('DefName').map((inner) => readNode(inner, draft.text))),
  );
  for (const returned of listReturns(node.getChild('Block')))
    addValue(
      draft,
      name,
      listChildren(returned)
        .filter(isExpression)
        .flatMap((each) => toLeaves(each, draft.text)),
    );
}

/** Lists the return statements of a function itself. */
function listReturns(node: SyntaxNode | null): SyntaxNode[] {
  return listChildren(node).flatMap((child) =>
    child.name === 'ReturnStatement' ? [child] : child.name === 'FunctionLiteral' ? [] : listReturns(child),
  );
}

function readCall(node: SyntaxNode, draft: GoDraft): void {
  const name = readCallee(node, draft.text);
  const args = listArguments(node).map((each) => toLeaves(each, draft.text));
  draft.calls.push({ name, args });
  const option = readOption(name, args);
  const [variable] = args[0] ?? [];
  // flag.StringVar(&addr, "addr", ":4000", "usage")
  if (option !== undefined && /VarP?$/.test(name) && variable?.kind === 'name') addNamed(draft, variable.name, option);
  // viper.SetDefault("server.port", 8080)
  if (name.endsWith('.SetDefault')) addNamed(draft, readText(args[0]), args[1] ?? []);
}

const optionTypes = /\.(?:String|Int|Int64|Uint|Uint16|Duration)(Var)?(P)?$/;

/** Reads the option that a call of `flag` or `pflag` defines, and its default. The usage is no value. */
function readOption(name: string, args: readonly (readonly Leaf[])[]): Leaf[] | undefined {
  const [match, hasVariable, hasShort] = optionTypes.exec(name) ?? [];
  if (match === undefined) return undefined;
  const rest = hasVariable === undefined ? args : args.slice(1);
  const option = readText(rest[0]);
  const value = rest[hasShort === undefined ? 1 : 2];
  if (!/^[a-z][\w.-]{0,40}$/i.test(option) || value === undefined || rest.length < 3) return undefined;
  const dashes = /^flag\./.test(name) ? '-' : '--';
  return [{ kind: 'option', name: `${dashes}${option}` }, ...value];
}

function readText(leaves: readonly Leaf[] | undefined): string {
  const [leaf] = leaves ?? [];
  return leaf?.kind === 'text' ? leaf.text : '';
}

/**
 * Reads `Config{Port: "80"}`. A server of net/http counts as a call that is given its address, and a transport of MCP,
 * `&mcp.StdioTransport{}`, as one without arguments.
 */
function readTypedLiteral(node: SyntaxNode, draft: GoDraft): void {
  const type = readNode(node.firstChild, draft.text);
  if (type.endsWith('Transport')) draft.calls.push({ name: type, args: [] });
  for (const { key, value } of listFields(node.getChild('LiteralValue'), draft.text)) {
    const leaves = toLeaves(value, draft.text);
    addNamed(draft, `${type.split('.').at(-1) ?? ''}.${key}`, leaves);
    if (/(?:^|\.)Server$/.test(type) && key === 'Addr') draft.calls.push({ name: type, args: [leaves] });
  }
}

interface Field {
  readonly key: string;
  readonly value: SyntaxNode;
}

function listFields(literal: SyntaxNode | null, text: string): Field[] {
  return (literal?.getChildren('Element') ?? []).flatMap((element) => {
    const key = readNode(element.getChild('Key'), text);
    const value = listChildren(element).find((each) => each.name !== 'Key' && isExpression(each));
    return key === '' || value === undefined ? [] : [{ key, value }];
  });
}

const running = new Set(['Run', 'RunE', 'Action']);

/** Reads a literal that is a command: `cobra.Command{Use: "serve", RunE: …}`, `cli.App{Action: …}`. */
function readCommand(node: SyntaxNode, draft: GoDraft): void {
  const fields = listFields(node, draft.text);
  const usage = fields.find(({ key }) => key === 'Use' || key === 'Name');
  const runs = fields.some(({ key }) => running.has(key));
  const isRoot = /(?:^|\.)(?:Command|App)$/.test(readNode(node.parent?.getChild('QualifiedType'), draft.text));
  if (usage === undefined || (!runs && !isRoot)) return;
  const [use = ''] = readText(toLeaves(usage.value, draft.text)).split(' ');
  draft.commands.push({ use, runs, holder: findHolder(node, draft.text) });
}

function findHolder(node: SyntaxNode, text: string): string {
  for (let each = node.parent; each !== null; each = each.parent) {
    if (/^(?:VarDecl|VarSpec|Assignment|FunctionDecl|MethodDecl)$/.test(each.name))
      return readNode(each.getChild('DefName') ?? each.getChild('FieldName') ?? each.firstChild, text);
  }
  return '';
}

const maximumDepth = 12;

/** Lists the literals, names and calls that an expression is made of. */
function toLeaves(node: SyntaxNode, text: string, depth = 0): Leaf[] {
  if (depth > maximumDepth) return [];
  const toAllLeaves = (nodes: readonly SyntaxNode[]): Leaf[] =>
    nodes.flatMap((each) => toLeaves(each, text, depth + 1));
  switch (node.name) {
    case 'String':
      return [{ kind: 'text', text: readNode(node, text).slice(1, -1), ...locate(node, text) }];
    case 'Number':
      return [{ kind: 'number', number: Number(readNode(node, text).replaceAll('_', '')), ...locate(node, text) }];
    case 'VariableName':
      return [{ kind: 'name', name: readDotted(node, text) }];
    case 'SelectorExpr':
      return [...toAllLeaves(listOperandsBefore(node)), { kind: 'name', name: readDotted(node, text) }];
    case 'CallExpr':
      return [...toAllLeaves(listOperandsBefore(node)), ...toCallLeaves(node, text, depth)];
    case 'TypedLiteral':
    case 'FunctionLiteral':
      return [];
    default:
      return toAllLeaves(listChildren(node).filter(isExpression));
  }
}

function toCallLeaves(node: SyntaxNode, text: string, depth: number): Leaf[] {
  const name = readCallee(node, text);
  const args = listArguments(node).map((each) => toLeaves(each, text, depth + 1));
  const option = readOption(name, args);
  if (option !== undefined) return option;
  const variable = isVariableRead(name, args[0]);
  if (variable !== undefined) return [{ kind: 'variable', name: variable }, ...args.slice(1).flat()];
  // A setting of viper: its default is kept by its key.
  if (/^(?:viper|v|config|cfg)\.Get(?:String|Int)?$/.test(name)) return [{ kind: 'name', name: readText(args[0]) }];
  return [{ kind: 'call', name, operands: args.flat() }];
}

function readCallee(node: SyntaxNode, text: string): string {
  return node.firstChild === null ? '' : readDotted(node.firstChild, text);
}

function listArguments(node: SyntaxNode): SyntaxNode[] {
  return listChildren(node.getChild('Arguments')).filter(isExpression);
}

/**
 * NOTE: the grammar binds operators stronger than dots and calls: it reads `a + b.c()` as `(a + b).c()`. So the last
 * operand belongs to what follows, and the others stand before it.
 */
function listOperandsBefore(node: SyntaxNode): SyntaxNode[] {
  const first = node.firstChild;
  if (first === null) return [];
  if (node.name === 'BinaryExp') return listChildren(node).filter(isExpression).slice(0, -1);
  return /^(?:SelectorExpr|CallExpr|IndexExpr)$/.test(first.name) || first.name === 'BinaryExp'
    ? listOperandsBefore(first)
    : [];
}

/** Reads `a.b.c`, also through pointers; parts that are not names are empty. */
function readDotted(node: SyntaxNode, text: string): string {
  if (node.name === 'BinaryExp') {
    const last = listChildren(node).findLast(isExpression);
    return last === undefined ? '' : readDotted(last, text);
  }
  if (node.name === 'VariableName' || node.name === 'DefName') return readNode(node, text);
  if (node.name === 'ParenthesizedExpr' || node.name === 'UnaryExp') {
    const inner = listChildren(node).find(isExpression);
    return inner === undefined ? '' : readDotted(inner, text);
  }
  if (node.name !== 'SelectorExpr' || node.firstChild === null) return '';
  return `${readDotted(node.firstChild, text)}.${readNode(node.getChild('FieldName'), text)}`;
}

/** Nodes that are neither punctuation, operators nor comments. */
function isExpression({ name }: SyntaxNode): boolean {
  return /^[A-Z]/.test(name) && !/Op$|Comment$/.test(name);
}
