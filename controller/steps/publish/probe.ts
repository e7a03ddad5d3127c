// Asks an app through the gateway itself, by its own host name, whether anything answers.
import { setTimeout as sleep } from 'node:timers/promises';
import type { ProbeResult } from '../../reconcile/snapshot.ts';
import { type GatewayAccess, askThroughGateway, NoResponse } from './gateway.ts';

/** What is asked of an app: its host, and how often before a failure is reported. */
export interface ProbeQuery {
  readonly host: string;
  readonly attempts: number;
}

const defaultTimeoutMs = 5_000;
/** A gateway that restarts or a pod that ends is away for a moment. */
const pauseMs = 2_000;
const gatewayFailures: ReadonlySet<number> = new Set([502, 503, 504]);

/**
 * Requests `https://<host>/` at the gateway's own address, up to `attempts` times while the response is a failure. Never
 * rejects. Any answer counts but those that a gateway gives when nobody is behind it.
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
