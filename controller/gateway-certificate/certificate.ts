// Reads until when the gateway's certificate is valid, by a TLS connection as a visitor would make it.
import { once } from 'node:events';
import { connect } from 'node:tls';

const timeoutMs = 10_000;

/**
 * When the certificate ends that the gateway presents for a host, in milliseconds since 1970. Any certificate will do: who
 * may vouch for it is another matter.
 *
 * @throws Error when no TLS connection can be made in 10 s
 */
export async function certificateEnd(gateway: string, host: string): Promise<number> {
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
