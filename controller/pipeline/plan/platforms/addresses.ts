// Finds the component that an address or a variable leads to: by its host name, a port of the developer's machine, or the name of
// the variable.
import type { DeclaredVariable } from './declaration.ts';
import {
  findLocalPort,
  isAddressVariable,
  isPageVariable,
  listFirstParts,
  type PageCalls,
  type PageProxy,
} from './page-calls.ts';

/** A process of the app, before it is known how it is reached. */
export interface Part {
  readonly name: string;
  readonly kind: 'web' | 'worker' | 'task';
  /** Folder of its source. */
  readonly folder: string;
  /** Port in its container. */
  readonly port?: number | undefined;
  /** Ports on the machine of its developer. */
  readonly published: readonly number[];
  /** Names at which the others reach it. */
  readonly hosts: readonly string[];
  readonly env: readonly DeclaredVariable[];
  /** Variables of its environment without a value. */
  readonly unset?: readonly string[];
  readonly args: readonly DeclaredVariable[];
  /** Names of parts. */
  readonly dependsOn: readonly string[];
  /** It runs the image of another part, with another command. */
  readonly isSecondary?: boolean;
  /** How its pages reach the others; absent: it has no pages for a browser. */
  readonly calls?: PageCalls;
  /** Its pages are served as files: no code of the repository runs on the server. */
  readonly isStatic?: boolean;
  /** Arguments that its Dockerfile declares; absent: Moorage plans its build. */
  readonly buildArguments?: ReadonlySet<string>;
  /** Moorage can plan its build without the Dockerfile. */
  readonly canBePlanned?: boolean;
}

/** Lists what the development server of the pages passes on to the part, and the server of the pages does not. */
export function listProxies(page: Part, part: Part, parts: readonly Part[]): PageProxy[] {
  const { development = [], server = [], paths = [] } = page.calls ?? {};
  if (page === part) return [];
  return development
    .filter((each) => isTarget(each.target, part, page, parts) && !server.some(({ path }) => path === each.path))
    .flatMap((each) => (each.path === '' ? listFirstParts(paths).map((path) => ({ ...each, path })) : [each]));
}

/** Returns whether an address is that of the part. One that says too little means the only other one that can answer. */
function isTarget(address: string, part: Part, page: Part, parts: readonly Part[]): boolean {
  const port = findLocalPort(address);
  const hasPort = (each: Part): boolean => port !== undefined && (each.published.includes(port) || each.port === port);
  if (hasPort(part) || part.hosts.some((host) => address.includes(`//${host}:`))) return true;
  const others = parts.filter((each) => each !== page && each.kind !== 'task' && each.port !== undefined);
  return !others.some(hasPort) && others.length === 1 && others[0] === part;
}

/** Returns whether the server of the pages passes requests on to the part. */
export function isServing(page: Part, part: Part, parts: readonly Part[]): boolean {
  return page.calls?.server.some(({ target }) => isTarget(target, part, page, parts)) === true;
}

export interface Naming {
  readonly of: string;
  readonly name: string;
  /** Path of the address, without a slash at its end. */
  readonly path: string;
}

/** Lists the variables through which browsers are sent to the part. */
export function listNamings(part: Part, parts: readonly Part[]): Naming[] {
  return parts.flatMap((each) =>
    listValues(each)
      .filter(({ name, value }) => each !== part && findNamed(each, name, value, parts) === part)
      // Pages whose own server passes requests on read no address, unless their build gets one.
      .filter(
        ({ name }) =>
          !(each.isStatic === true && isServing(each, part, parts)) || each.buildArguments?.has(name) !== false,
      )
      .map(({ name, value }) => ({ of: each.name, name, path: readUrlPath(value).replace(/\/+$/, '') })),
  );
}

/** The variables of a part, with those that its pages read and nothing sets. */
export function listValues({ env, args, unset = [], calls }: Part): DeclaredVariable[] {
  const names = new Set([...env, ...args].map(({ name }) => name));
  const ofPages = (calls?.variables ?? []).map(({ name, value = '' }) => ({
    name,
    value: findLocalPort(value) === undefined ? '' : value,
  }));
  const missing = unset.filter(isAddressVariable).map((name) => ({ name, value: '' }));
  const added = [...ofPages, ...missing].filter(({ name }) => !names.has(name));
  return [...env, ...args, ...new Map(added.map((each) => [each.name, each])).values()];
}

/** An address, with its host, port and path. */
export const address = /\b(?:https?|wss?):\/\/([\w.-]{1,100})(?::([0-9]{1,5}))?((?:\/[^\s,"'?#]{0,300})?)/;
/** Variables with the address on which a server itself listens. */
const ofListener = /^(?:ASPNETCORE_URLS|DOTNET_URLS)$|BIND|LISTEN/i;
/** The host of a developer's machine. */
export const ofMachine = /^(?:localhost|127\.0\.0\.1|0\.0\.0\.0)$/;

export function readUrlPath(value: string): string {
  return address.exec(value)?.[3] ?? '';
}

/** Finds the part that the address in a value leads browsers to. */
export function findNamed(own: Part, name: string, value: string, parts: readonly Part[]): Part | undefined {
  if (value === '') return isAddressVariable(name) ? findOnlyServer(own, parts) : undefined;
  const [, host = '', port] = address.exec(value) ?? [];
  if (!ofMachine.test(host)) return isPageVariable(name) ? parts.find(({ hosts }) => hosts.includes(host)) : undefined;
  if (isOwnListener(name, host)) return undefined;
  const found = findByPort(Number(port ?? 80), parts);
  const isOfPages = own.calls !== undefined && isPageVariable(name);
  return found ?? (isOfPages ? findByName(own, name, parts) : undefined);
}

/** Returns whether a value is the address on which a server itself listens. */
function isOwnListener(name: string, host: string): boolean {
  return ofListener.test(name) || (host === '0.0.0.0' && !isPageVariable(name));
}

function findByPort(number: number, parts: readonly Part[]): Part | undefined {
  const isListening = ({ kind, port }: Part): boolean => kind !== 'task' && port === number;
  return parts.find(({ published }) => published.includes(number)) ?? parts.find(isListening);
}

/** Finds the part that a variable of pages is named after; one that names no API means the pages themselves. */
function findByName(own: Part, name: string, parts: readonly Part[]): Part | undefined {
  if (isAddressVariable(name)) return findOnlyServer(own, parts);
  const [, word = ''] = /_([A-Z0-9]{1,30})_(?:URL|URI|ORIGIN|ADDRESS)$/.exec(name) ?? [];
  return parts.find((each) => each.name === word.toLowerCase()) ?? own;
}

export function findOnlyServer(own: Part, parts: readonly Part[]): Part | undefined {
  const others = parts.filter((each) => each !== own && each.kind === 'web' && each.calls === undefined);
  return others.length === 1 ? others[0] : undefined;
}
