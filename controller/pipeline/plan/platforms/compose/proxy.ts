// Reads the routes of a reverse proxy (nginx, Caddy, Traefik) of a compose file, so that the platform's gateway can replace it.
import { posix } from 'node:path';
import type { Tree } from '../../../tree.ts';
import type { ComposeService } from './read.ts';
import { toFolder } from './services.ts';

/** Requests that a proxy passes on to a service. */
export interface ProxyRoute {
  /** Such as /api; / is everything else. */
  readonly path: string;
  /** Whether the service sees the request without the path. */
  readonly strips: boolean;
  /** Host name at which the proxy reaches the service. */
  readonly host: string;
  readonly port?: number;
  /** First part of a host name that the route is for, such as api of api.example.org. */
  readonly subdomain?: string;
}

export interface ProxyConfig {
  readonly file: string;
  readonly routes: readonly ProxyRoute[];
  /** What the gateway cannot do for it, such as "serves files at /static"; undefined: it only passes requests on. */
  readonly more?: string;
}

const maximumBytes = 64 * 1024;
const nginxName = /(?:nginx[^/]{0,40}\.conf|default\.conf|site\.conf|app\.conf)(?:\.(?:template|tmpl))?$/;
const caddyName = /(?:^|\/)Caddyfile$/;

/**
 * Reads the configuration of a proxy service: mounted into it, copied in its folder, or labels of the other services.
 * Returns undefined if there is none that says anything.
 */
export function readProxyConfig(
  tree: Tree,
  proxy: ComposeService,
  others: readonly ComposeService[],
): ProxyConfig | undefined {
  const configs = listFiles(tree, proxy).map((file) => readConfigFile(tree, file));
  return configs.find((each) => each !== undefined && each.routes.length > 0) ?? readLabels(proxy, others);
}

/** Reads what a folder's own nginx or Caddy passes on, such as that of built pages. */
export function readFolderProxy(tree: Tree, folder: string): ProxyConfig | undefined {
  const below = tree.getSubtree(folder);
  const files = below.entries
    .filter(({ kind, path }) => kind === 'file' && path.split('/').length <= 3 && isConfigName(path))
    .map(({ path }) => posix.join(folder, path));
  return files.map((file) => readConfigFile(tree, file)).find((each) => each !== undefined && each.routes.length > 0);
}

function isConfigName(path: string): boolean {
  return (nginxName.test(path) || caddyName.test(path)) && !/(?:^|\/)node_modules\//.test(path);
}

function listFiles(tree: Tree, { build, volumes = [] }: ComposeService): string[] {
  const mounted = volumes
    .map(({ source }) => toFolder(source))
    .flatMap((path) => {
      if (tree.has(path)) return [path];
      const below = tree.entries.filter((each) => each.kind === 'file' && each.path.startsWith(`${path}/`));
      return path === '.'
        ? []
        : below.map((each) => each.path).filter((each) => /\.(?:conf|template|tmpl)$/.test(each) || isConfigName(each));
    });
  if (build === undefined) return mounted.slice(0, 20);
  const folder = toFolder(build.context);
  const copied = tree.entries
    .filter(
      ({ kind, path }) => kind === 'file' && (folder === '.' || path.startsWith(`${folder}/`)) && isConfigName(path),
    )
    .map(({ path }) => path);
  return [...mounted, ...copied].slice(0, 20);
}

function readConfigFile(tree: Tree, file: string): ProxyConfig | undefined {
  const text = tree.readFile(file, maximumBytes);
  if (text === undefined) return undefined;
  return caddyName.test(file) ? readCaddy(file, text) : readNginx(file, text);
}

interface Block {
  /** Words before the brace or the end of the line. */
  readonly words: readonly string[];
  readonly blocks: readonly Block[];
}

const token = /"((?:[^"\\]|\\.){0,2000})"|'([^'\n]{0,2000})'|([{};])|(\n)|((?:\$\{[^}\n]{0,100}\}|[^\s{};"'])+)/g;

/** Parses nested directives. nginx ends them with a semicolon, Caddy with the line. */
function parseBlocks(text: string, end: ';' | '\n'): Block[] {
  const plain = text.replaceAll(/(^|\s)#[^\n]{0,2000}/g, '$1');
  const tokens = [...plain.matchAll(token)].map(([sign, double, single]) => ({
    sign,
    word: double ?? single ?? (/^[{};\n]$/.test(sign) ? undefined : sign),
  }));
  return readBlocks(tokens, 0, end).blocks;
}

interface Token {
  readonly sign: string;
  /** Absent for a brace, a semicolon or the end of a line. */
  readonly word: string | undefined;
}

/** Reads directives up to the brace that ends them. */
function readBlocks(tokens: readonly Token[], from: number, end: ';' | '\n'): { blocks: Block[]; at: number } {
  const blocks: Block[] = [];
  let words: string[] = [];
  let at = from;
  for (; at < tokens.length && tokens[at]?.sign !== '}'; at += 1) {
    const { sign, word } = tokens[at] ?? { sign: '', word: undefined };
    if (word !== undefined) words.push(word);
    if (sign === '{') {
      const inner = readBlocks(tokens, at + 1, end);
      blocks.push({ words, blocks: inner.blocks });
      at = inner.at;
      words = [];
    } else if (sign === end) {
      if (words.length > 0) blocks.push({ words, blocks: [] });
      words = [];
    }
  }
  if (words.length > 0) blocks.push({ words, blocks: [] });
  return { blocks, at };
}

// nginx.

function readNginx(file: string, text: string): ProxyConfig {
  const blocks = parseBlocks(text, ';');
  const upstreams = new Map(
    findBlocks(blocks, 'upstream').map(({ words: [, name = ''], blocks: inner }) => [
      name,
      inner.find(({ words }) => words[0] === 'server')?.words[1] ?? '',
    ]),
  );
  const found = findBlocks(blocks, 'server')
    .filter(({ blocks: inner }) => inner.length > 0)
    .map((server) => readServer(server, upstreams));
  return { file, routes: removeDuplicates(found.flatMap(({ routes }) => routes)), ...pickMore(found) };
}

/** Finds the blocks with this name at any level. */
function findBlocks(blocks: readonly Block[], name: string): Block[] {
  return blocks.flatMap((each) => [...(each.words[0] === name ? [each] : []), ...findBlocks(each.blocks, name)]);
}

type Reading = Pick<ProxyConfig, 'routes' | 'more'>;

function readServer(server: Block, upstreams: ReadonlyMap<string, string>): Reading {
  const [, hostName = ''] = server.blocks.find(({ words }) => words[0] === 'server_name')?.words ?? [];
  const subdomain = readSubdomain(hostName);
  const locations = server.blocks.filter(({ words }) => words[0] === 'location');
  const hasFiles = server.blocks.some(({ words }) => words[0] === 'root');
  const results = locations
    .filter(({ words: [, name = ''] }) => !name.startsWith('@'))
    .map((location) => readLocation(hasFiles ? location : followName(location, locations), upstreams));
  return {
    routes: results.flatMap(({ routes }) =>
      routes.map((each) => ({ ...each, ...(subdomain === undefined ? {} : { subdomain }) })),
    ),
    ...pickMore(results),
  };
}

/** `try_files $uri @api` without a folder of files passes everything on to the location that it names. */
function followName(location: Block, locations: readonly Block[]): Block {
  const directive = location.blocks.find(({ words }) => words[0] === 'try_files')?.words ?? [];
  const isOfFiles = location.blocks.some(({ words: [name = ''] }) => ['root', 'alias', 'proxy_pass'].includes(name));
  const named = locations.find(({ words: [, name = ''] }) => name.startsWith('@') && name === directive.at(-1));
  return named === undefined || isOfFiles ? location : { words: location.words, blocks: named.blocks };
}

function pickMore(results: readonly Reading[]): Pick<Reading, 'more'> {
  const more = results.map((each) => each.more).find((each) => each !== undefined);
  return more === undefined ? {} : { more };
}

function readLocation({ words: [, ...pattern], blocks }: Block, upstreams: ReadonlyMap<string, string>): Reading {
  const shown = pattern.join(' ');
  const find: FindDirective = (name) => blocks.find(({ words }) => words[0] === name)?.words;
  const other = ['fastcgi_pass', 'uwsgi_pass', 'grpc_pass'].find((name) => find(name) !== undefined);
  if (other !== undefined) return { routes: [], more: `uses ${other} at ${shown}` };
  const address = passedAddress.exec(find('proxy_pass')?.[1] ?? '');
  if (address === null) return readFiles(shown, find);
  const path = toLocationPath(pattern);
  return path === undefined ? { routes: [], more: `passes on ${shown}` } : toRoute(path, address, find, upstreams);
}

type FindDirective = (name: string) => readonly string[] | undefined;

const passedAddress = /^https?:\/\/([\w.-]{1,100}|\$\{?\w{1,60}\}?)(?::(\d{1,5}))?(\/[^\s]{0,200})?$/;

/** Pages for errors and certificates are no part of the app. */
function readFiles(shown: string, find: FindDirective): Reading {
  const hasFiles = ['alias', 'root', 'try_files'].some((name) => find(name) !== undefined);
  const isApart = /^\/(?:\.well-known|50x)|error/.test(shown.replace(/^\S*\s/, ''));
  return hasFiles && !isApart ? { routes: [], more: `serves files at ${shown}` } : { routes: [] };
}

function toRoute(
  path: string,
  [, name = '', port, rest]: RegExpExecArray,
  find: FindDirective,
  upstreams: ReadonlyMap<string, string>,
): Reading {
  if (rest !== undefined && rest !== '/' && rest.replace(/\/$/, '') !== path)
    return { routes: [], more: `passes on ${path} as ${rest}` };
  const [host = name, upstreamPort] = (upstreams.get(name) ?? name).split(':');
  const number = Number(port ?? upstreamPort);
  // A path in proxy_pass replaces that of the location.
  const strips = path !== '/' && (rest === '/' || isRewritten(find('rewrite')));
  return { routes: [{ path, strips, host, ...(number > 0 ? { port: number } : {}) }] };
}

/** Returns whether `rewrite ^/api/(.*) /$1` removes the path. */
function isRewritten([, from = '', to = '']: readonly string[] = []): boolean {
  return /^\^?\/.*\(\.\*\)\$?$/.test(from) && /^\/?\$1$/.test(to);
}

/** Finds /api in `location /api/`, `location ^~ /api` and `location ~ ^/api/`; undefined for any other expression. */
function toLocationPath(pattern: readonly string[]): string | undefined {
  const [first = '', second] = pattern;
  const isExpression = first === '~' || first === '~*';
  const text = second ?? first;
  const path = isExpression
    ? /^\^(\/[\w.-]{1,60}(?:\/[\w.-]{1,60})*)\/?(?:\(?\.[*+]\)?\$?|\(\/\|\$\)|)$/.exec(text)?.[1]
    : text;
  if (path === undefined || !/^\/[\w.~/-]{0,99}$/.test(path)) return undefined;
  return path === '/' ? '/' : path.replace(/\/+$/, '');
}

/** Finds api in api.example.org; a name of two parts is that of the app itself. */
function readSubdomain(hostName: string): string | undefined {
  const [first = '', ...rest] = hostName.split('.');
  const isBelow = rest.length > 1 || rest.join('') === 'localhost';
  return isBelow && /^[a-z][a-z0-9-]{0,14}$/.test(first) && first !== 'www' ? first : undefined;
}

function removeDuplicates(routes: readonly ProxyRoute[]): ProxyRoute[] {
  // Servers at several ports can pass / on to different parts, of which one has the pages.
  const toKey = ({ path, subdomain, host }: ProxyRoute): string =>
    `${subdomain ?? ''} ${path}${path === '/' ? ` ${host}` : ''}`;
  return routes.filter((each, index) => routes.findIndex((other) => toKey(other) === toKey(each)) === index);
}

// Caddy.

function readCaddy(file: string, text: string): ProxyConfig {
  const blocks = parseBlocks(text, '\n');
  const isSite = ({ words, blocks: inner }: Block): boolean =>
    inner.length > 0 && words.length > 0 && !words[0]?.startsWith('(');
  const sites = blocks.filter(isSite);
  // A file without sites in braces describes the only one.
  const readings = sites.length === 0 ? [readDirectives(blocks, '/', false)] : sites.map((site) => readSite(site));
  return { file, routes: removeDuplicates(readings.flatMap(({ routes }) => routes)), ...pickMore(readings) };
}

function readSite({ words, blocks }: Block): Reading {
  const subdomain = readSubdomain((words[0] ?? '').replace(/^https?:\/\//, '').replace(/[:,].*$/, ''));
  const { routes, ...rest } = readDirectives(blocks, '/', false);
  return { routes: routes.map((each) => ({ ...each, ...(subdomain === undefined ? {} : { subdomain }) })), ...rest };
}

function readDirectives(blocks: readonly Block[], path: string, strips: boolean): Reading {
  const matchers = new Map(
    blocks.flatMap(({ words: [name = '', kind, value] }): [string, string][] =>
      name.startsWith('@') && kind === 'path' && value !== undefined ? [[name, value]] : [],
    ),
  );
  const results = blocks.map((block) => readDirective(block, path, strips, matchers));
  return { routes: results.flatMap(({ routes }) => routes), ...pickMore(results) };
}

function readDirective(
  { words: [name = '', ...words], blocks }: Block,
  path: string,
  strips: boolean,
  matchers: ReadonlyMap<string, string>,
): Reading {
  const [first = ''] = words;
  const matched = first.startsWith('/') ? first : matchers.get(first);
  const below = matched === undefined ? path : toLocationPath([matched.replace(/\*$/, '')]);
  if (below === undefined) return { routes: [], more: `matches ${first}` };
  if (handlers.includes(name)) return readDirectives(blocks, below, strips || isStripping(name, blocks));
  switch (name) {
    case 'file_server':
      return { routes: [], more: `serves files at ${below}` };
    case 'php_fastcgi':
      return { routes: [], more: 'uses php_fastcgi' };
    case 'reverse_proxy':
      return readTarget(words, below, strips);
    default:
      return { routes: [] };
  }
}

const handlers = ['handle', 'handle_path', 'route'];

function isStripping(name: string, blocks: readonly Block[]): boolean {
  return name === 'handle_path' || blocks.some(({ words: [own, by] }) => own === 'uri' && by === 'strip_prefix');
}

/** A matcher can come before the address. */
function readTarget(words: readonly string[], path: string, strips: boolean): Reading {
  const address = words.find((word) => !/^[/@*]/.test(word)) ?? '';
  const [, host, port] = /^(?:https?:\/\/)?([\w.-]{1,100})(?::(\d{1,5}))?$/.exec(address) ?? [];
  if (host === undefined) return { routes: [] };
  return {
    routes: [{ path, strips: strips && path !== '/', host, ...(port === undefined ? {} : { port: Number(port) }) }],
  };
}

// Traefik.

/** Reads the rules of routers from the labels of the services that they lead to. */
function readLabels({ image = '' }: ComposeService, others: readonly ComposeService[]): ProxyConfig | undefined {
  if (!/(?:^|\/)traefik(?::|@|$)/.test(image)) return undefined;
  const routes = others.flatMap((service) => readRouter(service));
  return routes.length === 0 ? undefined : { file: 'labels', routes: removeDuplicates(routes) };
}

function readRouter({ name: host, labels = [] }: ComposeService): ProxyRoute[] {
  const rules = labels
    .filter(([key]) => /^traefik\.http\.routers\.[^.]{1,100}\.rule$/.test(key))
    .map(([, rule]) => rule ?? '');
  const port = Number(labels.find(([key]) => /\.loadbalancer\.server\.port$/.test(key))?.[1] ?? 0);
  const stripped = labels
    .filter(([key]) => /\.stripprefix\.prefixes$/i.test(key))
    .flatMap(([, value]) => (value ?? '').split(','));
  return rules.slice(0, 8).map((rule) => {
    const path =
      /Path(?:Prefix)?\(\s{0,9}[`"'](\/[\w./~-]{0,99})[`"']/.exec(rule)?.[1]?.replace(/(?!^)\/+$/, '') ?? '/';
    const hostName = /Host\(\s{0,9}[`"']([^`"']{1,200})[`"']/.exec(rule)?.[1] ?? '';
    const subdomain = readSubdomain(hostName.replaceAll(/\$\{[^}]{0,100}\}/g, 'example.org'));
    return {
      path,
      strips: stripped.includes(path),
      host,
      ...(port > 0 ? { port } : {}),
      ...(subdomain === undefined ? {} : { subdomain }),
    };
  });
}
