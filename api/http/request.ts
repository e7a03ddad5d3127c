// Reads what callers send: JSON and form bodies within a limit, fields of a query, and who they are. Rejects forms of other sites
// and keys in URLs. Callers are identified by keyed hashes, which cannot be turned back into an address or a key.
import type { IncomingMessage } from 'node:http';
import { createHmac } from 'node:crypto';
import { isIP, isIPv4, type BlockList } from 'node:net';
import getRawBody from 'raw-body';
import { Problem } from '../../lib/problem.ts';
import { bodyTooLarge, foreignForm, keyInQuery, malformedRequest, unsupportedMediaType } from './problems.ts';
import { createValidationProblem } from './endpoint.ts';

/** Body limit in bytes for requests with a file in base64: 3 MB of it, and the fields next to it. */
export const fileBodyLimit = 4_500_000;

/** Parses a JSON body. @throws Problem (body-too-large, unsupported-media-type, invalid-request, malformed-request) */
export async function readJsonBody(request: IncomingMessage, limit: number): Promise<unknown> {
  assertUncompressed(request);
  const bytes = await readBytes(request, limit);
  if (bytes.length === 0) throw createBodyProblem('is empty', 'Send a JSON object.');
  assertJsonMediaType(request.headers['content-type']);
  return parseJson(bytes);
}

/** Reads a body of any type as it was sent; it may be empty. @throws Problem (body-too-large, unsupported-media-type, malformed-request) */
export async function readRawBody(request: IncomingMessage, limit: number): Promise<Uint8Array> {
  assertUncompressed(request);
  return readBytes(request, limit);
}

function assertJsonMediaType(contentType: string | undefined): void {
  const [type = '', ...parameters] = (contentType ?? '')
    .toLowerCase()
    .split(';')
    .map((part) => part.trim());
  const charset = parameters
    .find((parameter) => parameter.startsWith('charset='))
    ?.slice('charset='.length)
    .replaceAll('"', '');
  if (!/^application\/(json|[a-z0-9.+-]+\+json)$/.test(type)) {
    const found =
      contentType === undefined
        ? 'The request has no Content-Type header.'
        : `The Content-Type ${contentType.slice(0, 100)} is not supported.`;
    throw createUnsupportedMediaType(`${found} Send JSON with Content-Type: application/json.`);
  }
  if (charset !== undefined && charset !== 'utf-8' && charset !== 'utf8')
    throw createUnsupportedMediaType(`The charset ${charset.slice(0, 40)} is not supported. Send JSON in UTF-8.`);
}

function parseJson(bytes: Buffer): unknown {
  let text: string;
  try {
    text = new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    throw createBodyProblem('is not valid UTF-8', 'Send JSON in UTF-8.');
  }
  try {
    return JSON.parse(text) as unknown;
  } catch (error) {
    // The engine's message quotes the body around the syntax error, which is exactly what its author needs.
    throw createBodyProblem(
      `is not valid JSON: ${error instanceof Error ? error.message.slice(0, 200) : 'malformed'}`,
      'Send one JSON object, with double quotes and without a trailing comma.',
    );
  }
}

function createBodyProblem(message: string, fix: string): Problem {
  return createValidationProblem([{ in: 'body', field: '', message, fix }]);
}

const formType = 'application/x-www-form-urlencoded';

/**
 * Parses the body of a form that one of our pages sent.
 * @throws Problem (foreign-form, body-too-large, unsupported-media-type, malformed-request)
 */
export async function readFormBody(request: IncomingMessage, limit: number): Promise<RequestFields> {
  // Any page can make a browser send a form, and a form here spends the visitor's quota. Hosted apps answer on subdomains
  // of this site, so being on the same site is not enough. A client that sends neither header is not a browser.
  const { origin, host, 'sec-fetch-site': site } = request.headers;
  if (isCrossOrigin({ origin, host, site: [site].flat()[0] }))
    throw new Problem(foreignForm, 'This form was sent from another site. Open the page here and send it again.');
  assertUncompressed(request);
  const [contentType] = (request.headers['content-type'] ?? '').toLowerCase().split(';', 1);
  if (contentType?.trim() !== formType)
    throw new Problem(
      unsupportedMediaType,
      `This is the address of a form. Send its fields as ${formType}, or use the API.`,
      { headers: { accept: formType } },
    );
  return groupFields(new URLSearchParams((await readBytes(request, limit)).toString('utf8')));
}

/** Whether a page of another site, or an app on a subdomain of this one, made the browser send this request. */
export function isCrossOrigin({
  origin,
  host,
  site,
}: Readonly<Record<'origin' | 'host' | 'site', string | undefined>>): boolean {
  if (site !== undefined) return site !== 'same-origin' && site !== 'none';
  return origin !== undefined && !(URL.canParse(origin) && new URL(origin).host === host);
}

function assertUncompressed({ headers }: IncomingMessage): void {
  const encoding = headers['content-encoding'];
  if (encoding !== undefined && encoding.toLowerCase() !== 'identity')
    throw createUnsupportedMediaType('The body is compressed. Send it without Content-Encoding.');
}

function createUnsupportedMediaType(detail: string): Problem {
  return new Problem(unsupportedMediaType, detail, { headers: { accept: 'application/json' } });
}

async function readBytes(request: IncomingMessage, limit: number): Promise<Buffer> {
  try {
    return await getRawBody(request, { limit, length: request.headers['content-length'] ?? null });
  } catch (error) {
    if (!(error instanceof Error && 'type' in error)) throw error;
    if (error.type === 'entity.too.large')
      throw new Problem(bodyTooLarge, `The body is larger than the limit of ${limit} bytes. Send a smaller body.`, {
        members: { limit_bytes: limit },
      });
    throw new Problem(malformedRequest, 'The request ended before its body was complete. Send it again.', {
      cause: error,
    });
  }
}

/** Fields of a query or form by name. A field that was sent several times holds all its values. */
export type RequestFields = Record<string, string | string[]>;

export function groupFields(params: URLSearchParams): RequestFields {
  const entries = [...new Set(params.keys())].map((name): [string, string | string[]] => {
    const values = params.getAll(name);
    const [first] = values;
    return [name, values.length === 1 && first !== undefined ? first : values];
  });
  return Object.fromEntries(entries);
}

const keyForm = /^[\x21-\x7e]{1,255}$/;

/** The Idempotency-Key of a request; undefined without one. @throws Problem (invalid-request) */
export function readIdempotencyKey(headers: Headers): string | undefined {
  const key = headers.get('idempotency-key');
  if (key === null) return undefined;
  if (!keyForm.test(key))
    throw createValidationProblem([
      {
        in: 'header',
        field: 'Idempotency-Key',
        message: 'must be 1 to 255 visible ASCII characters',
        fix: 'Send a UUID.',
      },
    ]);
  return key;
}

const keyParameters = /^(api[-_]?key|access[-_]?token|authorization|bearer)$/i;

/** Rejects keys in URLs, which end up in logs and histories. @throws Problem (key-in-query) with the parameter's name only */
export function rejectKeysInQuery(query: Readonly<RequestFields>): void {
  for (const [name, value] of Object.entries(query))
    if (keyParameters.test(name) || [value].flat().some(hasKeyInside))
      throw new Problem(
        keyInQuery,
        `Query parameter "${name.slice(0, 40)}" contains a key. Send it in a header instead (Authorization: Bearer sk-…), and revoke the key that you sent.`,
      );
}

/** The value of an Authorization header, or the token of a hosted app. */
const credentials = /^(bearer\s+sk-\S|(bearer\s+)?moorage-[a-z0-9-]+\.[\w-]{43}$)/i;
/** Possible model router keys anywhere in a text: routers generate at least 20 characters. */
const keyCandidates = /(?<![\w-])sk-([\w-]{20,})/g;

/** Names begin with `sk-` too: SK-II, sk-SK, sk-learn. A key is long and random. */
function hasKeyInside(value: string): boolean {
  if (credentials.test(value.trim())) return true;
  return [...value.matchAll(keyCandidates)].some(([, secret = '']) => isRandom(secret));
}

/** Any random key of that length has more distinct characters. */
const minDistinct = 8;
/** A part of a text that people write, such as `notes`, `Q3`, `2026`, `RandomForest`. Random text rarely looks like it. */
const word = /^(?:\d+|[a-z]+|[A-Z]+|(?:[A-Z]?[a-z]{2,})(?:[A-Z][a-z]{2,})*|[A-Za-z0-9]{1,3})$/;

function isRandom(text: string): boolean {
  if (new Set(text).size < minDistinct) return false;
  return !text
    .split(/[-_]+/)
    .filter((part) => part !== '')
    .every((part) => word.test(part));
}

/** A caller, known only by hashes. They are valid label values. */
export interface Caller {
  readonly kind: 'address' | 'key';
  readonly hash: string;
  /** Hash of the wider network that the caller is in, also for callers with a key. */
  readonly network: string;
  /** For an IPv6 address without a key: hash of its /64, the smallest network that one customer gets. */
  readonly subnet?: string | undefined;
}

/** The parts of a request that identify its caller. */
export interface CallerAttributes {
  /** Remote address of the connection. */
  readonly peer: string | undefined;
  /** Header X-Forwarded-For. */
  readonly forwardedFor: string | undefined;
  /** Header Authorization. */
  readonly authorization: string | undefined;
}

/** How to distinguish callers. */
export interface CallerRules {
  readonly salt: string;
  /** Proxies whose X-Forwarded-For is trusted. */
  readonly trustedProxies: BlockList;
  /**
   * Whether a bearer key is real. Without this check every key is ignored: callers could invent a new key for each
   * request and be a new caller each time.
   */
  readonly isGenuineKey?: (key: string) => boolean;
}

/** Identifies the caller by a genuine bearer key, else by the prefix of the client's address. */
export function identifyCaller(request: CallerAttributes, rules: CallerRules): Caller {
  const address = resolveClientAddress(request.peer, request.forwardedFor, rules.trustedProxies);
  const network = hashPrefix('network', toNetworkPrefix(address), rules.salt);
  const key = /^Bearer ([^\s]+)$/i.exec(request.authorization ?? '')?.[1];
  if (key !== undefined && rules.isGenuineKey?.(key) === true)
    return { kind: 'key', hash: computeKeyedHash(`key:${key}`, rules.salt), network };
  const subnet = isIP(address) === 6 ? hashPrefix('subnet', toSubnetPrefix(address), rules.salt) : undefined;
  return { kind: 'address', hash: hashAnonymousCaller(address, rules.salt), network, subnet };
}

/** Hashes the address of a caller without a key. */
export function hashAnonymousCaller(address: string, salt: string): string {
  return hashPrefix('address', toAddressPrefix(address), salt);
}

/** Resolves the client's address: the last hop that is not itself a trusted proxy. */
export function resolveClientAddress(
  peer: string | undefined,
  forwardedFor: string | undefined,
  trusted: BlockList,
): string {
  let client = normalizeAddress(peer ?? '');
  const hops = (forwardedFor ?? '')
    .split(',')
    .map((hop) => normalizeAddress(hop.trim()))
    .reverse();
  for (const hop of hops) {
    if (!isTrusted(client, trusted) || isIP(hop) === 0) break;
    client = hop;
  }
  return client;
}

/** Returns the network that counts as one caller, about one home or host: /24 of IPv4, /56 of IPv6. */
export function toAddressPrefix(address: string): string {
  if (isIPv4(address)) return `${address.split('.').slice(0, 3).join('.')}.0/24`;
  if (isIP(address) === 0) return 'unknown';
  const [a = 0, b = 0, c = 0, d = 0] = parseIpv6Groups(address);
  return `${[a, b, c, d & 0xff00].map((group) => group.toString(16)).join(':')}::/56`;
}

/** Returns the largest network that one customer may have: /24 of IPv4, /48 of IPv6. */
export function toNetworkPrefix(address: string): string {
  if (isIP(address) !== 6) return toAddressPrefix(address);
  const [a = 0, b = 0, c = 0] = parseIpv6Groups(address);
  return `${[a, b, c].map((group) => group.toString(16)).join(':')}::/48`;
}

function toSubnetPrefix(address: string): string {
  return `${parseIpv6Groups(address)
    .slice(0, 4)
    .map((group) => group.toString(16))
    .join(':')}::/64`;
}

/** Hashes of recent addresses, because the same ones call again and again. */
const recent = new Map<string, string>();
const maxRecent = 4_096;

function hashPrefix(kind: 'address' | 'network' | 'subnet', prefix: string, salt: string): string {
  const cacheKey = `${salt} ${kind} ${prefix}`;
  const known = recent.get(cacheKey);
  if (known !== undefined) return known;
  const hash = computeKeyedHash(`${kind}:${prefix}`, salt);
  if (recent.size >= maxRecent) recent.clear();
  recent.set(cacheKey, hash);
  return hash;
}

/** Computes an HMAC, which takes the salt to compute. */
export function computeKeyedHash(text: string, salt: string): string {
  return createHmac('sha256', salt).update(text).digest('hex').slice(0, 32);
}

function isTrusted(address: string, trusted: BlockList): boolean {
  const version = isIP(address);
  return version !== 0 && trusted.check(address, version === 6 ? 'ipv6' : 'ipv4');
}

/** Removes a port, brackets, a zone, and the IPv6 prefix of a mapped IPv4 address. */
function normalizeAddress(text: string): string {
  const bare = /^\[(.*)\](?::\d+)?$/.exec(text)?.[1] ?? /^(\d+\.\d+\.\d+\.\d+):\d+$/.exec(text)?.[1] ?? text;
  const zoneless = bare.replace(/%.*$/, '');
  if (isIP(zoneless) !== 6) return zoneless;
  const parts = parseIpv6Groups(zoneless);
  const mapped = parts.slice(0, 5).every((group) => group === 0) && parts[5] === 0xffff;
  return mapped
    ? parts
        .slice(6)
        .flatMap((group) => [group >> 8, group & 255])
        .join('.')
    : zoneless;
}

/** The eight 16-bit groups of a valid IPv6 address. */
function parseIpv6Groups(address: string): number[] {
  const [head = '', tail] = new URL(`http://[${address}]/`).hostname.slice(1, -1).split('::');
  const read = (part: string): number[] =>
    part === '' ? [] : part.split(':').map((group) => Number.parseInt(group, 16));
  const [first, last] = [read(head), read(tail ?? '')];
  return [...first, ...new Array<number>(8 - first.length - last.length).fill(0), ...last];
}

export interface FailureCounterOptions {
  /** Failures within the window after which nothing more is accepted. */
  readonly maximum: number;
  readonly windowMs: number;
  readonly now?: (() => number) | undefined;
}

/** Counts failures by name, such as that of a network, within a moving window. It keeps the names of recent ones only. */
export class FailureCounter {
  readonly #options: FailureCounterOptions;
  readonly #times = new Map<string, number[]>();

  constructor(options: FailureCounterOptions) {
    this.#options = options;
  }

  /** Milliseconds until this name may try again; undefined if it may now. */
  findWaitMs(name: string): number | undefined {
    const { maximum, windowMs } = this.#options;
    const times = this.#listRecent(name);
    const [oldest] = times;
    return oldest === undefined || times.length < maximum ? undefined : oldest + windowMs - this.#now();
  }

  count(name: string): void {
    for (const known of [...this.#times.keys()]) this.#listRecent(known);
    this.#times.set(name, [...this.#listRecent(name), this.#now()]);
  }

  #listRecent(name: string): readonly number[] {
    const times = (this.#times.get(name) ?? []).filter((time) => this.#now() - time < this.#options.windowMs);
    if (times.length === 0) this.#times.delete(name);
    else this.#times.set(name, times);
    return times;
  }

  #now(): number {
    return (this.#options.now ?? Date.now)();
  }
}
