// Metrics of the gateway, as the operator reaches it.
import { Gauge, type Registry } from 'prom-client';

export interface GatewayMetrics {
  /** 1 where a TLS connection could be made. */
  readonly up: Gauge<'domain'>;
  /** Seconds since 1970. */
  readonly expiry: Gauge<'domain'>;
}

/** Only the leader looks, so there is no sample without a label that another replica would export as 0. */
export function gatewayMetrics(registry: Registry): GatewayMetrics {
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
