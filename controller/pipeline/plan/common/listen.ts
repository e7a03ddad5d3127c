// Finds where a Go or Rust program listens, and what a plan has to change so that the address suits a container.
import type { Finding } from '../../../../crds/hosted-app.ts';
import { parseYaml, parseToml, readField } from '../../manifest.ts';
import { keepHead } from '../../text.ts';
import type { Tree } from '../../tree.ts';
import { defaultPort, quoteShellWord } from '../recipe.ts';
import { type Atom, Resolver, type SourceFile } from '../syntax/follow.ts';
import type { Leaf, SourceCall } from '../syntax/leaves.ts';
import { findExposedPort } from './frontend.ts';

/** Returns the value of a call that can be the address to listen on; undefined if the call does not listen. */
export type FindAddress = (call: SourceCall, file: SourceFile) => readonly Leaf[] | undefined;

export interface Listening {
  /** The port of the code. Undefined if it follows $PORT, or nothing shows it. */
  readonly port?: number;
  /** Variables that the image sets. `$PORT` in them stands for the port. */
  readonly variables: Readonly<Record<string, string>>;
  /** Options of the program. */
  readonly options: readonly string[];
  readonly edits: readonly SourceEdit[];
}

/** A change of one line of the author's code, made while the image is built. */
export interface SourceEdit {
  readonly file: string;
  readonly line: number;
  readonly from: string;
  readonly to: string;
}

export const listensAnywhere: Listening = { variables: {}, options: [], edits: [] };

/**
 * Finds it in the calls that listen, or else in a file of settings that the code names, in variables and fields that are
 * named like a port, or in a Dockerfile. If the code reads $PORT anywhere, that is the port.
 */
export function findListening(tree: Tree, files: readonly SourceFile[], findAddress: FindAddress): Listening {
  const resolver = new Resolver(files);
  const found = files
    .flatMap((file) =>
      file.facts.calls.flatMap((call) => {
        const leaves = findAddress(call, file);
        return leaves === undefined ? [] : [createAddress(resolver.resolve(leaves, file))];
      }),
    )
    .filter((each) => each.rank < unknown)
    .toSorted((one, other) => one.rank - other.rank)[0];
  const isPortRead = hasPortRead(files);
  if (found !== undefined) return toListening(found, isPortRead);
  if (isPortRead) return listensAnywhere;
  const settings = findSettingsAddress(tree, files);
  if (settings !== undefined) return toListening(createAddress(settings), false);
  const port = findNamedPort(files, resolver) ?? findExposedPort(tree);
  return port === undefined ? listensAnywhere : { ...listensAnywhere, port };
}

interface Address {
  readonly atoms: readonly Atom[];
  readonly host?: Control;
  readonly port?: Control & { readonly number: number };
  readonly follows: boolean;
  /** Values of variables without a default that are named like a port or an address. */
  readonly open: Readonly<Record<string, string>>;
  readonly rank: number;
}

/** A literal, and what sets another value for it. */
interface Control {
  readonly atom: Atom & { kind: 'text' | 'number' };
  readonly variable?: string;
  readonly option?: string;
}

const loopback = /^(?:127\.0\.0\.1|localhost|\[?::1\]?)(?=:|$)/;
/** Address at the end of a text: no other text counts, such as a URL. */
const written = /^(?:[\w.[\]-]{0,60}|\[[\w:]{0,40}\]):(\d{2,5})$|^(\d{2,5})$/;
const unknown = 9;

function createAddress(atoms: readonly Atom[]): Address {
  const hosts = atoms.filter((each) => each.kind === 'text' && loopback.test(each.text));
  const ports = atoms.filter((each) => toPort(each) !== undefined);
  const [hostAtom] = hosts;
  const portAtom = ports.find((each) => isUsable(toPort(each))) ?? ports[0];
  const number = toPort(portAtom);
  const follows = atoms.some((each) => each.kind === 'variable' && each.name === 'PORT');
  const open = number === undefined ? openVariables(atoms) : {};
  const address = {
    atoms,
    follows,
    ...(hostAtom === undefined ? {} : { host: findControl(hostAtom, atoms) }),
    ...(portAtom === undefined || number === undefined ? {} : { port: { ...findControl(portAtom, atoms), number } }),
    open,
  };
  return { ...address, rank: rankAddress(address) };
}

/** Without a default, the variables have to be set: one for the whole address, or one each for the host and the port. */
function openVariables(atoms: readonly Atom[]): Record<string, string> {
  const names = atoms.flatMap((atom) => (atom.kind === 'variable' ? [atom.name] : []));
  const ports = names.filter((name) => /(?:^|_)PORT$/.test(name));
  const hosts = names.filter((name) => /(?:^|_)(?:HOST|IP|ADDR|ADDRESS|LISTEN|BIND)$/.test(name));
  const [whole] = hosts;
  if (ports.length === 0) return whole === undefined ? {} : { [whole]: '0.0.0.0:$PORT' };
  // A port alone is an address in Go if it starts with a colon.
  const isAlone = atoms.length === 1;
  return Object.fromEntries([
    ...hosts.map((name) => [name, '0.0.0.0']),
    ...ports.map((name) => [name, isAlone ? ':$PORT' : '$PORT']),
  ]) as Record<string, string>;
}

function toPort(atom: Atom | undefined): number | undefined {
  if (atom?.kind === 'number') return atom.number >= 80 && atom.number <= 65_535 ? atom.number : undefined;
  if (atom?.kind !== 'text') return undefined;
  const [, after, alone] = written.exec(atom.text) ?? [];
  const port = Number(after ?? alone);
  return port >= 80 && port <= 65_535 ? port : undefined;
}

function isUsable(port: number | undefined): boolean {
  return port !== undefined && port >= 1024 && !elsewhere.has(port);
}

/** Ports of databases, mail servers and models. */
const elsewhere: ReadonlySet<number> = new Set([
  1025, 1110, 1433, 1521, 2222, 2525, 3306, 4317, 5432, 5672, 6333, 6379, 9092, 9200, 11_211, 11_434, 27_017,
]);
/** Ports of profilers and metrics, which programs open next to their own. */
const monitoring: ReadonlySet<number> = new Set([2112, 6060, 9090, 9100]);

/** The option or variable that stands directly before a literal is the one whose default it is. */
function findControl(atom: Atom, atoms: readonly Atom[]): Control {
  const before = atoms.slice(0, atoms.indexOf(atom));
  const direct = before.slice(before.findLastIndex(({ kind }) => kind === 'text' || kind === 'number') + 1);
  const variable = direct.findLast((each) => each.kind === 'variable')?.name;
  const option = direct.findLast((each) => each.kind === 'option')?.name;
  return {
    atom: atom as Control['atom'],
    ...(variable === undefined ? {} : { variable }),
    ...(option === undefined ? {} : { option }),
  };
}

/** The address that visitors use comes first: not that of a profiler, nor a redirect to HTTPS. */
function rankAddress({ host, port, follows, open }: Omit<Address, 'rank'>): number {
  if (follows) return 0;
  if (port === undefined) return Object.keys(open).length === 0 ? unknown : 2;
  if (elsewhere.has(port.number)) return unknown;
  const isLocal = host === undefined ? 0 : 2;
  if (monitoring.has(port.number)) return 4 + isLocal;
  const isFixed = port.option === undefined && port.variable === undefined ? 1 : 0;
  return (port.number < 1024 ? 2 + isFixed : 1) + isLocal;
}

function toListening(address: Address, isPortRead: boolean): Listening {
  const { port, follows, open } = address;
  const changes = listUnsuitable(address).map(changeLiteral);
  const isLiteral = port !== undefined && port.number >= 1024 && !follows && !isPortRead;
  return {
    ...(isLiteral ? { port: port.number } : {}),
    variables: Object.assign({}, open, ...changes.map(({ variables }) => variables)) as Record<string, string>,
    options: changes.flatMap(({ options }) => options),
    edits: changes.flatMap(({ edits }) => edits),
  };
}

/** Lists the literals that cannot stay: a host that only the container reaches, and a port that needs a privilege. */
function listUnsuitable({ host, port, follows }: Address): Control[] {
  const isPrivileged = port !== undefined && port.number < 1024 && !follows;
  return [...(host === undefined ? [] : [host]), ...(isPrivileged && port.atom !== host?.atom ? [port] : [])];
}

/** Makes a literal suit a container: every interface, and a port that needs no privilege. */
function changeLiteral({ atom, variable, option }: Control): Omit<Listening, 'port'> {
  const text = atom.kind === 'text' ? atom.text : String(atom.number);
  const isPrivileged = (toPort(atom) ?? defaultPort) < 1024;
  const opened = text.replace(loopback, '0.0.0.0');
  const value = isPrivileged ? opened.replace(/\d+$/, '$PORT') : opened;
  if (variable !== undefined) return { ...listensAnywhere, variables: { [variable]: value } };
  if (option !== undefined) return { ...listensAnywhere, options: [`${option}=${value}`] };
  const to = changeSource(atom.source, isPrivileged);
  return to === atom.source
    ? listensAnywhere
    : { ...listensAnywhere, edits: [{ file: atom.file, line: atom.line, from: atom.source, to }] };
}

function changeSource(source: string, isPrivileged: boolean): string {
  // A literal of several lines stays.
  if (source.includes('\n')) return source;
  const opened = source
    .replace(/127\.0\.0\.1|localhost|\[?::1\]?(?=[":])/, '0.0.0.0')
    .replace(/127(\s*,\s*)0(\s*,\s*)0(\s*,\s*)1\b/, '0$10$20$30')
    .replace(/\bLOCALHOST$/, 'UNSPECIFIED');
  return isPrivileged ? opened.replace(/\d{2,3}(?="?$)/, String(defaultPort)) : opened;
}

/** Returns whether the code reads $PORT anywhere. */
function hasPortRead(files: readonly SourceFile[]): boolean {
  const isPort = (leaf: Leaf): boolean =>
    (leaf.kind === 'variable' && leaf.name === 'PORT') || (leaf.kind === 'call' && leaf.operands.some(isPort));
  return files.some(
    ({ facts }) =>
      [...facts.values.values()].some((leaves) => leaves.some(isPort)) ||
      facts.calls.some(({ name, args }) => args.some((leaves) => leaves.some(isPort)) || isReadOfPort(name, args)),
  );
}

function isReadOfPort(name: string, [first]: SourceCall['args']): boolean {
  const [leaf] = first ?? [];
  return leaf?.kind === 'text' && leaf.text === 'PORT' && /(?:env|var|get|bind)\w{0,20}$/i.test(name);
}

const ownName = /^(?:\w{0,30}_)?(?:port|addr|address|listen)$|[a-zA-Z0-9](?:Port|Addr|Address|Listen)$|^[A-Z]+PORT$/i;
const otherName =
  /^(?:\w{0,30}_)?(?:db|database|smtp|mail\w{0,3}|redis|mysql|pg|postgres\w{0,4}|mongo\w{0,2}|grpc|metrics?|remote|proxy|(?:im|ex|re|sup|trans|view|pass|air)(?=port))/i;

function findNamedPort(files: readonly SourceFile[], resolver: Resolver): number | undefined {
  for (const file of files)
    for (const [name, leaves] of file.facts.values) {
      if (name.includes('.') || !ownName.test(name) || otherName.test(name)) continue;
      const port = resolver
        .resolve(leaves, file)
        .map(toPort)
        .find((each) => isUsable(each));
      if (port !== undefined) return port;
    }
  return undefined;
}

const settingsFile = /^(?:\.\/)?[\w./-]{1,80}\.(?:toml|ya?ml)$/;
const sections = ['server', 'http', 'web', 'app', 'application', 'api', 'listen'];
const hostFields = ['host', 'ip', 'address', 'addr', 'bind', 'listen', 'bind_addr', 'bind_address', 'listen_addr'];
const portFields = ['port', 'http_port'];

/** Reads the address in a file of settings that the code names and the repository has. */
function findSettingsAddress(tree: Tree, files: readonly SourceFile[]): Atom[] | undefined {
  for (const path of listSettingsFiles(tree, files)) {
    const text = tree.readFile(path, 64 * 1024) ?? '';
    const settings = path.endsWith('.toml') ? parseToml(text) : parseYaml(text);
    const fields = [...hostFields, ...portFields];
    const section = [...sections, undefined].find((name) =>
      fields.some((field) => readField(settings, ...(name === undefined ? [] : [name]), field) !== undefined),
    );
    const atoms = fields.flatMap((field) => {
      const value = readField(settings, ...(section === undefined ? [] : [section]), field);
      return toSettingAtom(value, { path, text, section, field });
    });
    if (atoms.some((atom) => toPort(atom) !== undefined)) return atoms;
  }
  return undefined;
}

function listSettingsFiles(tree: Tree, files: readonly SourceFile[]): string[] {
  const isText = (leaf: Leaf): leaf is Leaf & { kind: 'text' } => leaf.kind === 'text' && settingsFile.test(leaf.text);
  const named = files.flatMap(({ facts }) => [
    ...facts.calls.flatMap(({ args }) => args.flat().filter(isText)),
    ...[...facts.values.values()].flatMap((leaves) => leaves.filter(isText)),
  ]);
  return [...new Set(named.map(({ text }) => text.replace(/^\.\//, '')))].filter((path) => tree.has(path)).slice(0, 5);
}

interface Setting {
  readonly path: string;
  readonly text: string;
  readonly section: string | undefined;
  readonly field: string;
}

/** Finds the line of the field below the header of its section; undefined fields and other forms give nothing. */
function toSettingAtom(value: unknown, { path, text, section, field }: Setting): Atom[] {
  if (typeof value !== 'string' && typeof value !== 'number') return [];
  const lines = text.split('\n');
  const header = section === undefined ? 0 : lines.findIndex((each) => new RegExp(`^\\[?${section}[\\]:]`).test(each));
  const isField = new RegExp(`^\\s*["']?${field}["']?\\s*[:=]`);
  const index = header < 0 ? -1 : lines.findIndex((each, at) => at >= header && isField.test(each));
  const source = String(value);
  if (index < 0 || lines[index]?.includes(source) !== true) return [];
  const written = { source, line: index + 1, file: path };
  return typeof value === 'number'
    ? [{ kind: 'number', number: value, ...written }]
    : [{ kind: 'text', text: value, ...written }];
}

/**
 * Renders the changes of the code as lines of a Dockerfile, after the code was copied. The last stage has the author's
 * files again, of which the program reads its settings.
 */
export function renderEdits(edits: readonly SourceEdit[], stage: 'build' | 'run'): string[] {
  return edits
    .filter(({ file }) => stage === 'build' || settingsFile.test(file))
    .map(({ file, line, from, to }) => {
      const script = `${line}s/${escapePattern(from)}/${to.replace(/[\\/&]/g, String.raw`\$&`)}/`;
      return `RUN sed -i ${quoteShellWord(script)} ${quoteShellWord(file)}`;
    });
}

function escapePattern(text: string): string {
  return text.replace(/[\\/.*[\]^$]/g, String.raw`\$&`);
}

/** Renders the variables as the rest of an ENV line. */
export function renderVariables({ variables }: Listening, port: number): string {
  return Object.entries(variables)
    .filter(([name]) => name !== 'PORT' && name !== 'HOST')
    .map(([name, value]) => ` ${name}=${quoteShellWord(value.replaceAll('$PORT', String(port)))}`)
    .join('');
}

/** Warns of each change, so that the author makes it in the repository. */
export function warnAboutEdits(edits: readonly SourceEdit[]): Finding[] {
  return edits.map(({ file, line, from, to }) => {
    const isHost = loopbackAnywhere.test(from);
    const cause = isHost
      ? 'an address that only the container itself reaches'
      : 'a port below 1024, which needs a privilege';
    return {
      rule: 'plan/listen-address',
      severity: 'warning',
      file,
      line,
      message: `The app listens on ${cause}: ${keepHead(from, 80)}. The image is built with ${keepHead(to, 80)} there.`,
      fix: 'Listen on 0.0.0.0 and $PORT in the code, or let variables choose the address.',
    };
  });
}

const loopbackAnywhere = /127\.0\.0\.1|localhost|::1|127\s*,\s*0\s*,|LOCALHOST/;

/** States the changes for the reason of a plan; undefined if there are none. */
export function describeEdits(edits: readonly SourceEdit[]): string | undefined {
  const [first] = edits;
  if (first === undefined) return undefined;
  return `The address that it listens on is changed for the image: ${first.to} instead of ${first.from} (${first.file}, line ${first.line}).`;
}
