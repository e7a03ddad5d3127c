// What kind of request a record is: the one rule by which uses are separated from what no author is paid for.
import type { GatewayRecord } from './record.ts';
import type { Visitor } from './visitors.ts';

/**
 * The classes, in the order in which they are tried; the first that holds is the record's.
 * - `refused`: the host is not that of an app.
 * - `platform`: the host is that of the API, which meters its calls itself.
 * - `wake`: the page that is shown while an app wakes answered, not the app.
 * - `probe`: this installation looked at the app: a user agent of ours, from an address inside.
 * - `call`: the API called for an agent; that is metered there.
 * - `free`: the author says so (`metering.free`).
 * - `health`: GET or HEAD of the app's own health path.
 * - `preflight`: OPTIONS, by which a browser asks what it may send.
 * - `failed`: a status of 500 and above, or none: nobody got what he came for.
 * - `asset`: GET or HEAD of what a page is made of: the browser says so (Sec-Fetch-Dest), or the name of the file, where
 *   it does not say; or a status of 304, for which nothing was sent.
 * - `own`: the visitor's address is that from which the app was submitted without a key. Nobody earns by using what is his.
 * - `use`: anything else.
 */
export const classes = [
  'refused',
  'platform',
  'wake',
  'probe',
  'call',
  'free',
  'health',
  'preflight',
  'failed',
  'asset',
  'own',
  'use',
] as const;
export type RequestClass = (typeof classes)[number];

/** What the rule knows of the host. */
export type HostKind = { readonly kind: 'app'; readonly app: HostApp } | { readonly kind: 'platform' | 'unknown' };

/** What the rule knows of an app. */
export interface HostApp {
  readonly slug: string;
  readonly healthPath: string | undefined;
  /** Hash of who submitted it; undefined where the operator of the installation made it. */
  readonly submitter: string | undefined;
  /** Whether the author gives it away. */
  readonly isFree: (path: string, status: number) => boolean;
}

/** User agents of this installation. */
const ours: ReadonlyMap<string, RequestClass> = new Map([
  ['moorage-operator', 'probe'],
  ['moorage-bench', 'probe'],
  ['moorage-api', 'call'],
]);
const assetDestinations: ReadonlySet<string> = new Set([
  'audio',
  'audioworklet',
  'font',
  'image',
  'manifest',
  'paintworklet',
  'script',
  'serviceworker',
  'sharedworker',
  'style',
  'track',
  'video',
  'worker',
  'xslt',
]);
const assetFile =
  /\.(?:avif|bmp|css|eot|gif|ico|jpe?g|js|map|mjs|mp3|mp4|ogg|otf|png|svg|ttf|wasm|webm|webmanifest|webp|woff2?)$/i;

export function classify(
  record: GatewayRecord,
  host: HostKind,
  visitor: Pick<Visitor, 'submitter' | 'isInside'>,
): RequestClass {
  if (host.kind !== 'app') return host.kind === 'platform' ? 'platform' : 'refused';
  const { app } = host;
  return (
    ofPlatform(record, visitor.isInside) ??
    (app.isFree(record.path, record.status) ? 'free' : undefined) ??
    ofRequest(record, app.healthPath) ??
    (app.submitter === visitor.submitter ? 'own' : 'use')
  );
}

function ofPlatform({ wake, userAgent }: GatewayRecord, isInside: boolean): RequestClass | undefined {
  if (wake !== '') return 'wake';
  return isInside ? ours.get(userAgent) : undefined;
}

function ofRequest(record: GatewayRecord, healthPath: string | undefined): RequestClass | undefined {
  const { method, path, status } = record;
  const isRead = method === 'GET' || method === 'HEAD';
  if (isRead && path === healthPath) return 'health';
  if (method === 'OPTIONS') return 'preflight';
  if (status === 0 || status >= 500) return 'failed';
  return isRead && isAsset(record) ? 'asset' : undefined;
}

function isAsset({ destination, path, status }: GatewayRecord): boolean {
  if (status === 304) return true;
  return destination === '' ? assetFile.test(path) : assetDestinations.has(destination);
}
