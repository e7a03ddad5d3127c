// One request to an app through the gateway itself, by the app's own host name.
import { request as requestHttp, type IncomingMessage } from 'node:http';
import { request as requestHttps } from 'node:https';
import { probeHeader } from '../../../crds/names.ts';

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
 * Resolves with the response once its head is in; whoever asked reads or destroys it.
 *
 * @throws NoResponse after `timeoutMs`
 * @throws Error that says why else
 */
export function askThroughGateway({
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
    const asked = request(
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
        // What is asked is how the app answers. Who may vouch for the gateway's name is the caller's affair.
        rejectUnauthorized: false,
        agent: false,
        timeout: timeoutMs,
      },
      resolve,
    );
    let isConnected = false;
    asked.on('socket', (socket) => {
      socket.once(url.protocol === 'https:' ? 'secureConnect' : 'connect', () => (isConnected = true));
    });
    asked.on('timeout', () => {
      const limit = `within ${Math.ceil(timeoutMs / 100) / 10} s`;
      // A gateway that is away is not an app that takes its time.
      asked.destroy(isConnected ? new NoResponse(`no response ${limit}`) : new Error(`no connection ${limit}`));
    });
    asked.on('error', reject);
    asked.end();
  });
}

/** The body as text, cut after `bytes`. @throws Error when it breaks off or takes longer than `timeoutMs` */
export async function bodyOf(response: IncomingMessage, bytes: number, timeoutMs: number): Promise<string> {
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
