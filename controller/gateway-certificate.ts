// Watches the gateway's certificate, so that its expiry is known before visitors see it.
import { once } from 'node:events';
import { connect } from 'node:tls';
import { Gauge, type Registry } from 'prom-client';
import { toErrorMessage, sleep, systemClock, type Logger } from '../lib/kubernetes/index.ts';

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
  const metrics = createGatewayMetrics(options.registry);

  async function look(): Promise<void> {
    try {
      // A name that no app has: a certificate for all apps covers it.
      const end = await readCertificateEnd(gateway, `certificate.${domain}`);
      metrics.expiry.set({ domain }, end / 1000);
      metrics.up.set({ domain }, 1);
    } catch (error) {
      metrics.up.set({ domain }, 0);
      log.warn({ gateway, error: toErrorMessage(error) }, 'the gateway does not accept TLS connections');
    }
  }

  return async (signal) => {
    while (!signal.aborted) {
      await look();
      await sleep(systemClock, options.intervalMs, signal);
    }
  };
}

const timeoutMs = 10_000;

/**
 * Reads when the certificate that the gateway presents for a host expires, in milliseconds since 1970, by a TLS connection
 * like a visitor's. Any certificate is accepted: whether its issuer is trusted is not checked here.
 *
 * @throws Error when no TLS connection can be made in 10 s
 */
export async function readCertificateEnd(gateway: string, host: string): Promise<number> {
  const { hostname, port } = new URL(gateway);
  const socket = connect({
    host: hostname.replace(/^\[|\]$/g, ''),
    port: port === '' ? 443 : Number(port),
    servername: host,
    rejectUnauthorized: false,
  });
  try {
    await once(socket, 'secureConnect', { signal: AbortSignal.timeout(timeoutMs) });
    const end = Date.parse(socket.getPeerCertificate().valid_to);
    if (Number.isNaN(end)) throw new Error(`the gateway presented no certificate for ${host}`);
    return end;
  } finally {
    socket.destroy();
  }
}

export interface GatewayMetrics {
  /** 1 where a TLS connection could be made. */
  readonly up: Gauge<'domain'>;
  /** Seconds since 1970. */
  readonly expiry: Gauge<'domain'>;
}

/** Only the leader connects. Every sample has a label, since another replica would export one without as 0. */
export function createGatewayMetrics(registry: Registry): GatewayMetrics {
  const registers = [registry];
  return {
    up: new Gauge({
      name: 'moorage_gateway_up',
      help: '1 if the gateway took the last TLS connection for this domain, else 0. Seen by the leader, through gateway.probeUrl.',
      labelNames: ['domain'],
      registers,
    }),
    expiry: new Gauge({
      name: 'moorage_gateway_certificate_expiry_timestamp_seconds',
      help: 'When the certificate that the gateway presents for this domain ends, in seconds since 1970.',
      labelNames: ['domain'],
      registers,
    }),
  };
}
