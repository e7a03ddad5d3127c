// Chooses the gateway's two ports on this machine, remembers them between runs, and creates the gateway's certificate.
import { createServer } from 'node:net';
import { join } from 'node:path';
import { copyFile, mkdir } from 'node:fs/promises';
import { z } from 'zod';
import { readText, writeText } from '../../files.ts';
import { paths } from '../../paths.ts';
import { ensureAuthority, ensureCertificate, type Authority } from '../control-plane/certificates.ts';
import { node } from '../settings.ts';

export interface GatewayPorts {
  http: number;
  https: number;
}

const schema = z.object({ http: z.number(), https: z.number() });
const file = join(paths.state, 'ports.json');

/** Returns the ports of the last `up`, or the defaults. */
export async function readRememberedPorts(): Promise<GatewayPorts> {
  const text = await readText(file);
  return text === undefined ? { http: 80, https: 443 } : schema.parse(JSON.parse(text));
}

async function isTaken(port: number): Promise<boolean> {
  return await new Promise((done) => {
    const server = createServer();
    server.once('error', () => {
      done(true);
    });
    server.listen(port, '127.0.0.1', () =>
      server.close(() => {
        done(false);
      }),
    );
  });
}

/**
 * Chooses and remembers the ports. Throws if another program uses one. The cluster's gateway does not listen on them:
 * the kernel redirects them.
 */
export async function choosePorts(requested: {
  http: number | undefined;
  https: number | undefined;
}): Promise<GatewayPorts> {
  const remembered = await readRememberedPorts();
  const ports = { http: requested.http ?? remembered.http, https: requested.https ?? remembered.https };
  if (ports.http === ports.https)
    throw new Error(
      `HTTP and HTTPS cannot share port ${ports.http}: choose another one with --http-port or --https-port`,
    );
  for (const name of ['https', 'http'] as const) {
    if (await isTaken(ports[name]))
      throw new Error(
        `port ${ports[name]} is already in use by another program: choose a free one with --${name}-port N`,
      );
  }
  await writeText(file, JSON.stringify(ports));
  return ports;
}

/** Formats an https address at these ports. */
export function formatHttpsUrl(host: string, ports: { https: number }): string {
  return `https://${host}${ports.https === 443 ? '' : `:${ports.https}`}`;
}

const domains = [node.baseDomain, node.appsDomain];

/**
 * Creates the authority and the wildcard certificate, and copies the authority's certificate next to the source. The
 * authority is kept in the cache, so that a browser that trusts it continues to do so.
 */
export async function ensureGatewayCertificate(): Promise<Authority> {
  const folder = join(paths.cache, 'authority');
  const authority = await ensureAuthority(folder, {
    name: 'ca',
    commonName: 'Moorage local authority',
    // A browser that trusts the authority accepts it only for these domains.
    permitted: domains,
  });
  await mkdir(paths.local, { recursive: true });
  await copyFile(authority.certificate, paths.authority);
  return await ensureCertificate(folder, authority, {
    name: 'wildcard',
    commonName: node.baseDomain,
    names: domains.flatMap((domain) => [domain, `*.${domain}`]),
    usage: ['serverAuth'],
  });
}
