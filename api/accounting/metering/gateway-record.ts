// Parses gateway records: one request each, from the attributes of Traefik's access log. Sorts them into runs of a gateway
// process, and finds the request numbers that are missing.
import { createHash } from 'node:crypto';
import type { Attributes, AttributeValue } from './log-receiver.ts';

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
  /** Set if the activator answered instead of the app, with the page shown while the app wakes. */
  readonly wake: string;
  /** Whether this is a loss marker: its sender dropped this record and those before it. */
  readonly isLost: boolean;
}

const nanosecond = 1_000_000n;
const instant = /^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?(Z|[+-]\d\d:\d\d)$/;
/** Caches the last parsed second: many records share one. */
let lastSecond = { second: '', ms: Number.NaN };

/** An RFC 3339 time to the nanosecond, as in Traefik's JSON; undefined for anything else. */
export function parseNanoseconds(text: string): bigint | undefined {
  const [, seconds, fraction = '', zone = ''] = instant.exec(text) ?? [];
  if (seconds === undefined) return undefined;
  const second = `${seconds}${zone}`;
  if (lastSecond.second !== second) lastSecond = { second, ms: Date.parse(second) };
  return Number.isNaN(lastSecond.ms) ? undefined : BigInt(lastSecond.ms) * nanosecond + BigInt(fraction.padEnd(9, '0'));
}

/** Maximum length of each text attribute; longer texts are truncated. */
const textLimits = {
  RequestHost: 253,
  RequestPath: 2_000,
  RequestMethod: 20,
  ClientHost: 1_000,
  'request_User-Agent': 300,
  'request_Sec-Fetch-Dest': 40,
  'downstream_Moorage-Activator': 40,
} as const;
const sizeAttributes = ['RequestContentSize', 'DownstreamContentSize'] as const;
const lostAttribute = 'moorage.lost';

/**
 * The attributes that are read; a sender needs to give no others. Names as in Traefik's access log; StartUTC is a text in
 * its JSON, nanoseconds where it exports OTLP itself.
 */
export const attributeNames: readonly string[] = [
  'RequestCount',
  'StartUTC',
  'Duration',
  'DownstreamStatus',
  ...Object.keys(textLimits),
  ...sizeAttributes,
  lostAttribute,
];

/**
 * Reads a record. A schema would take ten times as long, for each of thousands of records a second: each field is checked
 * by hand. @returns the names of the attributes that are missing or wrong where it is none
 */
export function readRecord(attributes: Attributes): GatewayRecord | { readonly wrong: readonly string[] } {
  const counter = toWhole(attributes['RequestCount']);
  const startNs = toStart(attributes['StartUTC']);
  const duration = toWhole(attributes['Duration']);
  const status = toStatus(attributes['DownstreamStatus']);
  const isCounted = counter !== undefined && counter > 0n;
  if (
    !isCounted ||
    startNs === undefined ||
    duration === undefined ||
    status === undefined ||
    !hasValidOptionals(attributes)
  )
    return { wrong: findInvalidAttributes(attributes) };
  return {
    counter,
    startNs,
    endNs: startNs + duration,
    host: readText(attributes, 'RequestHost').toLowerCase(),
    path: removeQuery(readText(attributes, 'RequestPath')),
    method: readText(attributes, 'RequestMethod').toUpperCase(),
    status,
    bytesIn: readSize(attributes, 'RequestContentSize'),
    bytesOut: readSize(attributes, 'DownstreamContentSize'),
    client: readText(attributes, 'ClientHost'),
    userAgent: readText(attributes, 'request_User-Agent'),
    destination: readText(attributes, 'request_Sec-Fetch-Dest'),
    wake: readText(attributes, 'downstream_Moorage-Activator'),
    isLost: attributes[lostAttribute] !== undefined,
  };
}

/** Whether every optional attribute is absent or valid. */
function hasValidOptionals(attributes: Attributes): boolean {
  return (
    Object.keys(textLimits).every((name) => isText(attributes[name])) &&
    sizeAttributes.every((name) => isSize(attributes[name])) &&
    isMark(attributes[lostAttribute])
  );
}

/** Returns names, in the order of the attributes. */
function findInvalidAttributes(attributes: Attributes): string[] {
  const counter = toWhole(attributes['RequestCount']);
  const checks: readonly (readonly [name: string, isWell: boolean])[] = [
    ['RequestCount', counter !== undefined && counter > 0n],
    ['StartUTC', toStart(attributes['StartUTC']) !== undefined],
    ['Duration', toWhole(attributes['Duration']) !== undefined],
    ['DownstreamStatus', toStatus(attributes['DownstreamStatus']) !== undefined],
    ...Object.keys(textLimits).map((name) => [name, isText(attributes[name])] as const),
    ...sizeAttributes.map((name) => [name, isSize(attributes[name])] as const),
    [lostAttribute, isMark(attributes[lostAttribute])],
  ];
  return checks.filter(([, isRight]) => !isRight).map(([name]) => name);
}

type Attribute = AttributeValue | undefined;

function toWhole(value: Attribute): bigint | undefined {
  if (typeof value === 'number') return Number.isSafeInteger(value) && value >= 0 ? BigInt(value) : undefined;
  return typeof value === 'bigint' && value >= 0n ? value : undefined;
}

function toStart(value: Attribute): bigint | undefined {
  return typeof value === 'string' ? parseNanoseconds(value) : toWhole(value);
}

function toStatus(value: Attribute): number | undefined {
  return typeof value === 'number' && Number.isInteger(value) && value >= 0 && value <= 999 ? value : undefined;
}

function isText(value: Attribute): boolean {
  return value === undefined || typeof value === 'string';
}

function isSize(value: Attribute): boolean {
  return value === undefined || (typeof value === 'number' && Number.isSafeInteger(value) && value >= 0);
}

function isMark(value: Attribute): boolean {
  return value === undefined || value === 'true';
}

function readText(attributes: Attributes, name: keyof typeof textLimits): string {
  const text = attributes[name];
  return typeof text === 'string' ? text.slice(0, textLimits[name]) : '';
}

function readSize(attributes: Attributes, name: (typeof sizeAttributes)[number]): number {
  const size = attributes[name];
  return typeof size === 'number' ? size : 0;
}

/** A path without the query, which may hold anything. */
export function removeQuery(path: string): string {
  const end = path.search(/[?#]/);
  return end === -1 ? path : path.slice(0, end);
}

/** Resource attributes that name a gateway, the surest first. */
const gatewayAttributes = ['service.instance.id', 'k8s.pod.uid', 'container.id', 'host.name', 'service.name'] as const;

/** Identifies the gateway by the first attribute that names one. */
export function identifyGateway(resource: Attributes): string {
  const named = gatewayAttributes.find((name) => resource[name] !== undefined && resource[name] !== '');
  return named === undefined ? 'unknown' : String(resource[named]).slice(0, 200);
}

/**
 * The id of the event that a record becomes: made of what the gateway said of it alone, so that a record which comes
 * twice is one event. A number comes again in another run of the gateway, but not at the same nanosecond.
 */
export function createEventId(gateway: string, { counter, startNs }: GatewayRecord): string {
  return `${getGatewayKey(gateway)}-${counter.toString()}-${startNs.toString(36)}`;
}

const keys = new Map<string, string>();

function getGatewayKey(gateway: string): string {
  const known = keys.get(gateway);
  if (known !== undefined) return known;
  const key = createHash('sha256').update(gateway).digest('hex').slice(0, 16);
  if (keys.size >= 1_000) keys.clear();
  keys.set(gateway, key);
  return key;
}

/** A time as PostgreSQL keeps it: microseconds, rounded down. */
export function formatTimestamp(ns: bigint): string {
  const ms = Number(ns / nanosecond);
  const micros = String((ns % nanosecond) / 1000n).padStart(3, '0');
  return `${new Date(ms).toISOString().slice(0, -1)}${micros}Z`;
}

// A gateway numbers its requests from 1 each time it starts. Within one process, a request with a lower number began before
// any request with a higher number ended. After a restart, every request begins after everything that the previous process
// logged had ended. So a record whose number is not above the highest, and which began after the last end of that run, belongs
// to a new process; one that began before that end is a late record, such as that of a long WebSocket. Only a clock that is set
// back at a restart breaks this: the first records of the new process are counted in the old run, and are missing in the new one.

/** The known state of a run. */
export interface Run {
  /** Undefined for a new run. */
  readonly id: bigint | undefined;
  /** The highest number, and when its request began and ended. */
  readonly newest: bigint;
  readonly newestStartNs: bigint;
  readonly newestEndNs: bigint;
  /** The last end of any of its requests. */
  readonly lastEndNs: bigint;
}

/** Numbers of one run that are missing, between the beginnings of two requests. */
export interface Gap {
  readonly counters: Range;
  /** Undefined where it is the first of the run. */
  readonly afterNs: bigint | undefined;
  readonly beforeNs: bigint;
}

/** What the accounting reads of a record. One that is lost says that its number was given out, and no more. */
export type NumberedRequest = Pick<GatewayRecord, 'counter' | 'startNs' | 'endNs' | 'isLost'>;

/** A run with the records of a batch. */
export interface RunBatch<Record extends NumberedRequest> {
  readonly before: Run | undefined;
  readonly after: Run;
  readonly records: readonly Record[];
}

/** Sorts records, as they came, into the runs of their gateway, the oldest run first. */
export function assignRuns<Record extends NumberedRequest>(
  runs: readonly Run[],
  records: readonly Record[],
): RunBatch<Record>[] {
  const batches = runs.map((run) => ({ before: run as Run | undefined, after: run, records: [] as Record[] }));
  for (const record of records) {
    let batch = batches.find(({ after }) => record.startNs <= after.lastEndNs);
    const last = batches.at(-1);
    if (batch === undefined && last !== undefined && record.counter > last.after.newest) batch = last;
    if (batch === undefined) {
      batch = { before: undefined, after: createRun(record), records: [] };
      batches.push(batch);
    }
    batch.after = extendRun(batch.after, record);
    batch.records.push(record);
  }
  return batches.filter((batch) => batch.records.length > 0);
}

function createRun({ counter, startNs, endNs }: NumberedRequest): Run {
  return { id: undefined, newest: counter, newestStartNs: startNs, newestEndNs: endNs, lastEndNs: endNs };
}

function extendRun(run: Run, { counter, startNs, endNs }: NumberedRequest): Run {
  const lastEndNs = endNs > run.lastEndNs ? endNs : run.lastEndNs;
  return counter > run.newest
    ? { ...run, newest: counter, newestStartNs: startNs, newestEndNs: endNs, lastEndNs }
    : { ...run, lastEndNs };
}

/**
 * The numbers between the highest before and the highest now that the batch does not have. Numbers that one loss marker after
 * another covers are one gap.
 */
export function findGaps({ before, records }: RunBatch<NumberedRequest>): Gap[] {
  const newer = records
    .filter(({ counter }) => counter > (before?.newest ?? 0n))
    .sort((a, b) => Number(a.counter - b.counter));
  const gaps: Gap[] = [];
  let previous = { counter: before?.newest ?? 0n, startNs: before?.newestStartNs };
  for (const { counter, startNs, isLost } of newer) {
    const { counter: last, startNs: afterNs } = previous;
    previous = { counter, startNs };
    const end = isLost ? counter : counter - 1n;
    if (end <= last) continue;
    const open = gaps.at(-1);
    if (isLost && open?.counters[1] === last)
      gaps[gaps.length - 1] = { ...open, counters: [open.counters[0], end], beforeNs: startNs };
    else gaps.push({ counters: [last + 1n, end], afterNs, beforeNs: startNs });
  }
  return gaps;
}

/** The numbers of the records that came, as PostgreSQL reads them. */
export function formatCounters(records: readonly NumberedRequest[]): string {
  return formatMultirange(toRanges(records.filter(({ isLost }) => !isLost).map(({ counter }) => counter)));
}

/** `[first, last]`, both included. */
export type Range = readonly [first: bigint, last: bigint];

/** Returns the smallest set of ranges that covers the numbers, in order. */
export function toRanges(numbers: Iterable<bigint>): Range[] {
  const ranges: [bigint, bigint][] = [];
  for (const number of [...numbers].sort(compareAscending)) {
    const last = ranges.at(-1);
    if (last !== undefined && number <= last[1] + 1n) last[1] = number;
    else ranges.push([number, number]);
  }
  return ranges;
}

/** Like `{[1,4),[7,8)}`. */
export function formatMultirange(ranges: readonly Range[]): string {
  return `{${ranges.map(([first, last]) => `[${first.toString()},${(last + 1n).toString()})`).join(',')}}`;
}

function compareAscending(a: bigint, b: bigint): number {
  if (a === b) return 0;
  return a < b ? -1 : 1;
}
