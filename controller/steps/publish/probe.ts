// Asks an app through the gateway itself, by its own host name, whether anything answers.
import type { ProbeResult } from '../../reconcile/snapshot.ts';
import { askThroughGateway, NoResponse } from './gateway.ts';

const defaultTimeoutMs = 5_000;
const gatewayFailures: ReadonlySet<number> = new Set([502, 503, 504]);

/**
 * Asks `https://<host>/` at the gateway's own address. Never rejects. Any answer counts but
 * those that a gateway gives when nobody is behind it.
 */
export async function probe(gateway: string, host: string, timeoutMs = defaultTimeoutMs): Promise<ProbeResult> {
  try {
    const response = await askThroughGateway({ gateway, host, path: '/', timeoutMs });
    const status = response.statusCode ?? 0;
    response.destroy();
    const isDoubtful = isBare404(status, response.headers);
    const responds = !gatewayFailures.has(status) && !isDoubtful;
    return { responds, isDoubtful, status, detail: `the response was HTTP ${status}` };
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error);
    // A gateway that knows no such host says so at once, so it is the app that takes its time.
    const isDoubtful = error instanceof NoResponse;
    return {
      responds: false,
      isDoubtful,
      detail: isDoubtful ? `there was ${message}` : `the request failed: ${message}`,
    };
  }
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
