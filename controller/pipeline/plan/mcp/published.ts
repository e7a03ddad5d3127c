// Finds the MCP server of a published package: the program that npx or uvx starts, and what its code shows of transports.
import { type PublishedPackage, type PublishedProgram, readPublishedPackage } from '../common/published.ts';
import type { Tree } from '../../tree.ts';
import { describeProgram, libraries } from './node.ts';
import { findPythonServers } from './python.ts';
import type { McpProgram, Speech } from './transports.ts';

/** Packages on PyPI of which one is among the dependencies of a server. */
const pythonLibraries = ['mcp', 'fastmcp', 'fastmcp-slim'];

/** Lists the servers among the programs of a package: only the one that npx or uvx starts, if they start any. */
export function findPublishedServers(tree: Tree): McpProgram[] {
  const published = readPublishedPackage(tree);
  if (published === undefined) return [];
  const { main, programs } = published;
  const candidates = main === undefined ? programs : [main];
  const found = tree.registry === 'npm' ? findNpmServers(tree, candidates) : findPypiServers(tree, candidates);
  if (found.length === 0 && main !== undefined && isLikelyServer(tree, published))
    return [createServer(tree, published, main)];
  const isStarted = isStartedByClients(tree, published);
  return found.map((program) => chooseStdio(program, isStarted));
}

/** Makes the server of a program whose code shows no transport. */
function createServer(tree: Tree, published: PublishedPackage, main: PublishedProgram): McpProgram {
  const option = findStdioOption(tree, published);
  const shared = { name: main.name, speaks: readBundledSpeech(tree, option) };
  const command = option === undefined ? main.command : `${main.command} ${option}`;
  return tree.registry === 'npm'
    ? { ...shared, language: 'node', file: main.entry, command }
    : { ...shared, language: 'python', file: 'pyproject.toml', command, ofProject: true };
}

function readBundledSpeech(tree: Tree, option: string | undefined): Speech {
  if (option !== undefined)
    return { ...overStdio, certainty: 'likely', because: `is started with ${option}, as its README says` };
  const evidence = findStdioName(tree);
  return evidence === undefined
    ? { ...overStdio, certainty: 'guessed', because: 'starts it, presumably over stdio as most packages' }
    : { ...overStdio, certainty: 'likely', because: `starts it over stdio (${evidence} names it)` };
}

const overStdio = { transports: ['stdio'], byDefault: 'stdio' } as const;

/** Finds the option with which the README starts the package over stdio; most packages need none. */
function findStdioOption(tree: Tree, published: PublishedPackage): string | undefined {
  for (const { before, after } of listMentions(tree, published)) {
    const [words = ''] = /^(?:,\s{0,60}\n|[^\]\n`]){0,300}/.exec(after) ?? [];
    const option = /^(?:@[\w.-]{1,40})?["']?(?=[\s,]).*?[\s"'](--stdio)(?=$|[\s"'])/s.exec(words)?.[1];
    if (option !== undefined && isStart(before)) return option;
  }
  return undefined;
}

/** Whether the README has the settings of a client that starts the package, which is over stdio unless an option says otherwise. */
function isStartedByClients(tree: Tree, published: PublishedPackage): boolean {
  return listMentions(tree, published).some(
    ({ before, after }) =>
      clientArguments.test(before) && /^(?:@[\w.-]{1,40})?"(?:(?!http|sse|transport)[^\]]){0,300}\]/i.test(after),
  );
}

/** The places of the README that have the name of the package as a word, with what is around them. */
function listMentions(tree: Tree, { name }: PublishedPackage): { before: string; after: string }[] {
  const file = tree.entries.find(({ path }) => /^readme\.(?:md|rst|txt)$/i.test(path))?.path ?? 'PKG-INFO';
  const text = tree.readFile(file, 512 * 1024) ?? '';
  const parts = name === '' ? [] : text.split(name);
  return parts.slice(1).map((after, index) => ({ before: (parts[index] ?? '').slice(-80), after }));
}

/** Whether the words before the name of a package run it. */
function isStart(before: string): boolean {
  return /\b(?:npx|uvx|bunx|pnpx|dlx)\b[^`]*$/.test(before) || clientArguments.test(before);
}

const clientArguments = /"args"\s{0,9}:\s{0,9}\[[^\]]*$/;

const maximumFiles = 200;
const bundleBytes = 4 * 1024 * 1024;

/** Finds a file that names the SDK's transport over stdio. Bundles are too large to parse, and import nothing. */
function findStdioName(tree: Tree): string | undefined {
  const isSource = ({ kind, path }: Tree['entries'][number]): boolean =>
    kind === 'file' && /\.(?:[cm]?js|py)$/.test(path) && !/(?:^|\/)(?:node_modules|tests?|examples?)\//.test(path);
  return tree.entries
    .filter(isSource)
    .slice(0, maximumFiles)
    .find(({ path }) => /StdioServerTransport|stdio_server|server\/stdio/.test(tree.readFile(path, bundleBytes) ?? ''))
    ?.path;
}

function findNpmServers(tree: Tree, candidates: readonly PublishedProgram[]): McpProgram[] {
  return candidates.flatMap(({ name, entry, command }): McpProgram[] => {
    const program = describeProgram(tree, entry);
    return program === undefined ? [] : [{ ...program, name, command, file: entry }];
  });
}

function findPypiServers(tree: Tree, candidates: readonly PublishedProgram[]): McpProgram[] {
  const commands = new Set(candidates.map(({ name }) => name));
  return findPythonServers(tree, new Set()).filter(({ name, ofProject }) => ofProject === true && commands.has(name));
}

/** The code of a package may be bundled, so that it shows no names of a library. */
function isLikelyServer({ registry }: Tree, { dependencies, isNamedMcp }: PublishedPackage): boolean {
  const known = registry === 'npm' ? libraries : pythonLibraries;
  return isNamedMcp && known.some((each) => dependencies.has(each));
}

/** Clients start a package over stdio, so that this is the default of one that can also speak HTTP. */
function chooseStdio(program: McpProgram, isStarted: boolean): McpProgram {
  const { certainty, transports, byDefault, choice } = program.speaks;
  if (byDefault !== 'stdio' && choice === undefined && isStarted)
    return {
      ...program,
      speaks: { ...program.speaks, ...overStdio, because: 'starts it over stdio, as its README says' },
    };
  if (certainty !== 'guessed' || !transports.includes('stdio')) return program;
  const others = transports.filter((each) => each !== 'stdio').join(' and ');
  const because = `can start it over stdio${others === '' ? '' : ` and ${others}`}, and clients start packages over stdio`;
  const speaks: Speech = { ...program.speaks, byDefault: 'stdio', certainty: 'likely', because };
  return { ...program, speaks };
}
