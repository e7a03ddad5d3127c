// Asks an app through the gateway itself, by its own host name, whether anything answers.
import { request as requestHttp } from 'node:http';
import { request as requestHttps } from 'node:https';
import type { ProbeResult } from '../../reconcile/snapshot.ts';

const timeoutMs = 5_000;
const gatewayFailures: ReadonlySet<number> = new Set([502, 503, 504]);

/**
 * Asks `https://<host>/` at the gateway's own address. Never rejects. Any answer counts but
 * those that a gateway gives when nobody is behind it.
 */
export function probe(gateway: string, host: string): Promise<ProbeResult> {
  const url = new URL(gateway);
  const request = url.protocol === 'https:' ? requestHttps : requestHttp;
  const authority = url.port === '' ? host : `${host}:${url.port}`;
  return new Promise((resolve) => {
    const failed = (detail: string): void => {
      resolve({ responds: false, detail });
    };
    const asked = request(
      url,
      {
        headers: { host: authority, 'user-agent': 'moorage-operator' },
        servername: host,
        // What is asked is whether the app answers. Who may vouch for the gateway's name is the caller's affair.
        rejectUnauthorized: false,
        agent: false,
        timeout: timeoutMs,
      },
      (response) => {
        const status = response.statusCode ?? 0;
        response.destroy();
        const isDoubtful = isBare404(status, response.headers);
        resolve({
          responds: !gatewayFailures.has(status) && !isDoubtful,
          isDoubtful,
          status,
          detail: `HTTP ${status}`,
        });
      },
    );
    asked.on('timeout', () => {
      asked.destroy(new Error(`no response within ${timeoutMs / 1000} s`));
    });
    asked.on('error', (error) => {
      failed(error.message);
    });
    asked.end();
  });
}

/**
 * What gateways written in Go answer for a host that they do not know, and apps written in Go for a path that they do
 * not.
 */
function isBare404(status: number, headers: NodeJS.Dict<string | string[]>): boolean {
  return (
    status === 404 &&
    headers['content-type'] === 'text/plain; charset=utf-8' &&
    headers['content-length'] === '19' &&
    headers['server'] === undefined
  );
}
