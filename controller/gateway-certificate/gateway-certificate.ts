// Looks at the gateway's certificate again and again, so that its end is known before visitors see it.
import type { Registry } from 'prom-client';
import { messageOf, sleep, systemClock, type Logger } from '../../lib/kubernetes/index.ts';
import { certificateEnd } from './certificate.ts';
import { gatewayMetrics } from './metrics.ts';

export interface CertificateTaskOptions {
  /** Base URL of the gateway from inside. */
  readonly gateway: string;
  /** Domain of the apps. */
  readonly domain: string;
  readonly intervalMs: number;
  readonly log: Logger;
  readonly registry: Registry;
}

/** Runs until the signal is aborted. */
export function createCertificateTask(options: CertificateTaskOptions): (signal: AbortSignal) => Promise<void> {
  const { gateway, domain, log } = options;
  const metrics = gatewayMetrics(options.registry);

  async function look(): Promise<void> {
    try {
      // A name that no app has: a certificate for all apps covers it.
      const end = await certificateEnd(gateway, `certificate.${domain}`);
      metrics.expiry.set({ domain }, end / 1000);
      metrics.up.set({ domain }, 1);
    } catch (error) {
      metrics.up.set({ domain }, 0);
      log.warn({ gateway, error: messageOf(error) }, 'the gateway takes no TLS connection');
    }
  }

  return async (signal) => {
    while (!signal.aborted) {
      await look();
      await sleep(systemClock, options.intervalMs, signal);
    }
  };
}
