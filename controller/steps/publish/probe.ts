// Requests to an app through the gateway itself, by the app's host name: probes whether its URL shows a page.
import { request as requestHttp, type IncomingMessage } from 'node:http';
import { request as requestHttps } from 'node:https';
import { setTimeout as sleep } from 'node:timers/promises';
import { Parser } from 'htmlparser2';
import { probeHeader } from '../../../crds/names.ts';
import { omitUndefined } from '../../../lib/values.ts';
import { clean } from '../../pipeline/text.ts';
import type { ProbeResult } from '../../reconcile/snapshot.ts';

/** A probe: the host, where a page may be if there is none at /, and how many tries before a failure is reported. */
export interface ProbeQuery {
  readonly host: string;
  readonly paths: readonly string[];
  readonly attempts: number;
  readonly timeoutMs?: number | undefined;
}

const defaultTimeoutMs = 5_000;
/** A gateway that restarts or a pod that ends is away for a moment. */
const pauseMs = 2_000;
const gatewayFailures: ReadonlySet<number> = new Set([502, 503, 504]);
const errorBytes = 64 * 1024;
const errorMs = 2_000;
const longestText = 2_000;

/**
 * Requests `https://<host>/` at the gateway's address, up to `attempts` times while the response is a failure, and follows
 * redirects within the app. If there is no page at /, tries `paths` and the usual paths of API descriptions. Never rejects.
 * Any answer counts except those that a gateway gives when nothing is behind it.
 */
export async function probe(
  gateway: GatewayAccess,
  host: string,
  {
    attempts = 1,
    timeoutMs = defaultTimeoutMs,
    pause = pauseMs,
    paths = [],
  }: Partial<Omit<ProbeQuery, 'host'>> & { pause?: number } = {},
): Promise<ProbeResult> {
  for (let attempt = 1; ; attempt += 1) {
    const result = await probeOnce({ gateway, host, timeoutMs }, paths);
    if (attempt >= attempts || !isFailure(result)) return result;
    await sleep(pause);
  }
}

/** The app or its gateway responds with an error, or nothing responds. Silence and a bare 404 may be the app's own. */
export function isFailure({ responds, isDoubtful, status = 0 }: ProbeResult): boolean {
  return status >= 500 || (!responds && isDoubtful !== true);
}

/** Returns whether this status means that there is nothing at the path. */
export function isMissing(status: number | undefined): boolean {
  return status === 404 || status === 410;
}

type Target = Omit<GatewayRequest, 'path'>;

async function probeOnce(target: Target, paths: readonly string[]): Promise<ProbeResult> {
  try {
    const { response, url } = await followRedirects({ ...target, path: '/', accept: 'text/html,*/*' });
    const status = response.statusCode ?? 0;
    const isDoubtful = isBare404(status, response.headers);
    const error = await readError(response, url);
    const instead = isMissing(status) ? await findOtherPage(target, [...paths, ...error.links]) : undefined;
    return omitUndefined({
      responds: instead !== undefined || (!gatewayFailures.has(status) && !isDoubtful),
      isDoubtful: isDoubtful && instead === undefined,
      status,
      detail: `the response was HTTP ${status}`,
      path: url.pathname === '/' ? undefined : url.pathname.slice(0, longestPath),
      instead,
      text: error.text,
    });
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

/** Paths where frameworks and servers describe or list their API, the readable ones first. */
const descriptions = [
  '/docs',
  '/redoc',
  '/swagger',
  '/swagger/index.html',
  '/swagger-ui/index.html',
  '/api-docs',
  '/api/docs',
  '/openapi.json',
  '/openapi.yaml',
  '/api/openapi.json',
  '/swagger.json',
  '/v3/api-docs',
  '/graphql',
  '/sse',
  '/v1/models',
];
/** An endpoint exists if it rejects a bare GET like this: for its method, its parameters or a missing login. */
const rejections: ReadonlySet<number> = new Set([400, 401, 403, 405, 406, 415, 422]);
/** Of other paths, only those of protocols do so. */
const endpoints: ReadonlySet<string> = new Set(['/graphql', '/sse', '/v1/models']);
const otherPagesAtOnce = 4;
/** Each of them, if the app is slow. */
const otherPageMs = 3_000;
const longestPath = 200;

async function findOtherPage(target: Target, named: readonly string[]): Promise<string | undefined> {
  const candidates = [...new Set([...named, ...descriptions])].filter((path) => path !== '/');
  for (let from = 0; from < candidates.length; from += otherPagesAtOnce) {
    const batch = candidates.slice(from, from + otherPagesAtOnce);
    const exist = await Promise.all(
      batch.map((path) => hasPage(target, path, named.includes(path) || endpoints.has(path))),
    );
    const found = batch.find((_, index) => exist[index] === true);
    if (found !== undefined) return found.slice(0, longestPath);
  }
  return undefined;
}

async function hasPage(target: Target, path: string, isEndpoint: boolean): Promise<boolean> {
  try {
    const timeoutMs = Math.min(target.timeoutMs, otherPageMs);
    const { response } = await followRedirects({ ...target, path, timeoutMs });
    const status = response.statusCode ?? 0;
    response.destroy();
    return (status >= 200 && status < 400) || (isEndpoint && rejections.has(status));
  } catch {
    return false;
  }
}

const maximumLinks = 4;
/** Elements that begin a new line. */
const blocks = /^(?:h[1-6]|p|div|li|tr|td|th|br|pre|title|table|ul|section|dt|dd)$/;
const unseen = /^(?:script|style|head|svg|noscript|template)$/;

/** Reads the text of an error page, and the links on it to other pages of the app. */
async function readError(
  response: IncomingMessage,
  url: URL,
): Promise<{ readonly text?: string | undefined; readonly links: readonly string[] }> {
  const status = response.statusCode ?? 0;
  if (status < 400) {
    response.destroy();
    return { links: [] };
  }
  const body = await readBody(response, errorBytes, errorMs).catch(() => '');
  const isHtml = (response.headers['content-type'] ?? '').includes('html');
  const { text, links } = isHtml ? readHtml(body, url) : { text: body, links: [] };
  const lines = clean(text)
    .split('\n')
    .map((line) => line.replace(/\s+/g, ' ').trim())
    .filter((line) => line !== '');
  const shown = lines.join('\n').slice(0, longestText);
  return { links, ...(shown === '' || isMissing(status) ? {} : { text: shown }) };
}

function readHtml(html: string, page: URL): { text: string; links: string[] } {
  const links = new Set<string>();
  let text = '';
  let hidden = 0;
  const parser = new Parser({
    onopentag(name, { href }) {
      if (unseen.test(name)) hidden += 1;
      if (blocks.test(name)) text += '\n';
      const url = name === 'a' && href !== undefined ? URL.parse(href, page.href) : null;
      const isOwn = url?.host === page.host && url.pathname !== page.pathname;
      if (isOwn && links.size < maximumLinks) links.add(`${url.pathname}${url.search}`);
    },
    ontext(part) {
      if (hidden === 0) text += part;
    },
    onclosetag(name) {
      if (unseen.test(name)) hidden = Math.max(0, hidden - 1);
      if (blocks.test(name)) text += '\n';
    },
  });
  parser.end(html);
  return { text, links: [...links] };
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

const maximumRedirects = 3;

/** Requests a path and follows redirects within the app. The caller reads or destroys the response. */
export async function followRedirects(
  request: GatewayRequest,
): Promise<{ readonly response: IncomingMessage; readonly url: URL }> {
  let url = new URL(request.path, `https://${request.host}`);
  for (let redirects = 0; ; redirects += 1) {
    const response = await requestThroughGateway({ ...request, path: `${url.pathname}${url.search}` });
    const status = response.statusCode ?? 0;
    const next = URL.parse(response.headers.location ?? '', url.href);
    const follows = status >= 300 && status < 400 && next?.hostname === request.host && redirects < maximumRedirects;
    if (!follows) return { response, url };
    response.destroy();
    url = next;
  }
}

/**
 * Resolves with the response once its head has arrived; the caller reads or destroys it.
 *
 * @throws NoResponse after `timeoutMs`
 * @throws Error for any other failure
 */
export function requestThroughGateway({
  gateway,
  host,
  path,
  timeoutMs,
  accept,
}: GatewayRequest): Promise<IncomingMessage> {
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
