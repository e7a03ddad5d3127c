// A record of a gateway: one request, read out of the attributes that Traefik gives its access log.
import { createHash } from 'node:crypto';
import type { Attributes, AttributeValue } from '../otlp/messages.ts';

/** One request, as its gateway reports it. */
export interface GatewayRecord {
  /** Number of the request since the gateway process started; the first is 1. */
  readonly counter: bigint;
  /** When it began and ended, in nanoseconds since 1970. */
  readonly startNs: bigint;
  readonly endNs: bigint;
  readonly host: string;
  /** Without its query, which may hold anything. */
  readonly path: string;
  readonly method: string;
  readonly status: number;
  readonly bytesIn: number;
  readonly bytesOut: number;
  /** Address of the client, or what proxies in front say of it. */
  readonly client: string;
  readonly userAgent: string;
  /** What the browser wants it for (Sec-Fetch-Dest): document, script, image, … */
  readonly destination: string;
  /** Who answered in place of the app: the page of an app that is being woken. */
  readonly wake: string;
  /** No record, but the word of its sender that it and those before it were dropped. */
  readonly isLost: boolean;
}

const nanosecond = 1_000_000n;
const instant = /^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?(Z|[+-]\d\d:\d\d)$/;
/** The last second that was read: many records are of one. */
let known = { second: '', ms: Number.NaN };

/** An RFC 3339 time to the nanosecond, as in Traefik's JSON; undefined for anything else. */
export function nanosecondsOf(text: string): bigint | undefined {
  const [, seconds, fraction = '', zone = ''] = instant.exec(text) ?? [];
  if (seconds === undefined) return undefined;
  const second = `${seconds}${zone}`;
  if (known.second !== second) known = { second, ms: Date.parse(second) };
  return Number.isNaN(known.ms) ? undefined : BigInt(known.ms) * nanosecond + BigInt(fraction.padEnd(9, '0'));
}

/** Longest text that is kept of each attribute; the rest is cut off. */
const texts = {
  RequestHost: 253,
  RequestPath: 2_000,
  RequestMethod: 20,
  ClientHost: 1_000,
  'request_User-Agent': 300,
  'request_Sec-Fetch-Dest': 40,
  'downstream_Moorage-Activator': 40,
} as const;
const sizes = ['RequestContentSize', 'DownstreamContentSize'] as const;
const lost = 'moorage.lost';

/**
 * The attributes that are read; a sender needs to give no others. Names as in Traefik's access log; StartUTC is a text in
 * its JSON, nanoseconds where it exports OTLP itself.
 */
export const attributeNames: readonly string[] = [
  'RequestCount',
  'StartUTC',
  'Duration',
  'DownstreamStatus',
  ...Object.keys(texts),
  ...sizes,
  lost,
];

/**
 * Reads a record. A schema would take ten times as long, for each of thousands of records a second: each field is checked
 * by hand. @returns the names of the attributes that are missing or wrong where it is none
 */
export function readRecord(given: Attributes): GatewayRecord | { readonly wrong: readonly string[] } {
  const counter = wholeOf(given['RequestCount']);
  const startNs = startOf(given['StartUTC']);
  const duration = wholeOf(given['Duration']);
  const status = statusOf(given['DownstreamStatus']);
  const isCounted = counter !== undefined && counter > 0n;
  if (!isCounted || startNs === undefined || duration === undefined || status === undefined || !isWell(given))
    return { wrong: wrongOf(given) };
  return {
    counter,
    startNs,
    endNs: startNs + duration,
    host: textOf(given, 'RequestHost').toLowerCase(),
    path: withoutQuery(textOf(given, 'RequestPath')),
    method: textOf(given, 'RequestMethod').toUpperCase(),
    status,
    bytesIn: sizeOf(given, 'RequestContentSize'),
    bytesOut: sizeOf(given, 'DownstreamContentSize'),
    client: textOf(given, 'ClientHost'),
    userAgent: textOf(given, 'request_User-Agent'),
    destination: textOf(given, 'request_Sec-Fetch-Dest'),
    wake: textOf(given, 'downstream_Moorage-Activator'),
    isLost: given[lost] !== undefined,
  };
}

/** Whether what may be left out is as it should be where it is there. */
function isWell(given: Attributes): boolean {
  return (
    Object.keys(texts).every((name) => isText(given[name])) &&
    sizes.every((name) => isSize(given[name])) &&
    isMark(given[lost])
  );
}

/** By name, in the order of the attributes. */
function wrongOf(given: Attributes): string[] {
  const counter = wholeOf(given['RequestCount']);
  const checks: readonly (readonly [name: string, isWell: boolean])[] = [
    ['RequestCount', counter !== undefined && counter > 0n],
    ['StartUTC', startOf(given['StartUTC']) !== undefined],
    ['Duration', wholeOf(given['Duration']) !== undefined],
    ['DownstreamStatus', statusOf(given['DownstreamStatus']) !== undefined],
    ...Object.keys(texts).map((name) => [name, isText(given[name])] as const),
    ...sizes.map((name) => [name, isSize(given[name])] as const),
    [lost, isMark(given[lost])],
  ];
  return checks.filter(([, isRight]) => !isRight).map(([name]) => name);
}

type Attribute = AttributeValue | undefined;

function wholeOf(given: Attribute): bigint | undefined {
  if (typeof given === 'number') return Number.isSafeInteger(given) && given >= 0 ? BigInt(given) : undefined;
  return typeof given === 'bigint' && given >= 0n ? given : undefined;
}

function startOf(given: Attribute): bigint | undefined {
  return typeof given === 'string' ? nanosecondsOf(given) : wholeOf(given);
}

function statusOf(given: Attribute): number | undefined {
  return typeof given === 'number' && Number.isInteger(given) && given >= 0 && given <= 999 ? given : undefined;
}

function isText(given: Attribute): boolean {
  return given === undefined || typeof given === 'string';
}

function isSize(given: Attribute): boolean {
  return given === undefined || (typeof given === 'number' && Number.isSafeInteger(given) && given >= 0);
}

function isMark(given: Attribute): boolean {
  return given === undefined || given === 'true';
}

function textOf(given: Attributes, name: keyof typeof texts): string {
  const text = given[name];
  return typeof text === 'string' ? text.slice(0, texts[name]) : '';
}

function sizeOf(given: Attributes, name: (typeof sizes)[number]): number {
  const size = given[name];
  return typeof size === 'number' ? size : 0;
}

/** A path without the query, which may hold anything. */
export function withoutQuery(path: string): string {
  const end = path.search(/[?#]/);
  return end === -1 ? path : path.slice(0, end);
}

/** Resource attributes that name a gateway, the surest first. */
const identities = ['service.instance.id', 'k8s.pod.uid', 'container.id', 'host.name', 'service.name'] as const;

/** Which gateway a sender is: by the first of the attributes that name one. */
export function gatewayOf(resource: Attributes): string {
  const named = identities.find((name) => resource[name] !== undefined && resource[name] !== '');
  return named === undefined ? 'unknown' : String(resource[named]).slice(0, 200);
}

/**
 * The id of the event that a record becomes: made of what the gateway said of it alone, so that a record which comes
 * twice is one event. A number comes again in another run of the gateway, but not at the same nanosecond.
 */
export function eventId(gateway: string, { counter, startNs }: GatewayRecord): string {
  return `${gatewayKey(gateway)}-${counter.toString()}-${startNs.toString(36)}`;
}

const keys = new Map<string, string>();

function gatewayKey(gateway: string): string {
  const known = keys.get(gateway);
  if (known !== undefined) return known;
  const key = createHash('sha256').update(gateway).digest('hex').slice(0, 16);
  if (keys.size >= 1_000) keys.clear();
  keys.set(gateway, key);
  return key;
}

/** A time as PostgreSQL keeps it: microseconds, rounded down. */
export function timestampOf(ns: bigint): string {
  const ms = Number(ns / nanosecond);
  const micros = String((ns % nanosecond) / 1000n).padStart(3, '0');
  return `${new Date(ms).toISOString().slice(0, -1)}${micros}Z`;
}
