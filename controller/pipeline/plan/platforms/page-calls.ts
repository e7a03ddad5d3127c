// Finds how the pages of a folder reach an API: by the proxy of a development server, by rewrites of a page server, by
// variables that their build reads, or by addresses in their code.
import { posix } from 'node:path';
import { parseJson, readField, readKeys, readText } from '../../manifest.ts';
import type { Tree } from '../../tree.ts';
import { parseScript, type ScriptModule, type ScriptValue } from '../syntax/javascript.ts';
import { readPath, resolveValues } from '../syntax/resolve.ts';
import { parseEnv } from './compose/read.ts';

/** Requests of pages that are passed on to another server. */
export interface PageProxy {
  /** Such as /api. Empty: everything that is no page. */
  readonly path: string;
  /** Whether the other server sees the request without the path. */
  readonly strips: boolean;
  /** The address, as far as the file has it, such as http://localhost:8000. */
  readonly target: string;
  readonly file: string;
}

/** A variable that the build writes into the pages. */
export interface PageVariable {
  readonly name: string;
  /** Value of a sample file, or the default in the code. */
  readonly value?: string;
}

/** An address of the developer's machine in the code of the pages. */
export interface PageAddress {
  readonly port: number;
  readonly file: string;
  readonly line: number;
  /** The line has another address for production. */
  readonly isFallback: boolean;
  /** The file runs on the server of the pages alone. */
  readonly isOfServer: boolean;
}

export interface PageCalls {
  /** Of the development server alone: pages that are built do not have it. */
  readonly development: readonly PageProxy[];
  /** Of the server that serves the pages. */
  readonly server: readonly PageProxy[];
  readonly variables: readonly PageVariable[];
  readonly addresses: readonly PageAddress[];
  /** Paths on their own server that the pages call, such as /api/users. */
  readonly paths: readonly string[];
  /** They name a path below /api. */
  readonly callsApi: boolean;
  /** They resolve paths against the address of the API, as `new URL('/api/x', base)`, which drops a path of the address. */
  readonly dropsBasePath: boolean;
  /** Paths of WebSockets that they open, such as /ws. */
  readonly sockets: readonly string[];
  /** They use Socket.IO, which takes a path in its address for a namespace. */
  readonly usesSocketIo: boolean;
}

/** Reads the tree of a folder with pages. */
export function readPageCalls(tree: Tree): PageCalls {
  const sources = listSources(tree);
  const list = (pattern: RegExp): string[] => [
    ...new Set(sources.flatMap(({ text }) => [...text.matchAll(pattern)].map((match) => match[1] ?? ''))),
  ];
  const manifest = parseJson(tree.readFile('package.json'));
  return {
    development: readDevelopmentProxies(tree),
    server: readServerProxies(tree),
    variables: listVariables(tree, sources),
    addresses: sources.flatMap(({ path, text }) => listAddresses(path, text)),
    paths: list(relativeCall),
    callsApi: sources.some(({ text }) => /["'`]\/api(?:\/|["'`])/.test(text)),
    dropsBasePath: sources.some(({ text }) => resolved.test(text)),
    sockets: list(socketPath),
    usesSocketIo: readText(manifest, 'dependencies', 'socket.io-client') !== undefined,
  };
}

interface Source {
  readonly path: string;
  readonly text: string;
}

const sourceName = /\.(?:[cm]?[jt]sx?|vue|svelte|astro|rs|dart|html)$/;
const notOfPages =
  /(?:^|\/)(?:node_modules|dist|build|out|\.next|coverage|tests?|__tests__|__mocks__|mocks?|e2e|cypress|playwright|stories|scripts|public\/.*\.min)(?:\/|$)|\.(?:test|spec|stories|d|min|config|setup)\.[^/]+$|(?:^|\/)(?:setupProxy|setupTests|service-?worker|gulpfile|Gruntfile)\.\w+$/i;
const maximumSources = 500;
const sourceBytes = 64 * 1024;

function listSources(tree: Tree): Source[] {
  return tree.entries
    .filter((each) => each.kind === 'file' && sourceName.test(each.path) && !notOfPages.test(each.path))
    .slice(0, maximumSources)
    .map(({ path }) => ({ path, text: tree.readFile(path, sourceBytes) ?? '' }));
}

const relativeCall =
  /\b(?:fetch|axios(?:\.\w{1,10})?|ky(?:\.\w{1,10})?|\$?https?\.\w{1,10}|api\.\w{1,10}|EventSource|useSWR(?:<[^>]{0,60}>)?)\(\s{0,9}[`'"](\/[A-Za-z][\w/-]{0,80})/g;

const resolved = /\bnew URL\(\s{0,20}[^,\n]{1,200},\s{0,20}[\w.]{0,60}(?:API|BACKEND|SERVER|BASE)\w{0,40},?\s{0,20}\)/i;
const socketPath = /["'`}](\/(?:ws|wss|websockets?|sockets?|socket\.io))(?=[/"'`?$])/g;

// Proxies.

const viteFiles = ['ts', 'js', 'mts', 'mjs', 'cjs'].map((ending) => `vite.config.${ending}`);
const nextFiles = ['js', 'mjs', 'ts', 'cjs'].map((ending) => `next.config.${ending}`);
const nuxtFiles = ['nuxt.config.ts', 'nuxt.config.js'];
const webpackFiles = ['vue.config.js', 'webpack.config.js', 'craco.config.js', 'rsbuild.config.ts'];

function readDevelopmentProxies(tree: Tree): PageProxy[] {
  return [
    ...viteFiles.flatMap((file) => readProxyTable(tree, file, ['server', 'proxy'])),
    ...nextFiles.flatMap((file) => listDevelopmentRewrites(file, tree.readFile(file, sourceBytes) ?? '')),
    ...nuxtFiles.flatMap((file) => [
      ...readProxyTable(tree, file, ['nitro', 'devProxy']),
      ...readProxyTable(tree, file, ['vite', 'server', 'proxy']),
    ]),
    ...webpackFiles.flatMap((file) => [
      ...readProxyTable(tree, file, ['devServer', 'proxy']),
      ...readProxyTable(tree, file, ['server', 'proxy']),
    ]),
    ...readReactProxy(tree),
    ...readAngularProxy(tree),
  ];
}

/** Rewrites of Next.js that lead to the developer's machine, also where a condition allows them in development alone. */
function listDevelopmentRewrites(file: string, text: string): PageProxy[] {
  const pattern =
    /source\s{0,3}:\s{0,3}["'`](\/[\w./-]{1,60})[^}]{0,200}?(https?:\/\/(?:127\.0\.0\.1|localhost):[0-9]{2,5})((?:\/[\w.-]{1,60}){0,6})/g;
  return [...text.matchAll(pattern)].flatMap(([, source = '', target = '', path = '']): PageProxy[] => {
    const from = source.replace(/\/+$/, '');
    // The gateway can remove a path, and replaces none.
    return path === from || path === '' ? [{ path: from, strips: path === '', target, file }] : [];
  });
}

function readProxyTable(tree: Tree, file: string, path: readonly string[]): PageProxy[] {
  const text = tree.readFile(file, sourceBytes);
  if (text === undefined) return [];
  const module = parseScript(text);
  return readPath(module.exported, path, module)
    .flatMap((value) => resolveValues(value, module))
    .flatMap((table) => {
      if (table.kind === 'list') return table.items.flatMap((item) => toContextProxies(item, file, module));
      return table.kind === 'object'
        ? [...table.fields].flatMap(([key, value]) => toProxy(key, value, file, module))
        : [];
    });
}

/** webpack lists proxies as { context: ['/api'], target }. */
function toContextProxies(item: ScriptValue, file: string, module: ScriptModule): PageProxy[] {
  const contexts = readPath(item, ['context'], module).flatMap((each) => (each.kind === 'list' ? each.items : [each]));
  return contexts.flatMap((each) => toProxy(readAddress(each, module), item, file, module));
}

function toProxy(key: string, value: ScriptValue, file: string, module: ScriptModule): PageProxy[] {
  const path = toPrefix(key);
  if (path === undefined) return [];
  const target = readPath(value, ['target'], module);
  const rewrites = [...readPath(value, ['rewrite'], module), ...readPath(value, ['pathRewrite'], module)];
  const address = readAddress(value, module) || target.map((each) => readAddress(each, module)).join('');
  return [{ path, target: address, strips: rewrites.some((each) => isStripping(each, module)), file }];
}

/** Finds /api in "/api", "^/api/.*", "/api/:path*" and "/api/**". */
function toPrefix(pattern: string): string | undefined {
  const prefix = /^\^?\(?(\/[\w.~/-]{0,100})/.exec(pattern)?.[1];
  if (prefix === undefined) return undefined;
  return prefix.replace(/\/+$/, '');
}

function isStripping(value: ScriptValue, module: ScriptModule): boolean {
  return resolveValues(value, module).some((each) => {
    if (each.kind === 'function') return each.returned.some((returned) => isStripping(returned, module));
    if (each.kind === 'object') return [...each.fields.values()].some((field) => isEmptyPath(field));
    return each.kind === 'call' && each.call.callee.endsWith('.replace') && isEmptyPath(each.call.args[1]);
  });
}

function isEmptyPath(value: ScriptValue | undefined): boolean {
  return value?.kind === 'literal' && (value.value === '' || value.value === '/');
}

/** Reads a literal address, the default of one that a variable can replace, or as much of it as the text has. */
function readAddress(value: ScriptValue, module: ScriptModule): string {
  const values = resolveValues(value, module);
  const literal = values.find((each) => each.kind === 'literal' && typeof each.value === 'string');
  if (literal?.kind === 'literal') return String(literal.value);
  const other = values.find((each) => each.kind === 'other');
  return other?.kind === 'other' ? other.text.replaceAll(/^[`'"]|[`'"]$/g, '') : '';
}

/** package.json and setupProxy.js of Create React App. */
function readReactProxy(tree: Tree): PageProxy[] {
  const target = readText(parseJson(tree.readFile('package.json')), 'proxy');
  const file = ['src/setupProxy.js', 'src/setupProxy.ts'].find((name) => tree.has(name));
  const text = (file === undefined ? undefined : tree.readFile(file, sourceBytes)) ?? '';
  const paths = [
    ...text.matchAll(/["'](\/[\w/-]{1,80})["']\s{0,9},\s{0,9}(?:createProxyMiddleware|proxy)\(/g),
    ...text.matchAll(/(?:createProxyMiddleware|proxy)\(\s{0,9}["'](\/[\w/-]{1,80})["']/g),
  ].map((match) => match[1] ?? '');
  const address = /target\s{0,3}:\s{0,3}[^\n]{0,80}?["'`](https?:\/\/[^"'`]{1,100})/.exec(text)?.[1] ?? '';
  return [
    ...(target === undefined ? [] : [{ path: '', target, strips: false, file: 'package.json' }]),
    ...paths.map((path) => ({ path, target: address, strips: /pathRewrite/.test(text), file: file ?? '' })),
  ];
}

function readAngularProxy(tree: Tree): PageProxy[] {
  const file = ['proxy.conf.json', 'src/proxy.conf.json', 'proxy.config.json'].find((name) => tree.has(name));
  const parsed = parseJson(file === undefined ? undefined : tree.readFile(file));
  return readKeys(parsed).flatMap((key) => {
    const path = toPrefix(key);
    const rewrite = readField(parsed, key, 'pathRewrite');
    const strips = typeof rewrite === 'object' && rewrite !== null && Object.values(rewrite).includes('');
    return path === undefined
      ? []
      : [{ path, target: readText(parsed, key, 'target') ?? '', strips, file: file ?? '' }];
  });
}

function readServerProxies(tree: Tree): PageProxy[] {
  return [
    ...nextFiles.flatMap((file) => readRewrites(tree, file)),
    ...nuxtFiles.flatMap((file) => readRouteRules(tree, file)),
  ];
}

/** Next.js passes on what its rewrites send to another host. */
function readRewrites(tree: Tree, file: string): PageProxy[] {
  const text = tree.readFile(file, sourceBytes);
  if (text === undefined) return [];
  const module = parseScript(text);
  const lists = readPath(module.exported, ['rewrites'], module)
    .flatMap((value) => resolveValues(value, module, true))
    .flatMap((value) => (value.kind === 'object' ? [...value.fields.values()] : [value]));
  return lists
    .flatMap((value) => (value.kind === 'list' ? value.items : []))
    .flatMap((item) => resolveValues(item, module))
    .flatMap((item): PageProxy[] => {
      if (item.kind !== 'object') return [];
      const [source, destination] = ['source', 'destination'].map((name) => {
        const value = item.fields.get(name);
        return value === undefined ? '' : readAddress(value, module);
      });
      const path = toPrefix(source ?? '');
      // A path on the same server is no proxy.
      if (path === undefined || destination === undefined || destination === '' || destination.startsWith('/'))
        return [];
      return [{ path, target: destination, strips: !destination.includes(`${path}/`), file }];
    });
}

function readRouteRules(tree: Tree, file: string): PageProxy[] {
  const text = tree.readFile(file, sourceBytes);
  if (text === undefined) return [];
  const module = parseScript(text);
  return readPath(module.exported, ['routeRules'], module).flatMap((rules) =>
    rules.kind !== 'object'
      ? []
      : [...rules.fields].flatMap(([key, value]) => {
          const target = readPath(value, ['proxy'], module).map((each) => readAddress(each, module));
          const path = toPrefix(key);
          return path === undefined || target.length === 0
            ? []
            : [{ path, target: target.join(''), strips: !target.join('').includes(`${path}/`), file }];
        }),
  );
}

// Variables and addresses.

/** Prefixes of variables that frameworks write into the pages. */
const publicName = /^(?:VITE|NEXT_PUBLIC|REACT_APP|PUBLIC|VUE_APP|NUXT_PUBLIC|GATSBY|NG_APP)_/;
const publicNames = /\b(?:VITE|NEXT_PUBLIC|REACT_APP|PUBLIC|VUE_APP|NUXT_PUBLIC|GATSBY|NG_APP)_[A-Z][A-Z0-9_]{0,60}\b/g;
const addressName =
  /_(?:API|BACKEND|SERVER|WS|WEBSOCKET|SOCKET|GRAPHQL)(?:_[A-Z]{1,12}){0,2}_?(?:URL|URI|ENDPOINT|ORIGIN|BASE|ADDRESS)$|_(?:FAST_?API|API_SERVER|BACKEND|API)$/;
const samples = [
  '.env.example',
  '.env.sample',
  '.env.template',
  '.env.local.example',
  '.env.development',
  '.env',
  'env.example',
];

/** Returns whether the build of pages writes the value of this variable into them. */
export function isPageVariable(name: string): boolean {
  return publicName.test(name);
}

/** Returns whether a text names such a variable. */
export function hasPageVariable(text: string): boolean {
  return text.search(publicNames) >= 0;
}

/** Returns whether a variable of this name holds the address of an API. */
export function isAddressVariable(name: string): boolean {
  return publicName.test(name) && addressName.test(name);
}

/** Lists the variables of pages that hold the address of an API, by their value or their name. */
function listVariables(tree: Tree, sources: readonly Source[]): PageVariable[] {
  const found = new Map<string, PageVariable>();
  const add = (variable: PageVariable): void => {
    const { value } = found.get(variable.name) ?? {};
    if (value === undefined) found.set(variable.name, variable);
  };
  for (const file of samples)
    for (const [name, value] of parseEnv(tree.readFile(file, 64 * 1024) ?? ''))
      if (publicName.test(name)) add({ name, ...(value === '' ? {} : { value }) });
  for (const { text } of sources)
    for (const [name] of text.matchAll(publicNames)) {
      const value = new RegExp(String.raw`\b${name}\b\s{0,9}(?:\|\||\?\?)\s{0,9}["'\`]([^"'\`]{1,200})["'\`]`).exec(
        text,
      )?.[1];
      add({ name, ...(value === undefined ? {} : { value }) });
    }
  return [...found.values()].filter(
    ({ name, value }) => (value !== undefined && findLocalPort(value) !== undefined) || addressName.test(name),
  );
}

const localAddress = /\b(?:https?|wss?):\/\/(?:localhost|127\.0\.0\.1|0\.0\.0\.0):([0-9]{2,5})\b/g;

/** Finds 8000 in http://localhost:8000/api. */
export function findLocalPort(address: string): number | undefined {
  const [match] = address.matchAll(localAddress);
  return match === undefined ? undefined : Number(match[1]);
}

const fallback = /\|\||\?\?|\benv\b|\bhostname\b|NODE_ENV|isDev|===|\?\s|\bplaceholder\b|\bdefault/i;
const serverPath =
  /(?:^|\/)(?:\+(?:page|layout)\.server|\+server|hooks\.server|route|middleware|instrumentation)\.[jt]sx?$|(?:^|\/)(?:pages\/api|app\/api|server)\//;
const serverText =
  /["']use server["']|\bgetServerSideProps\b|\bgetStaticProps\b|["']server-only["']|export default async function/;

/** Ollama, on a visitor's own machine. Ports of other model servers are those of many APIs, too. */
const ollamaPort = 11_434;

function listAddresses(path: string, text: string): PageAddress[] {
  const isOfServer = serverPath.test(path) || serverText.test(text);
  return text.split('\n').flatMap((line, index) => {
    if (/^\s{0,200}(?:\/\/|\*|\/\*|#)/.test(line)) return [];
    const ports = [...line.matchAll(localAddress)].map(([, port]) => Number(port));
    return ports
      .filter((port) => port !== ollamaPort)
      .map((port) => ({
        port,
        file: path,
        line: index + 1,
        isFallback: fallback.test(line),
        isOfServer,
      }));
  });
}

/** Lists the first parts of the paths that pages call: /api of /api/users. */
export function listFirstParts(paths: readonly string[]): string[] {
  return [...new Set(paths.map((path) => `/${path.split('/')[1] ?? ''}`))].filter((path) => path !== '/');
}

/** Returns whether the folder holds pages for a browser, by the packages of its manifest. */
export function hasPageFramework(tree: Tree): boolean {
  const manifest = parseJson(tree.readFile('package.json'));
  const names = new Set([...readKeys(manifest, 'dependencies'), ...readKeys(manifest, 'devDependencies')]);
  return (
    pagePackages.some((name) => names.has(name)) ||
    ['Trunk.toml', 'src/index.html', ...viteFiles, ...nextFiles].some((name) => tree.has(name)) ||
    (tree.has('index.html') && !tree.entries.some((each) => serverFile.test(posix.basename(each.path))))
  );
}

/** Returns whether its build leaves files alone, so that nothing of the repository runs on a server. */
export function isBuiltToFiles(tree: Tree): boolean {
  const manifest = parseJson(tree.readFile('package.json'));
  const names = [...readKeys(manifest, 'dependencies'), ...readKeys(manifest, 'devDependencies')];
  return !names.some((name) => pageServers.test(name));
}

const pageServers =
  /^(?:next|nuxt|@sveltejs\/kit|astro|@remix-run\/.*|@react-router\/node|express|fastify|koa|hono|@nestjs\/core|@analogjs\/.*|@angular\/ssr|@tanstack\/(?:react-)?start)$/;
const serverFile = /^(?:requirements\.txt|pyproject\.toml|go\.mod|pom\.xml|Gemfile|composer\.json)$/;
const pagePackages = [
  ...['react', 'next', 'vue', 'nuxt', 'svelte', '@sveltejs/kit', '@angular/core', 'astro', 'solid-js', 'preact'],
  ...['react-scripts', 'vite', 'gatsby', '@remix-run/react', 'parcel', 'ember-source', 'lit'],
];
