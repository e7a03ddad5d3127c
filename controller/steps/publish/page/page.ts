// Looks at the page of an app that has just gone live: its status, its own assets, and whether what it calls is there.
import { toOneLine } from '../../../pipeline/text.ts';
import type { PageView } from '../../../reconcile/snapshot.ts';
import { type GatewayAccess, askThroughGateway, bodyOf } from '../gateway.ts';
import { assetsOf, callsIn, type Asset } from './parts.ts';

const requestMs = 10_000;
/** For all of a look: an app whose files are slow holds one of the few looks no longer. */
const lookMs = 30_000;
const maximumRedirects = 3;
const pageBytes = 1024 * 1024;
const scriptBytes = 4 * 1024 * 1024;
const maximumNamed = 3;
const atOnce = 4;

/** A page, or what took its place. */
interface Page {
  readonly url: URL;
  readonly status: number;
  readonly type: string;
  /** It is a file that is served as it stands; a server that makes its pages gives them no time of change. */
  readonly isFile: boolean;
  readonly text: string;
}

/** An asset as it came. */
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

/** Never rejects: what cannot be looked at is a fault of its own. */
export async function lookAtPage(gateway: GatewayAccess, host: string): Promise<PageView> {
  const visit = { gateway, host, endsAt: Date.now() + lookMs };
  try {
    const page = await open(visit);
    if (page.status >= 400 || !page.type.includes('html'))
      return { status: page.status, assets: 0, faults: rootFaults(page) };
    const assets = await inTurns(assetsOf(page.text, page.url), (asset) => load(visit, asset));
    // What scripts name may be the beginning of a path: a page as the answer means that no server is there only where
    // files alone are served.
    const named = page.isFile ? assets.flatMap((asset) => asset.calls) : [];
    const calls = [...new Set(named)].slice(0, maximumNamed);
    const unanswered = await inTurns(calls, async (path) => ((await isAnswered(visit, path)) ? [] : [path]));
    return {
      status: page.status,
      assets: assets.length,
      faults: [...assetFaults(assets), ...callFaults(calls, unanswered.flat())],
    };
  } catch (error) {
    return { assets: 0, faults: [`does not show its page: ${said(error)}`] };
  }
}

function timeLeft({ endsAt }: Visit): number {
  return Math.max(1, Math.min(requestMs, endsAt - Date.now()));
}

async function open(visit: Visit): Promise<Page> {
  const { gateway, host } = visit;
  let url = new URL(`https://${host}/`);
  for (let redirects = 0; ; redirects += 1) {
    const path = `${url.pathname}${url.search}`;
    const response = await askThroughGateway({
      gateway,
      host,
      path,
      timeoutMs: timeLeft(visit),
      accept: 'text/html,*/*',
    });
    const status = response.statusCode ?? 0;
    const type = response.headers['content-type'] ?? '';
    const next = URL.parse(response.headers.location ?? '', url.href);
    const follows = status >= 300 && status < 400 && next?.hostname === host && redirects < maximumRedirects;
    const isFile = response.headers['last-modified'] !== undefined;
    if (!follows) return { url, status, type, isFile, text: await bodyOf(response, pageBytes, timeLeft(visit)) };
    response.destroy();
    url = next;
  }
}

function rootFaults({ status }: Page): string[] {
  return status >= 400 ? [`responds with ${status} at /`] : [];
}

async function load(visit: Visit, asset: Asset): Promise<LoadedAsset> {
  const { gateway, host } = visit;
  try {
    const response = await askThroughGateway({ gateway, host, path: asset.path, timeoutMs: timeLeft(visit) });
    const status = response.statusCode ?? 0;
    const type = response.headers['content-type'] ?? '';
    const body = asset.kind === 'script' && status < 400 ? await bodyOf(response, scriptBytes, timeLeft(visit)) : '';
    response.destroy();
    if (status >= 400) return { ...asset, fault: String(status), calls: [] };
    // A server that answers every path with its page does so for a file that is missing too.
    if (type.includes('text/html')) return { ...asset, fault: 'a page comes instead of it', calls: [] };
    return { ...asset, calls: callsIn(body) };
  } catch (error) {
    return { ...asset, fault: said(error), calls: [] };
  }
}

/** False when no API answers: a file server has a page for everything, and refuses what is no file. */
async function isAnswered(visit: Visit, path: string): Promise<boolean> {
  const { gateway, host } = visit;
  const timeoutMs = timeLeft(visit);
  try {
    const response = await askThroughGateway({ gateway, host, path, timeoutMs, accept: 'application/json' });
    response.destroy();
    return !(response.headers['content-type'] ?? '').includes('text/html');
  } catch {
    return true;
  }
}

function assetFaults(assets: readonly LoadedAsset[]): string[] {
  const failed = assets.filter(({ fault }) => fault !== undefined);
  if (failed.length === 0) return [];
  const named = failed.slice(0, maximumNamed).map(({ path, fault }) => `${shortened(path)} (${fault ?? ''})`);
  return [`cannot load ${failed.length} of the ${assets.length} files of its page: ${named.join(', ')}`];
}

/** Only where none of them is answered: one alone may be a path that wants another method or a user. */
function callFaults(calls: readonly string[], unanswered: readonly string[]): string[] {
  if (calls.length === 0 || unanswered.length < calls.length) return [];
  return [`has no server behind its page: the page calls ${calls.map(shortened).join(', ')}, and a page answers`];
}

function shortened(path: string): string {
  const line = toOneLine(path);
  return line.length > 60 ? `${line.slice(0, 59)}…` : line;
}

function said(error: unknown): string {
  return toOneLine(error instanceof Error ? error.message : String(error)).slice(0, 100);
}

async function inTurns<Item, Result>(items: readonly Item[], run: (item: Item) => Promise<Result>): Promise<Result[]> {
  const results: Result[] = [];
  for (let from = 0; from < items.length; from += atOnce)
    results.push(...(await Promise.all(items.slice(from, from + atOnce).map(run))));
  return results;
}
