// Admits visitors to a protected app: by a key that the request carries, or by a session that its sign-in page began. Requests
// that are not admitted reach no app, wake none and count as no use.
import { createHmac } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';
import {
  accessHeader,
  hashAccessKey,
  isAccessKey,
  verifyAccessPassword,
  type AccessCredential,
  type AccessPolicy,
} from '../crds/access.ts';
import { derivePurposeKey, isSameSecret } from '../lib/sealed-text.ts';
import type { AppView, Directory } from './directory.ts';

/** The prefix keeps other hosts, such as other apps of the same domain, from setting it. */
export const sessionCookie = '__Host-moorage-visit';
export const sessionSeconds = 8 * 60 * 60;

/** The parts of a request that admission depends on. */
export interface VisitorRequest {
  readonly method?: string | undefined;
  readonly headers: IncomingHttpHeaders;
}

export type Verdict =
  /** `credential`: hash of what opened the app; undefined if anyone may visit it. */
  | { readonly kind: 'admitted'; readonly credential: string | undefined }
  /** The request has nothing that opens the app. */
  | { readonly kind: 'missing' }
  /** It has a key that does not open the app. */
  | { readonly kind: 'wrong' };

/** Checks a request without a look at its body. */
export function judgeVisitor(
  request: VisitorRequest,
  app: AppView,
  { directory, sessions }: { readonly directory: Pick<Directory, 'find'>; readonly sessions: Sessions },
): Verdict {
  const { access: policy } = app.view;
  if (policy === undefined) return { kind: 'admitted', credential: undefined };
  const key = readKey(request.headers);
  if (key !== undefined) {
    const found = findKey(policy, key);
    return found === undefined ? { kind: 'wrong' } : { kind: 'admitted', credential: found.hash };
  }
  const session = isFromElsewhere(request, app, directory) ? undefined : sessions.find(request.headers, app, policy);
  return session === undefined ? { kind: 'missing' } : { kind: 'admitted', credential: session.hash };
}

/** Whether a visitor who was admitted may stay after the policy has changed. */
export function isStillAdmitted(credential: string | undefined, policy: AccessPolicy | undefined): boolean {
  return policy === undefined || policy.credentials.some(({ hash }) => hash === credential);
}

/** A key counts in headers alone: URLs end up in logs, histories and Referer headers. */
function readKey(headers: IncomingHttpHeaders): string | undefined {
  const own = headers[accessHeader];
  if (own !== undefined) return String(own).trim();
  const bearer = /^Bearer +(\S+)$/i.exec((headers.authorization ?? '').trim())?.[1];
  return bearer !== undefined && isAccessKey(bearer) ? bearer : undefined;
}

export function findKey({ credentials }: AccessPolicy, key: string): AccessCredential | undefined {
  const hash = hashAccessKey(key);
  return credentials.filter(({ kind }) => kind === 'key').find((credential) => isSameSecret(credential.hash, hash));
}

/**
 * Whether a page of another origin made the request. Other apps of the same domain count as the same site for cookies, so
 * SameSite does not keep their pages from using a visitor's session. Opening a link is allowed.
 */
function isFromElsewhere(
  { method, headers }: VisitorRequest,
  app: AppView,
  directory: Pick<Directory, 'find'>,
): boolean {
  const { origin } = headers;
  if (origin !== undefined) return !isOwnOrigin(origin, app, directory);
  const from = headers['sec-fetch-site'];
  if (from === undefined || from === 'same-origin' || from === 'none') return false;
  const isLink =
    (method === 'GET' || method === 'HEAD') &&
    headers['sec-fetch-mode'] === 'navigate' &&
    headers['sec-fetch-dest'] === 'document';
  return !isLink;
}

/** Whether an Origin header names a host of this app. */
export function isOwnOrigin(origin: string, app: AppView, directory: Pick<Directory, 'find'>): boolean {
  const host = URL.parse(origin)?.host;
  return host !== undefined && directory.find(host)?.app.metadata.uid === app.metadata.uid;
}

// Sessions

export interface Sessions {
  /** The value of the header Set-Cookie. */
  begin(app: AppView, credential: AccessCredential): string;
  /** The credential that began the session in a request; undefined if there is no valid one. */
  find(headers: IncomingHttpHeaders, app: AppView, policy: AccessPolicy): AccessCredential | undefined;
}

/**
 * Creates sessions that nobody stores: the time of their end, signed together with the app and the hash of what opened it.
 * Another password or the removal of a key therefore ends them.
 *
 * @param secret all replicas have the same one
 */
export function createSessions(secret: string, now: () => number = Date.now): Sessions {
  const key = derivePurposeKey(secret, 'moorage visitor sessions');
  const sign = (app: AppView, { hash }: AccessCredential, end: number): string =>
    createHmac('sha256', key)
      .update(JSON.stringify([app.metadata.uid, hash, end]))
      .digest('base64url');
  return {
    begin(app, credential) {
      const end = Math.floor(now() / 1000) + sessionSeconds;
      const value = `${end}.${sign(app, credential, end)}`;
      return `${sessionCookie}=${value}; Path=/; Secure; HttpOnly; SameSite=Lax; Max-Age=${sessionSeconds}`;
    },
    find({ cookie = '' }, app, { credentials }) {
      return readCookies(cookie)
        .map((value) => /^(\d{10,11})\.([A-Za-z0-9_-]{43})$/.exec(value))
        .filter((match) => match !== null && Number(match[1]) * 1000 > now())
        .flatMap(
          (match) =>
            credentials.find((each) => isSameSecret(match?.[2] ?? '', sign(app, each, Number(match?.[1])))) ?? [],
        )[0];
    },
  };
}

/** A client may send many cookies of this name, and each costs signatures. */
const maximumCookies = 4;

function readCookies(header: string): string[] {
  return header
    .split(';')
    .map((pair) => pair.trim())
    .filter((pair) => pair.startsWith(`${sessionCookie}=`))
    .map((pair) => pair.slice(sessionCookie.length + 1))
    .slice(0, maximumCookies);
}

/** The header Cookie without the session; undefined if nothing else is in it. */
export function removeSession(header: string): string | undefined {
  const others = header.split(';').filter((pair) => !pair.trim().startsWith(`${sessionCookie}=`));
  return others.every((pair) => pair.trim() === '') ? undefined : others.join(';').trim();
}

// Passwords

export type PasswordAnswer =
  | { readonly kind: 'right' | 'wrong' }
  /** It is wrong, and so were many before it; or too many of this network wait to be checked. */
  | { readonly kind: 'limited'; readonly retryAfter: number };

const windowMs = 60_000;
const maximumWrong = 10;
const maximumWaiting = 20;
/** Each check takes a core for a fifth of a second, and 16 MiB. */
const checksAtOnce = 2;
const maximumNetworks = 10_000;

interface Network {
  /** Times of wrong passwords, the oldest first. */
  wrong: number[];
  waiting: number;
  /** Settles when the last check of this network is over. */
  tail: Promise<unknown>;
}

export interface PasswordChecksOptions {
  readonly now?: () => number;
  readonly sleep?: (ms: number) => Promise<void>;
  readonly verify?: typeof verifyAccessPassword;
}

/**
 * Checks passwords, those of one network one after another. After ten wrong ones within a minute, a network gets one check a
 * second and its wrong passwords are answered as limited. The right one is accepted all the same: a stranger in a visitor's
 * network must not keep the visitor out.
 */
export class PasswordChecks {
  readonly #networks = new Map<string, Network>();
  readonly #options: Required<PasswordChecksOptions>;
  #free = checksAtOnce;
  readonly #queue: (() => void)[] = [];

  constructor({
    now = Date.now,
    sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms)),
    verify = verifyAccessPassword,
  }: PasswordChecksOptions = {}) {
    this.#options = { now, sleep, verify };
  }

  async check(network: string, password: string, hash: string): Promise<PasswordAnswer> {
    const entry = this.#getNetwork(network);
    if (entry.waiting >= maximumWaiting) return { kind: 'limited', retryAfter: maximumWaiting };
    entry.waiting += 1;
    const answer = entry.tail.then(() => this.#checkNext(entry, password, hash));
    entry.tail = answer.catch(() => undefined);
    return answer.finally(() => {
      entry.waiting -= 1;
    });
  }

  async #checkNext(entry: Network, password: string, hash: string): Promise<PasswordAnswer> {
    if (this.#listWrong(entry).length >= maximumWrong) await this.#options.sleep(1_000);
    if (await this.#runInTurn(() => this.#options.verify(password, hash))) return { kind: 'right' };
    const [oldest = 0, ...others] = this.#listWrong(entry);
    const isLimited = others.length + 1 >= maximumWrong;
    entry.wrong = [...(isLimited ? others : entry.wrong), this.#options.now()];
    if (!isLimited) return { kind: 'wrong' };
    return { kind: 'limited', retryAfter: Math.max(1, Math.ceil((oldest + windowMs - this.#options.now()) / 1000)) };
  }

  #listWrong(entry: Network): number[] {
    entry.wrong = entry.wrong.filter((time) => this.#options.now() - time < windowMs);
    return entry.wrong;
  }

  #getNetwork(network: string): Network {
    const existing = this.#networks.get(network);
    if (existing !== undefined) return existing;
    if (this.#networks.size >= maximumNetworks)
      for (const [name, entry] of this.#networks)
        if (entry.waiting === 0 && this.#listWrong(entry).length === 0) this.#networks.delete(name);
    const entry: Network = { wrong: [], waiting: 0, tail: Promise.resolve() };
    this.#networks.set(network, entry);
    return entry;
  }

  async #runInTurn<T>(work: () => Promise<T>): Promise<T> {
    if (this.#free === 0) await new Promise<void>((resolve) => this.#queue.push(resolve));
    else this.#free -= 1;
    try {
      return await work();
    } finally {
      const next = this.#queue.shift();
      if (next === undefined) this.#free += 1;
      else next();
    }
  }
}
