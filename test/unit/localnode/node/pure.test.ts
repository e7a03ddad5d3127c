// Small decisions of the node: mounts, tables, renewal, capabilities, addresses.
import assert from 'node:assert/strict';
import { readFile, readdir } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { test } from 'vitest';
import { isNewEnough } from '../../../../localnode/binaries/toolchain.ts';
import { recipes } from '../../../../localnode/binaries/recipes.ts';
import { computeContentKey } from '../../../../localnode/files.ts';
import { fillIn } from '../../../../localnode/kubectl.ts';
import { formatExtensions, shouldRenew } from '../../../../localnode/node/control-plane/certificates.ts';
import { hasSysResource } from '../../../../localnode/node/daemons/containerd.ts';
import { computeFirstServiceAddress } from '../../../../localnode/node/control-plane/control-plane.ts';
import { listMountsUnder } from '../../../../localnode/node/down.ts';
import { isEmptyTable } from '../../../../localnode/node/network/network.ts';
import { formatHttpsUrl } from '../../../../localnode/node/gateway/ports.ts';
import { listUnreadyPods } from '../../../../cli/node/status.ts';
import { formatElapsed } from '../../../../cli/report.ts';

test('lists mounts under our folders deepest first, later ones before earlier, and no others', () => {
  const line = (point: string): string => `36 35 98:0 /mnt1 ${point} rw,noatime shared:1 - ext3 /dev/root rw`;
  const info = [
    '/',
    '/run/moorage',
    '/run/moorage/a/b',
    '/run/moorage-other',
    '/var/lib/moorage/x\\040y',
    '/run/moorage/a/b',
  ]
    .map(line)
    .join('\n');
  assert.deepEqual(listMountsUnder(info, ['/run/moorage', '/var/lib/moorage']), [
    '/run/moorage/a/b',
    '/var/lib/moorage/x y',
    '/run/moorage/a/b',
    '/run/moorage',
  ]);
});

test('treats only a table without rules as empty', () => {
  assert.ok(
    isEmptyTable(
      'table ip nat {\n\tchain PREROUTING {\n\t\ttype nat hook prerouting priority dstnat; policy accept;\n\t}\n}',
    ),
  );
  assert.ok(
    !isEmptyTable(
      'table ip nat {\n\tchain PREROUTING {\n\t\ttype nat hook prerouting priority dstnat; policy accept;\n\t\tcounter accept\n\t}\n}',
    ),
  );
});

test('renews a missing or unreadable certificate', () => {
  assert.ok(shouldRenew(undefined, new Date()));
  assert.ok(shouldRenew('nonsense', new Date()));
});

test('lists hosts and addresses in a server certificate, and none in a client one', () => {
  assert.match(
    formatExtensions({ name: 'a', commonName: 'a', names: ['x.test'], addresses: ['10.0.0.1'], usage: ['serverAuth'] }),
    /subjectAltName=DNS:x\.test,IP:10\.0\.0\.1/,
  );
  assert.doesNotMatch(formatExtensions({ name: 'a', commonName: 'a', usage: ['clientAuth'] }), /subjectAltName/);
});

test('reads CAP_SYS_RESOURCE from bit 24', () => {
  assert.ok(hasSysResource('Name:\tx\nCapEff:\t000001ffffffffff\n'));
  assert.ok(!hasSysResource('CapEff:\t000001fffeffffff\n'));
  assert.ok(!hasSysResource(''));
});

test('computes the first address of a service range', () => {
  assert.equal(computeFirstServiceAddress('10.96.0.0/16'), '10.96.0.1');
});

test('rejects a placeholder without a value', () => {
  assert.equal(fillIn('image: "@IMAGE:git-server@" @ a@b.c', { 'IMAGE:git-server': 'x' }), 'image: "x" @ a@b.c');
  assert.throws(() => fillIn('port: @HTTP_PORT@', {}), /@HTTP_PORT@/);
});

test('names every image that the node installs by digest', async () => {
  const root = join(import.meta.dirname, '../../../..');
  const folder = join(root, 'localnode/manifests');
  const files = (await readdir(folder, { withFileTypes: true })).filter((entry) => entry.isFile());
  const images = await Promise.all(
    [...files.map(({ name }) => join(folder, name)), join(root, 'cli/kind/kind-network.yaml')].map(async (file) => {
      const text = await readFile(file, 'utf8');
      return [...text.matchAll(/^\s*(?:- )?image: (.+)$/gm)].map(([, image]) => `${basename(file)}: ${image}`);
    }),
  );
  assert.deepEqual(
    images.flat().filter((image) => !/: ["']@IMAGE:[a-z-]+@["']$/.test(image)),
    [],
  );
  assert.ok(images.flat().length >= 8);
});

test('computes different keys for parts that join to the same text', () => {
  assert.notEqual(computeContentKey(['ab', 'c']), computeContentKey(['a', 'bc']));
});

test('accepts a Go toolchain from the pinned version on', () => {
  assert.ok(isNewEnough('go version go1.26.8 linux/amd64'));
  assert.ok(isNewEnough('go version go2.0 linux/amd64'));
  assert.ok(!isNewEnough('go version go1.19.8 linux/amd64'));
  assert.ok(!isNewEnough(''));
});

test('gives every recipe the version that its module pins', async () => {
  for (const recipe of recipes) {
    const folder = 'module' in recipe ? recipe.module : recipe.part;
    const module = await readFile(
      join(import.meta.dirname, '..', '..', '..', '..', 'localnode', 'binaries', folder, 'go.mod'),
      'utf8',
    );
    assert.ok(module.includes(` ${recipe.version}`), `${folder}/go.mod does not require ${recipe.version}`);
  }
});

test('omits the default port from addresses', () => {
  assert.equal(formatHttpsUrl('a.test', { https: 443 }), 'https://a.test');
  assert.equal(formatHttpsUrl('a.test', { https: 8443 }), 'https://a.test:8443');
});

test('counts pods that do not serve as missing, but not finished or terminating ones', () => {
  const pod = (name: string, phase: string, ready: string): Parameters<typeof listUnreadyPods>[0]['items'][number] => ({
    metadata: { namespace: 'n', name },
    status: { phase, conditions: [{ type: 'Ready', status: ready }] },
  });
  const leaving = {
    ...pod('e', 'Running', 'False'),
    metadata: { namespace: 'n', name: 'e', deletionTimestamp: '2026-01-01T00:00:00Z' },
  };
  assert.deepEqual(
    listUnreadyPods({
      items: [
        pod('a', 'Running', 'True'),
        pod('b', 'Running', 'False'),
        pod('c', 'Succeeded', 'False'),
        pod('d', 'Pending', 'False'),
        leaving,
      ],
    }),
    ['n/b (Running)', 'n/d (Pending)'],
  );
});

test('formats elapsed time', () => {
  assert.deepEqual([0, 940, 12_400, 200_000].map(formatElapsed), ['0.0 s', '0.9 s', '12 s', '3 min 20 s']);
});
