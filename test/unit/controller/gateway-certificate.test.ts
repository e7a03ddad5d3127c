// The task: until when the certificate is valid that the gateway presents, and that nothing is there to present one.
import assert from 'node:assert/strict';
import { pino } from 'pino';
import { Registry } from 'prom-client';
import { test } from 'vitest';
import { createCertificateTask } from '../../../controller/gateway-certificate.ts';
import { startGateway } from '../../support/monitoring/stand-ins.ts';

async function lookOnce(registry: Registry, gateway: string): Promise<string> {
  const ending = new AbortController();
  const log = pino({ level: 'silent' });
  const run = createCertificateTask({ gateway, domain: 'apps.localhost', intervalMs: 60_000, log, registry });
  const running = run(ending.signal);
  // It looks before it waits, and an abort ends only the wait.
  ending.abort();
  await running;
  return registry.metrics();
}

test("reports the certificate's expiry, and later that the gateway does not respond", async () => {
  const gateway = await startGateway(3);
  const url = `https://127.0.0.1:${gateway.port}`;
  const text = await lookOnce(new Registry(), url);
  await gateway.stop();
  assert.match(text, /^moorage_gateway_up\{domain="apps\.localhost"\} 1$/m);
  const [, end = ''] =
    /^moorage_gateway_certificate_expiry_timestamp_seconds\{domain="apps\.localhost"\} (\d+)$/m.exec(text) ?? [];
  assert.ok(Math.abs(Number(end) - Date.now() / 1000 - 3 * 86_400) < 600, end);
  const gone = await lookOnce(new Registry(), url);
  assert.match(gone, /^moorage_gateway_up\{domain="apps\.localhost"\} 0$/m);
  assert.doesNotMatch(gone, /expiry_timestamp_seconds\{/);
});
