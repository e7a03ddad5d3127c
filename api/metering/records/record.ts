// A record of a gateway: one request, read out of the attributes that Traefik gives its access log.
import { createHash } from 'node:crypto';
import { z } from 'zod';
import type { Attributes } from '../otlp/messages.ts';

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

/** An RFC 3339 time to the nanosecond, as in Traefik's JSON; undefined for anything else. */
export function nanosecondsOf(text: string): bigint | undefined {
  const [, seconds, fraction = '', zone = ''] = instant.exec(text) ?? [];
  const ms = seconds === undefined ? Number.NaN : Date.parse(`${seconds}${zone}`);
  return Number.isNaN(ms) ? undefined : BigInt(ms) * nanosecond + BigInt(fraction.padEnd(9, '0'));
}

const text = (limit: number): z.ZodType<string> =>
  z
    .string()
    .transform((given) => given.slice(0, limit))
    .default('');
const whole = z.union([z.int().nonnegative(), z.bigint().nonnegative()]);
const size = z.int().nonnegative().default(0);

/** Names as in Traefik's access log. StartUTC is a text in its JSON, nanoseconds where it exports OTLP itself. */
const attributes = z.object({
  RequestCount: whole.transform(BigInt).refine((counter) => counter > 0n),
  StartUTC: z
    .union([whole.transform(BigInt), z.string().transform(nanosecondsOf)])
    .refine((start) => start !== undefined)
    .pipe(z.bigint()),
  Duration: whole.transform(BigInt),
  DownstreamStatus: z.int().min(0).max(999),
  RequestHost: text(253),
  RequestPath: text(2_000),
  RequestMethod: text(20),
  RequestContentSize: size,
  DownstreamContentSize: size,
  ClientHost: text(1_000),
  'request_User-Agent': text(300),
  'request_Sec-Fetch-Dest': text(40),
  'downstream_Moorage-Activator': text(40),
  'moorage.lost': z.literal('true').optional(),
});

/** The attributes that are read; a sender needs to give no others. */
export const attributeNames: readonly string[] = Object.keys(attributes.shape);

/** Reads a record. @returns the names of the attributes that are missing or wrong where it is none */
export function readRecord(given: Attributes): GatewayRecord | { readonly wrong: readonly string[] } {
  const parsed = attributes.safeParse(given);
  if (!parsed.success) return { wrong: [...new Set(parsed.error.issues.map(({ path }) => String(path[0])))] };
  const { data } = parsed;
  return {
    counter: data.RequestCount,
    startNs: data.StartUTC,
    endNs: data.StartUTC + data.Duration,
    host: data.RequestHost.toLowerCase(),
    path: data.RequestPath.split(/[?#]/, 1)[0] ?? '',
    method: data.RequestMethod.toUpperCase(),
    status: data.DownstreamStatus,
    bytesIn: data.RequestContentSize,
    bytesOut: data.DownstreamContentSize,
    client: data.ClientHost,
    userAgent: data['request_User-Agent'],
    destination: data['request_Sec-Fetch-Dest'],
    wake: data['downstream_Moorage-Activator'],
    isLost: data['moorage.lost'] !== undefined,
  };
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
