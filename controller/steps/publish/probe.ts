// Requests to an app through the gateway itself, by the app's host name: probes whether anything answers, and inspects the page
// of an app that has just gone live.
import { request as requestHttp, type IncomingMessage } from 'node:http';
import { request as requestHttps } from 'node:https';
import { setTimeout as sleep } from 'node:timers/promises';
import { Parser } from 'htmlparser2';
import { probeHeader } from '../../../crds/names.ts';
import type { ProbeResult, PageView } from '../../reconcile/snapshot.ts';
import { toOneLine } from '../../pipeline/text.ts';

/** A probe: the host, and how many tries before a failure is reported. */
export interface ProbeQuery {
  readonly host: string;
  readonly attempts: number;
}

const defaultTimeoutMs = 5_000;
/** A gateway that restarts or a pod that ends is away for a moment. */
const pauseMs = 2_000;
const gatewayFailures: ReadonlySet<number> = new Set([502, 503, 504]);

/**
 * Requests `https://<host>/` at the gateway's address, up to `attempts` times while the response is a failure. Never
 * rejects. Any answer counts except those that a gateway gives when nothing is behind it.
 */
export async function probe(
  gateway: GatewayAccess,
  host: string,
  { attempts = 1, timeoutMs = defaultTimeoutMs, pause = pauseMs } = {},
): Promise<ProbeResult> {
  for (let attempt = 1; ; attempt += 1) {
    const result = await probeOnce(gateway, host, timeoutMs);
    if (attempt >= attempts || !isFailure(result)) return result;
    await sleep(pause);
  }
}

/** The app or its gateway responds with an error, or nothing responds. Silence and a bare 404 may be the app's own. */
export function isFailure({ responds, isDoubtful, status = 0 }: ProbeResult): boolean {
  return status >= 500 || (!responds && isDoubtful !== true);
}

async function probeOnce(gateway: GatewayAccess, host: string, timeoutMs: number): Promise<ProbeResult> {
  try {
    const response = await requestThroughGateway({ gateway, host, path: '/', timeoutMs });
    const status = response.statusCode ?? 0;
    response.destroy();
    const isDoubtful = isBare404(status, response.headers);
    const responds = !gatewayFailures.has(status) && !isDoubtful;
    return { responds, isDoubtful, status, detail: `the response was HTTP ${status}` };
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error);
    // A gateway that does not know the host answers immediately, so it is the app that is slow.
    const isDoubtful = error instanceof NoResponse;
    return {
      responds: false,
      isDoubtful,
      detail: isDoubtful ? `there was ${message}` : `the request failed: ${message}`,
    };
  }
}

/**
 * The answer of gateways written in Go for an unknown host, and of apps written in Go for an unknown path.
 */
function isBare404(status: number, headers: NodeJS.Dict<string | string[]>): boolean {
  return (
    status === 404 &&
    headers['content-type'] === 'text/plain; charset=utf-8' &&
    headers['content-length'] === '19' &&
    headers['server'] === undefined
  );
}

/** Something took the request and has not responded. */
class NoResponse extends Error {
  override readonly name = 'NoResponse';
}

/** How the platform itself reaches apps through the gateway. */
export interface GatewayAccess {
  /** Base URL of the gateway from inside. */
  readonly url: string;
  /** Shown to the activator, so that the request wakes no app. Routes to apps remove it. */
  readonly token?: string | undefined;
}

interface GatewayRequest {
  readonly gateway: GatewayAccess;
  readonly host: string;
  /** Path and query at the app. */
  readonly path: string;
  readonly timeoutMs: number;
  readonly accept?: string;
}

/**
 * Resolves with the response once its head has arrived; the caller reads or destroys it.
 *
 * @throws NoResponse after `timeoutMs`
 * @throws Error for any other failure
 */
function requestThroughGateway({ gateway, host, path, timeoutMs, accept }: GatewayRequest): Promise<IncomingMessage> {
  const url = new URL(gateway.url);
  const request = url.protocol === 'https:' ? requestHttps : requestHttp;
  const authority = url.port === '' ? host : `${host}:${url.port}`;
  return new Promise((resolve, reject) => {
    const probeRequest = request(
      {
        protocol: url.protocol,
        hostname: url.hostname.replace(/^\[|\]$/g, ''),
        port: url.port,
        path,
        headers: {
          host: authority,
          'user-agent': 'moorage-operator',
          'accept-encoding': 'identity',
          ...(gateway.token === undefined ? {} : { [probeHeader]: gateway.token }),
          ...(accept === undefined ? {} : { accept }),
        },
        servername: host,
        // Only the app's answer matters here. Trust in the gateway's certificate is checked elsewhere.
        rejectUnauthorized: false,
        agent: false,
        timeout: timeoutMs,
      },
      resolve,
    );
    let isConnected = false;
    probeRequest.on('socket', (socket) => {
      socket.once(url.protocol === 'https:' ? 'secureConnect' : 'connect', () => (isConnected = true));
    });
    probeRequest.on('timeout', () => {
      const limit = `within ${Math.ceil(timeoutMs / 100) / 10} s`;
      // An absent gateway is not a slow app.
      probeRequest.destroy(isConnected ? new NoResponse(`no response ${limit}`) : new Error(`no connection ${limit}`));
    });
    probeRequest.on('error', reject);
    probeRequest.end();
  });
}

/** The body as text, cut after `bytes`. @throws Error when it breaks off or takes longer than `timeoutMs` */
export async function readBody(response: IncomingMessage, bytes: number, timeoutMs: number): Promise<string> {
  const chunks: Buffer[] = [];
  let length = 0;
  const timer = setTimeout(() => response.destroy(new Error('the body took too long')), timeoutMs);
  try {
    for await (const chunk of response as AsyncIterable<Buffer>) {
      chunks.push(chunk);
      length += chunk.length;
      if (length >= bytes) break;
    }
  } finally {
    clearTimeout(timer);
    response.destroy();
  }
  return Buffer.concat(chunks).subarray(0, bytes).toString('utf8');
}

// The page: its status, its assets, and whether the APIs it calls answer.

const requestMs = 10_000;
/** For a whole look: an app with slow files must not occupy one of the few looks for longer. */
const lookMs = 30_000;
const maximumRedirects = 3;
const pageBytes = 1024 * 1024;
const scriptBytes = 4 * 1024 * 1024;
const maximumNamed = 3;
const atOnce = 4;

/** The response at the root. */
interface Page {
  readonly url: URL;
  readonly status: number;
  readonly type: string;
  /** A static file; a server that generates its pages sends no modification time. */
  readonly isFile: boolean;
  readonly text: string;
}

/** An asset and its response. */
interface LoadedAsset extends Asset {
  /** What is wrong with it, in a few words. */
  readonly fault?: string;
  readonly calls: readonly string[];
}

/** Where to ask, and until when. */
interface Visit {
  readonly gateway: GatewayAccess;
  readonly host: string;
  readonly endsAt: number;
}

/** Never rejects: a page that cannot be loaded is itself a fault. */
export async function inspectPage(gateway: GatewayAccess, host: string): Promise<PageView> {
  const visit = { gateway, host, endsAt: Date.now() + lookMs };
  try {
    const page = await openPage(visit);
    if (page.status >= 400 || !page.type.includes('html'))
      return { status: page.status, assets: 0, faults: describeRootFaults(page) };
    const assets = await runInBatches(listAssets(page.text, page.url), (asset) => loadAsset(visit, asset));
    // A path in a script may be just a prefix, so a page as its answer proves that there is no API only if the app serves
    // nothing but files.
    const named = page.isFile ? assets.flatMap((asset) => asset.calls) : [];
    const calls = [...new Set(named)].slice(0, maximumNamed);
    const unanswered = await runInBatches(calls, async (path) => ((await isAnswered(visit, path)) ? [] : [path]));
    return {
      status: page.status,
      assets: assets.length,
      faults: [...describeAssetFaults(assets), ...describeCallFaults(calls, unanswered.flat())],
    };
  } catch (error) {
    return { assets: 0, faults: [`does not show its page: ${formatError(error)}`] };
  }
}

function computeTimeLeft({ endsAt }: Visit): number {
  return Math.max(1, Math.min(requestMs, endsAt - Date.now()));
}

async function openPage(visit: Visit): Promise<Page> {
  const { gateway, host } = visit;
  let url = new URL(`https://${host}/`);
  for (let redirects = 0; ; redirects += 1) {
    const path = `${url.pathname}${url.search}`;
    const response = await requestThroughGateway({
      gateway,
      host,
      path,
      timeoutMs: computeTimeLeft(visit),
      accept: 'text/html,*/*',
    });
    const status = response.statusCode ?? 0;
    const type = response.headers['content-type'] ?? '';
    const next = URL.parse(response.headers.location ?? '', url.href);
    const follows = status >= 300 && status < 400 && next?.hostname === host && redirects < maximumRedirects;
    const isFile = response.headers['last-modified'] !== undefined;
    if (!follows)
      return { url, status, type, isFile, text: await readBody(response, pageBytes, computeTimeLeft(visit)) };
    response.destroy();
    url = next;
  }
}

function describeRootFaults({ status }: Page): string[] {
  return status >= 400 ? [`responds with ${status} at /`] : [];
}

async function loadAsset(visit: Visit, asset: Asset): Promise<LoadedAsset> {
  const { gateway, host } = visit;
  try {
    const response = await requestThroughGateway({
      gateway,
      host,
      path: asset.path,
      timeoutMs: computeTimeLeft(visit),
    });
    const status = response.statusCode ?? 0;
    const type = response.headers['content-type'] ?? '';
    const body =
      asset.kind === 'script' && status < 400 ? await readBody(response, scriptBytes, computeTimeLeft(visit)) : '';
    response.destroy();
    if (status >= 400) return { ...asset, fault: String(status), calls: [] };
    // A server that answers every path with its page does so for a file that is missing too.
    if (type.includes('text/html')) return { ...asset, fault: 'a page comes instead of it', calls: [] };
    return { ...asset, calls: listCalls(body) };
  } catch (error) {
    return { ...asset, fault: formatError(error), calls: [] };
  }
}

/** False if no API answers: a file server answers with a page, whatever the path. */
async function isAnswered(visit: Visit, path: string): Promise<boolean> {
  const { gateway, host } = visit;
  const timeoutMs = computeTimeLeft(visit);
  try {
    const response = await requestThroughGateway({ gateway, host, path, timeoutMs, accept: 'application/json' });
    response.destroy();
    return !(response.headers['content-type'] ?? '').includes('text/html');
  } catch {
    return true;
  }
}

function describeAssetFaults(assets: readonly LoadedAsset[]): string[] {
  const failed = assets.filter(({ fault }) => fault !== undefined);
  if (failed.length === 0) return [];
  const named = failed.slice(0, maximumNamed).map(({ path, fault }) => `${shortenPath(path)} (${fault ?? ''})`);
  return [`cannot load ${failed.length} of the ${assets.length} files of its page: ${named.join(', ')}`];
}

/** Only if none is answered: a single one may need another method or a login. */
function describeCallFaults(calls: readonly string[], unanswered: readonly string[]): string[] {
  if (calls.length === 0 || unanswered.length < calls.length) return [];
  return [`has no server behind its page: the page calls ${calls.map(shortenPath).join(', ')}, and a page answers`];
}

function shortenPath(path: string): string {
  const line = toOneLine(path);
  return line.length > 60 ? `${line.slice(0, 59)}…` : line;
}

function formatError(error: unknown): string {
  return toOneLine(error instanceof Error ? error.message : String(error)).slice(0, 100);
}

async function runInBatches<Item, Result>(
  items: readonly Item[],
  run: (item: Item) => Promise<Result>,
): Promise<Result[]> {
  const results: Result[] = [];
  for (let from = 0; from < items.length; from += atOnce)
    results.push(...(await Promise.all(items.slice(from, from + atOnce).map(run))));
  return results;
}

// Parsing: the scripts, styles and images that a page loads from its host, and the calls in its scripts.

/** A file that the page loads. */
export interface Asset {
  /** Path and query at the page's own host. */
  readonly path: string;
  readonly kind: 'script' | 'style' | 'image';
}

const maximumAssets = 30;
const maximumCalls = 5;
/** A quoted path below /api/, as bundlers leave it. */
const call = /["'`](\/api\/[A-Za-z0-9._~/-]{1,100})["'`]/g;

/** The assets of a page from its own host, each once, in document order. */
export function listAssets(html: string, page: URL): Asset[] {
  const found = new Map<string, Asset>();
  let base = page;
  const add = (kind: Asset['kind'], address: string | undefined): void => {
    if (address === undefined || address === '' || found.size >= maximumAssets) return;
    const url = URL.parse(address, base.href);
    // Files of other hosts are not checked; a data: address is no request.
    if (url?.host !== page.host || url.protocol !== page.protocol) return;
    const path = `${url.pathname}${url.search}`;
    if (!found.has(path)) found.set(path, { path, kind });
  };
  const parser = new Parser({
    onopentag(name, attributes) {
      if (name === 'base') base = URL.parse(attributes['href'] ?? '', page.href) ?? base;
      const asset = readAsset(name, attributes);
      if (asset !== undefined) add(...asset);
    },
  });
  parser.end(html);
  return [...found.values()];
}

type Attributes = Readonly<Record<string, string>>;
type Reference = readonly [Asset['kind'], string | undefined] | undefined;

function readAsset(name: string, attributes: Attributes): Reference {
  return elements[name]?.(attributes);
}

/** Only what loads with the page: no lazy images, and nothing for old browsers only. */
const elements: Readonly<Record<string, (attributes: Attributes) => Reference>> = {
  script: ({ src, nomodule }) => (nomodule === undefined ? ['script', src] : undefined),
  img: ({ src, loading }) => (loading === 'lazy' ? undefined : ['image', src]),
  link({ href, rel = '' }) {
    const words = rel.toLowerCase().split(/\s+/);
    if (words.includes('alternate')) return undefined;
    if (words.includes('stylesheet')) return ['style', href];
    return words.includes('modulepreload') ? ['script', href] : undefined;
  },
};

/** Paths below /api/ in a script, each once. Which of them it calls is unknown without running it. */
export function listCalls(script: string): string[] {
  const paths = [...script.matchAll(call)].map(([, path = '']) => path);
  return [...new Set(paths)].slice(0, maximumCalls);
}
