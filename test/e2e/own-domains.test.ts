// An app answers at a domain of its author: proven by a record in DNS, over HTTPS with a certificate of its own, protected like
// the app, and gone when the author removes it. The records are in the cluster's DNS.
import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { TLSSocket } from 'node:tls';
import { request as requestPlain } from 'node:http';
import { request } from 'node:https';
import { afterAll, beforeAll, test } from 'vitest';
import { z } from 'zod';
import { formatDomainGatewayName } from '../../crds/domains.ts';
import { readRememberedPorts } from '../../localnode/node/gateway/ports.ts';
import {
  baseUrl,
  deleteApps,
  get,
  readApp,
  removeFiles,
  removeZone,
  runKubectl,
  serveZone,
  submit,
  waitFor,
  writeFiles,
} from '../support/cluster.ts';

const name = 'e2e-own-domain';
const zone = 'own-domains.example.com';
const domain = `shop.${zone}`;
const server = `require('http').createServer((request, response) => {
  response.setHeader('content-type', 'text/html');
  response.end('host ' + request.headers.host);
}).listen(process.env.PORT);
`;
let folder: string;
let authorKey = '';

beforeAll(async () => {
  folder = writeFiles(name, {
    'server.js': server,
    'package.json': `{"name": "${name}", "scripts": {"start": "node server.js"}}`,
  });
  await serveZone(zone, {});
});
afterAll(async () => {
  removeFiles(folder);
  await removeZone(zone);
  await deleteApps(name);
});

const record = z.object({ name: z.string(), value: z.string() });
const domainView = z.looseObject({
  ...{ state: z.string(), message: z.string(), url: z.string().optional() },
  records: z.object({ txt: record, cname: record }),
});
const answer = z.looseObject({
  ...{ key: z.string().optional(), line: z.string().optional() },
  domains: z.array(domainView).optional(),
});

async function ask(
  method: 'GET' | 'PUT' | 'POST' | 'DELETE',
  path: string,
  json?: unknown,
): Promise<z.output<typeof answer>> {
  const { status, body } = await get(new URL(`/api/apps/${name}${path}`, baseUrl), {
    ...{ method, headers: { authorization: `Bearer ${authorKey}`, 'content-type': 'application/json' } },
    ...(json === undefined ? {} : { body: JSON.stringify(json) }),
  });
  assert.ok(status < 300, `${method} ${path}: ${status} ${body}`);
  return answer.parse(JSON.parse(body));
}

async function awaitState(state: string): Promise<z.output<typeof domainView>> {
  let last = '';
  return waitFor(`the domain to be ${state}`, async () => {
    const [found] = (await ask('GET', '/domains')).domains ?? [];
    last = JSON.stringify(found);
    return found?.state === state ? found : undefined;
  }).catch((error: unknown) => {
    throw new Error(`${String(error)}; the domain is ${last}`);
  });
}

/** One visit over HTTPS; the certificate must be one of this domain alone, by the authority of domains. */
function visit(
  headers: Readonly<Record<string, string>> = {},
): Promise<{ status: number; body: string; names: string }> {
  return new Promise((resolve, reject) => {
    const asked = request(
      {
        ...{
          host: '127.0.0.1',
          port: baseUrl.port === '' ? 443 : Number(baseUrl.port),
          servername: domain,
          agent: false,
        },
        ...{ ca: readFileSync('.moorage/domains-ca.crt'), headers: { host: domain, ...headers } },
      },
      (response) => {
        const names = (response.socket as TLSSocket).getPeerCertificate().subjectaltname ?? '';
        let body = '';
        response.setEncoding('utf8').on('data', (chunk: string) => (body += chunk));
        response.on('end', () => {
          resolve({ status: response.statusCode ?? 0, body, names });
        });
      },
    );
    asked.on('error', reject).end();
  });
}

test('an author adds a domain, and nothing happens until DNS has its record', async () => {
  assert.equal((await submit(folder)).exitCode, 0);
  const issued = await get(new URL(`/api/apps/${name}/keys`, baseUrl), { method: 'POST' });
  const { key = '', line = '' } = answer.parse(JSON.parse(issued.body));
  authorKey = key;
  writeFileSync(join(folder, '.moorage-owner'), `${line}\n`);
  assert.equal((await submit(folder)).exitCode, 0);
  await ask('POST', '/domains', { domain });
  await waitFor('a lookup', async () => (await readApp(name)).status?.domains?.[0]?.checkedAt);
  const { records } = await awaitState('Pending');
  await serveZone(zone, { [records.txt.name]: records.txt.value });
});

test('with the record, the app answers at the domain over HTTPS, with a certificate of its own', async () => {
  await ask('POST', `/domains/${domain}/check`);
  const { url } = await awaitState('Active');
  assert.equal(new URL(url ?? '').hostname, domain);
  const seen = await waitFor('the certificate to be served', async () => visit().catch(() => undefined));
  assert.deepEqual([seen.status, seen.names], [200, `DNS:${domain}`]);
  assert.match(seen.body, new RegExp(`host ${domain}`));
  const { http } = await readRememberedPorts();
  const location = await new Promise((resolve, reject) => {
    const asked = requestPlain({ host: '127.0.0.1', port: http, path: '/a', headers: { host: domain } }, (response) => {
      response.resume();
      resolve(response.headers.location);
    });
    asked.on('error', reject).end();
  });
  assert.equal(location, `${new URL(url ?? '').origin}/a`);
});

test('a protected app is protected at its domain', async () => {
  await ask('PUT', '/access', { access: 'key' });
  const { key = '' } = await ask('POST', '/access/keys', { name: 'ci' });
  await waitFor('it to be enforced', async () => ((await visit()).status === 401 ? true : undefined));
  assert.equal((await visit({ authorization: `Bearer ${key}` })).status, 200);
  await ask('PUT', '/access', { access: 'public' });
  await waitFor('it to be public', async () => ((await visit()).status === 200 ? true : undefined));
});

test('a record that is gone starts the grace time, and a domain that is removed leaves nothing', async () => {
  await serveZone(zone, {});
  await ask('POST', `/domains/${domain}/check`);
  await awaitState('ProofLost');
  assert.equal((await visit()).status, 200);
  const secret = formatDomainGatewayName((await readApp(name)).metadata, domain);
  await ask('DELETE', `/domains/${domain}`);
  await waitFor('the domain to be gone', async () => {
    const seen = await visit().catch(() => ({ status: 0 }));
    return seen.status === 200 ? undefined : true;
  });
  await waitFor('the certificate to be deleted', async () => {
    const left = await runKubectl(
      '-n',
      'moorage-domains',
      'get',
      'secret,gateway',
      secret,
      '--ignore-not-found',
      '-o',
      'name',
    );
    return left === '' ? true : undefined;
  });
});
