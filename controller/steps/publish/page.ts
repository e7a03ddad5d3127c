// Inspects the page of an app that has just gone live: its status, its assets, and whether the APIs that it calls respond.
import { Parser } from 'htmlparser2';
import type { PageView } from '../../reconcile/snapshot.ts';
import { toOneLine } from '../../pipeline/text.ts';
import { followRedirects, readBody, requestThroughGateway, type GatewayAccess } from './probe.ts';

const requestMs = 10_000;
/** For a whole look: an app with slow files must not occupy one of the few looks for longer. */
const lookMs = 30_000;
const pageBytes = 1024 * 1024;
const scriptBytes = 4 * 1024 * 1024;
const maximumNamed = 3;
const atOnce = 4;

/** A page to inspect. */
export interface PageQuery {
  readonly host: string;
  readonly path: string;
}

/** The response at that path. */
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
export async function inspectPage(gateway: GatewayAccess, host: string, path = '/'): Promise<PageView> {
  const visit = { gateway, host, endsAt: Date.now() + lookMs };
  try {
    const page = await openPage(visit, path);
    if (page.status >= 400 || !page.type.includes('html'))
      return { status: page.status, assets: 0, faults: describeRootFaults(page, path) };
    const assets = await runInBatches(listAssets(page.text, page.url), (asset) => loadAsset(visit, asset));
    // A path in a script may be just a prefix, so a page as its answer proves that there is no API only if the app serves
    // nothing but files.
    const named = page.isFile ? assets.flatMap((asset) => asset.calls) : [];
    const calls = [...new Set(named)].slice(0, maximumNamed);
    const unanswered = await runInBatches(calls, async (called) => ((await isAnswered(visit, called)) ? [] : [called]));
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

async function openPage(visit: Visit, path: string): Promise<Page> {
  const { gateway, host } = visit;
  const timeoutMs = computeTimeLeft(visit);
  const { response, url } = await followRedirects({ gateway, host, path, timeoutMs, accept: 'text/html,*/*' });
  const status = response.statusCode ?? 0;
  const type = response.headers['content-type'] ?? '';
  const isFile = response.headers['last-modified'] !== undefined;
  // Anything but a page may be endless, such as a stream of events.
  const isPage = status < 400 && type.includes('html');
  const text = isPage ? await readBody(response, pageBytes, computeTimeLeft(visit)) : '';
  response.destroy();
  return { url, status, type, isFile, text };
}

/** Another path than / was chosen because it responds; endpoints of protocols do so with an error. */
function describeRootFaults({ status }: Page, path: string): string[] {
  return status >= 400 && path === '/' ? [`responds with ${status} at /`] : [];
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
