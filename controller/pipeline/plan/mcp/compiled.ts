// Finds MCP servers in Go and Rust: the program of a module or package, and the transports that its code makes.
import { posix } from 'node:path';
import type { Tree } from '../../tree.ts';
import { findMain, listProgramFiles as listGoFiles, type MainPackage } from '../go/main-package.ts';
import { findProgram, listProgramFiles as listRustFiles } from '../rust/program.ts';
import type { SourceFile } from '../syntax/follow.ts';
import type { Leaf } from '../syntax/leaves.ts';
import {
  decideCommandSpeech,
  decideSpeech,
  type McpProgram,
  type McpTransport,
  parseTransport,
  type Speech,
  type TransportChoice,
  findSpellings,
} from './transports.ts';

/** Where planned images of both languages have the program. */
const program = '/usr/local/bin/server';

/** By the last part of a call's name. */
const goMakers: Readonly<Record<string, McpTransport>> = {
  // github.com/mark3labs/mcp-go
  ServeStdio: 'stdio',
  NewStdioServer: 'stdio',
  NewStreamableHTTPServer: 'streamable-http',
  NewSSEServer: 'sse',
  // github.com/modelcontextprotocol/go-sdk
  StdioTransport: 'stdio',
  NewStdioTransport: 'stdio',
  // It is given standard input and output.
  IOTransport: 'stdio',
  NewStreamableHTTPHandler: 'streamable-http',
  NewSSEHandler: 'sse',
  // github.com/metoro-io/mcp-golang
  NewStdioServerTransport: 'stdio',
};
const goLibrary =
  /^\s{0,9}(?:require )?(github\.com\/(?:mark3labs\/mcp-go|modelcontextprotocol\/go-sdk|metoro-io\/mcp-golang)) v\S{1,80}(?! \/\/ indirect)/m;

/** Lists the servers of a Go module, the likeliest first. */
export function findGoServers(tree: Tree): McpProgram[] {
  const goMod = tree.readFile('go.mod') ?? '';
  if (!goLibrary.test(goMod)) return [];
  const main = findMain(tree, goMod);
  if (main === undefined) return [];
  const folders = [main.folder, ...main.others].toSorted(
    (one, other) => Number(/mcp/i.test(posix.basename(other))) - Number(/mcp/i.test(posix.basename(one))),
  );
  const programs = folders.flatMap((folder): McpProgram[] => {
    const others = folders.filter((each) => each !== folder);
    const found = describeGoProgram(tree, { folder, others });
    return found === undefined ? [] : [found];
  });
  // Packages that several programs share show the same transports for each; a program of its own folder shows its own.
  const own = programs.filter(({ file, name }) => posix.dirname(file) === name);
  return own.length > 0 ? own : programs.slice(0, 1);
}

function describeGoProgram(tree: Tree, main: MainPackage): McpProgram | undefined {
  const files = listGoFiles(tree, main);
  const commands = files.flatMap(({ facts }) => facts.commands).filter(({ runs }) => runs);
  const found = readProgram(
    files,
    goMakers,
    commands.map(({ use }) => use),
  );
  if (found === undefined) return undefined;
  const sorted = found.files.toSorted(
    (one, other) => Number(posix.dirname(other) === main.folder) - Number(posix.dirname(one) === main.folder),
  );
  return {
    language: 'go',
    name: main.folder,
    folder: main.folder,
    file: sorted[0] ?? 'go.mod',
    command: `exec ${program}`,
    speaks: found.speaks,
  };
}

/** By the last two parts of a call's path. */
const rustMakers: Readonly<Record<string, McpTransport>> = {
  // rmcp
  stdio: 'stdio',
  'transport.stdio': 'stdio',
  'io.stdio': 'stdio',
  'StreamableHttpService.new': 'streamable-http',
  'SseServer.serve': 'sse',
  'SseServer.serve_with_config': 'sse',
  'SseServer.new': 'sse',
  // rust-mcp-sdk
  'StdioTransport.new': 'stdio',
  'hyper_server.create_server': 'streamable-http',
};
const rustLibrary = /^\s{0,9}(?:\[(?:workspace\.)?dependencies\.)?(?:rmcp|rust-mcp-sdk)(?:\]|\s{0,9}[=.])/m;

/** Lists the server of a Cargo package or workspace; none if its program is not one. */
export function findRustServers(tree: Tree): McpProgram[] {
  const chosen = findProgram(tree);
  if (chosen === undefined) return [];
  const manifests = ['Cargo.toml', posix.join(chosen.folder, 'Cargo.toml')];
  if (!manifests.some((each) => rustLibrary.test(tree.readFile(each) ?? ''))) return [];
  const files = listRustFiles(tree, chosen);
  const found = readProgram(files, rustMakers, []) ?? readStreams(files);
  if (found === undefined) return [];
  return [
    {
      language: 'rust',
      name: chosen.name,
      file: found.files[0] ?? 'Cargo.toml',
      command: `exec ${program}`,
      speaks: found.speaks,
    },
  ];
}

interface FoundSpeech {
  readonly speaks: Speech;
  /** Sources that make a transport. */
  readonly files: readonly string[];
}

/** `service.serve((tokio::io::stdin(), tokio::io::stdout()))` of rmcp. */
function readStreams(files: readonly SourceFile[]): FoundSpeech | undefined {
  const calls = (file: SourceFile, name: RegExp): boolean => file.facts.calls.some((each) => name.test(each.name));
  const found = files.find(
    (file) => calls(file, /(?:^|\.)stdin$/) && calls(file, /(?:^|\.)stdout$/) && calls(file, /\.serve$/),
  );
  const speaks = decideSpeech({ used: new Map([['stdio', 'stdin() and stdout()']]), defaults: [], switches: [] });
  return found === undefined || speaks === undefined ? undefined : { speaks, files: [found.path] };
}

function readProgram(
  files: readonly SourceFile[],
  makers: Readonly<Record<string, McpTransport>>,
  commands: readonly string[],
): FoundSpeech | undefined {
  const used = new Map<McpTransport, string>();
  const making: string[] = [];
  for (const { path, facts } of files)
    for (const { name } of facts.calls) {
      const parts = name.split('.');
      const last = parts.at(-1) ?? '';
      const key = [parts.slice(-2).join('.'), last].find((each) => Object.hasOwn(makers, each));
      const transport = key === undefined ? undefined : makers[key];
      if (transport === undefined) continue;
      if (!used.has(transport)) used.set(transport, `${key ?? last}()`);
      if (!making.includes(path)) making.push(path);
    }
  const offered = new Map(
    commands.flatMap((use) => {
      const transport = parseTransport(use);
      return transport === undefined ? [] : [[transport, use] as const];
    }),
  );
  if (offered.size > 0 && making.length > 0) return { speaks: decideCommandSpeech(offered), files: making };
  const speaks = decideSpeech({
    used,
    defaults: files.flatMap(listDefaults),
    choice: findChoice(files, [...used.keys()]),
    switches: [],
  });
  return speaks === undefined ? undefined : { speaks, files: making };
}

const choiceName = /^(?:\w{1,20}\.)?(?:mcp_?)?(?:transport(?:_?(?:type|mode))?|mode)$/i;
const optionName = /^--?(?:t|(?:mcp-)?transport(?:-type)?|mode)$/;

/** Texts of the variables and options that choose the transport: `flag.String("transport", "stdio", "…")`. */
function listDefaults({ facts }: SourceFile): string[] {
  const values = [...facts.values].filter(([name, leaves]) => choiceName.test(name) || leaves.some(isChoice));
  const calls = facts.calls.filter(
    ({ name, args }) =>
      /(?:^|\.)String(?:Var)?P?$/.test(name) &&
      args.flat().some((leaf) => leaf.kind === 'text' && /^(?:mcp-)?transport$|^mode$/.test(leaf.text)),
  );
  const texts = [...values.flatMap(([, leaves]) => leaves), ...calls.flatMap(({ args }) => args.flat())];
  return texts.flatMap((leaf) => (leaf.kind === 'text' && parseTransport(leaf.text) !== undefined ? [leaf.text] : []));
}

function isChoice(leaf: Leaf): boolean {
  if (leaf.kind === 'option') return optionName.test(leaf.name);
  return leaf.kind === 'variable' && /(?:^|_)TRANSPORT(?:_TYPE|_MODE)?$/.test(leaf.name);
}

function findChoice(files: readonly SourceFile[], used: readonly McpTransport[]): TransportChoice | undefined {
  const leaves = files.flatMap(({ facts }) => [...facts.values.values()].flat());
  const chosen = leaves.find(isChoice);
  if (chosen?.kind !== 'option' && chosen?.kind !== 'variable') return undefined;
  const texts = files
    .flatMap(({ facts }) => [...facts.values.values(), ...facts.calls.flatMap(({ args }) => args)].flat())
    .flatMap((leaf) => (leaf.kind === 'text' ? [leaf.text] : []));
  return { kind: chosen.kind, name: chosen.name, spellings: findSpellings(used, texts) };
}
