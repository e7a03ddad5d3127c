// Requests to an app through the gateway itself, by the app's host name: probes whether anything answers.
import { request as requestHttp, type IncomingMessage } from 'node:http';
import { request as requestHttps } from 'node:https';
import { setTimeout as sleep } from 'node:timers/promises';
import { probeHeader } from '../../../crds/names.ts';
import type { ProbeResult } from '../../reconcile/snapshot.ts';

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
export class NoResponse extends Error {
  override readonly name = 'NoResponse';
}

/** How the platform itself reaches apps through the gateway. */
export interface GatewayAccess {
  /** Base URL of the gateway from inside. */
  readonly url: string;
  /** Shown to the activator, so that the request wakes no app. Routes to apps remove it. */
  readonly token?: string | undefined;
}

export interface GatewayRequest {
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
