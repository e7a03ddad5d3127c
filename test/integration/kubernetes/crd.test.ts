// The CRD on a real API server: what it refuses and in which words, what it fills in, and that it agrees with zod.
import assert from 'node:assert/strict';
import fc from 'fast-check';
import { afterAll, beforeAll, test } from 'vitest';
import { findPins, resolveSpec } from '../../../crds/effective-settings.ts';
import { hostedApp, spec as specSchema, type StoredSpec } from '../../../crds/hosted-app.ts';
import { reservedSlugs } from '../../../crds/names.ts';
import { goodSpec, oddSpec } from '../../support/crds/arbitraries.ts';
import { refusals, structuralRefusals } from '../../support/crds/refusals.ts';
import { ApiError, type Client } from '../../../lib/kubernetes/index.ts';
import {
  createClientAs,
  startApiServer,
  waitUntilEstablished,
  type ApiServer,
} from '../../support/kubernetes/api-server.ts';
import { waitFor } from '../../support/operator/world.ts';
import { chooseRepetitions } from '../../support/repetitions.ts';

let server: ApiServer;
let client: Client;
const crd = new URL('../../../crds/hostedapps.yaml', import.meta.url).pathname;
const source = { repo: 'https://github.com/owner/name' };

beforeAll(async () => {
  server = await startApiServer();
  await server.kubectl('apply', '--server-side', '-f', crd);
  await waitUntilEstablished(server, 'hostedapps.moorage.dev');
  client = await createClientAs(server);
});
afterAll(async () => {
  client.close();
  await server.stop();
});

function create(spec: unknown, name: string, options = ''): Promise<unknown> {
  const body = { apiVersion: 'moorage.dev/v1alpha1', kind: 'HostedApp', metadata: { name }, spec };
  const path = `/apis/moorage.dev/v1alpha1/namespaces/default/hostedapps?fieldValidation=Strict${options}`;
  return client.request({ method: 'POST', path, body });
}

/** What the API server says to a spec: the object as it would be stored, or its refusal. Nothing is stored. */
async function offer(spec: unknown, name = 'hello'): Promise<{ taken: unknown } | { refused: string }> {
  try {
    return { taken: await create(spec, name, '&dryRun=All') };
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    const { message, reason } = error;
    assert.ok(['Invalid', 'BadRequest'].includes(reason), `${reason}: ${message}`);
    return { refused: message };
  }
}

test('applies the same defaults as zod, except for fields that an author can set', async () => {
  const answer = await offer({ source });
  assert.ok('taken' in answer, JSON.stringify(answer));
  const { spec } = answer.taken as { spec: StoredSpec };
  assert.deepEqual(resolveSpec({ spec }, undefined), specSchema.parse({ source }));
  assert.deepEqual(findPins(spec), []);
  assert.deepEqual([spec.run, spec.agents, spec.suspend], [{ replicas: 1, resources: {}, secrets: [] }, {}, false]);
});

for (const { what, given, fix } of refusals) {
  test(`rejects ${what}, with the fix`, async () => {
    const answer = await offer(given);
    assert.ok('refused' in answer, 'was taken');
    assert.match(answer.refused, fix);
  });
}

for (const { what, given } of structuralRefusals) {
  test(`rejects ${what}`, async () => {
    const answer = await offer(given);
    assert.ok('refused' in answer, 'was taken');
  });
}

test('rejects names that cannot be a subdomain', async () => {
  for (const name of ['2048', 'a.b', 'a'.repeat(41)]) {
    const answer = await offer({ source }, name);
    assert.ok(
      'refused' in answer && /metadata\.name: .*at most 40 lower-case letters/.test(answer.refused),
      `${name}: ${JSON.stringify(answer)}`,
    );
  }
  for (const name of [...reservedSlugs, 'mx1', 'ns2', 'xn--80ak6aa92e']) {
    const answer = await offer({ source }, name);
    assert.ok(
      'refused' in answer && answer.refused.includes('choose another name'),
      `${name}: ${JSON.stringify(answer)}`,
    );
  }
  assert.ok('taken' in (await offer({ source }, `a${'b'.repeat(39)}`)));
});

test('keeps an app whose name becomes reserved later, and accepts updates of it', async () => {
  const rules = '/spec/versions/0/schema/openAPIV3Schema/x-kubernetes-validations';
  const without = JSON.stringify([{ op: 'remove', path: rules }]);
  await server.kubectl('patch', 'crd', 'hostedapps.moorage.dev', '--type=json', '-p', without);
  await waitFor('the older CRD', async () => 'taken' in (await offer({ source }, 'wpad')));
  await create({ source }, 'wpad');
  await server.kubectl('apply', '--server-side', '--force-conflicts', '-f', crd);
  await waitFor('the newer CRD', async () => 'refused' in (await offer({ source }, 'autodiscover')));
  await server.kubectl('patch', 'happ', 'wpad', '--type=merge', '-p', '{"spec":{"suspend":true}}');
  const status = JSON.stringify({ status: { phase: 'Suspended' } });
  await server.kubectl('patch', 'happ', 'wpad', '--subresource=status', '--type=merge', '-p', status);
});

test("rejects a change of an app's repository, and accepts all others", async () => {
  await create({ source }, 'fixed');
  const patch = (spec: object): Promise<string> =>
    server.kubectl('patch', 'happ', 'fixed', '--type=merge', '-p', JSON.stringify({ spec }));
  await assert.rejects(patch({ source: { repo: 'https://github.com/owner/other' } }), /create a new HostedApp/);
  await patch({ source: { revision: 'main', path: 'app' }, suspend: true });
});

test('writes status separately from spec, and shows it in kubectl get', async () => {
  await create({ source }, 'shown');
  await server.kubectl('patch', 'happ', 'shown', '--type=merge', '-p', JSON.stringify({ status: { phase: 'Live' } }));
  assert.equal(
    await server.kubectl('get', 'happ', 'shown', '-o', 'jsonpath={.status}'),
    '',
    'status written through the object itself',
  );
  const status = {
    phase: 'Live',
    url: 'https://shown.moorage.localhost/',
    shortCommit: '0123456',
    conditions: [
      {
        type: 'Ready',
        status: 'True',
        reason: 'Serving',
        message: 'It answers.',
        lastTransitionTime: '2026-01-01T00:00:00Z',
      },
    ],
  };
  await server.kubectl(
    'patch',
    'happ',
    'shown',
    '--subresource=status',
    '--type=merge',
    '-p',
    JSON.stringify({ status, spec: { suspend: true } }),
  );
  const shown = hostedApp.parse(JSON.parse(await server.kubectl('get', 'happ', 'shown', '-o', 'json')));
  assert.deepEqual([shown.status, shown.spec.suspend, shown.metadata.generation], [status, false, 1]);
  const [head, row] = (await server.kubectl('get', 'happ', 'shown', '-o', 'wide'))
    .split('\n')
    .map((line) => line.trim().split(/\s+/));
  assert.deepEqual(head, ['NAME', 'REPO', 'PHASE', 'URL', 'COMMIT', 'CHECKED', 'AGE', 'READY', 'REASON', 'IDLE']);
  assert.deepEqual(row?.toSpliced(5, 1), ['shown', source.repo, 'Live', status.url, '0123456', 'True', 'Serving']);
  assert.equal(
    await server.kubectl('get', 'moorage', '--field-selector', 'status.phase=Live', '-o', 'name'),
    'hostedapp.moorage.dev/shown',
  );
});

test('kubectl explain describes every field of run', async () => {
  const said = await server.kubectl('explain', 'happ.spec.run');
  for (const word of ['$PORT', '0.0.0.0', 'healthPath', 'startupTime', '10s to 30m'])
    assert.ok(said.includes(word), `${word} is not in:\n${said}`);
});

test('property: accepts every spec that zod accepts, with the same result', async () => {
  await fc.assert(
    fc.asyncProperty(goodSpec, async (given) => {
      const parsed = specSchema.safeParse(given);
      assert.ok(parsed.success, `zod refuses ${JSON.stringify(given)}: ${parsed.error?.message ?? ''}`);
      const answer = await offer(given);
      assert.ok('taken' in answer, JSON.stringify(answer));
      const { spec } = answer.taken as { spec: StoredSpec };
      assert.deepEqual(specSchema.parse(spec), parsed.data);
    }),
    { numRuns: chooseRepetitions({ usual: 100, deep: 3_000 }) },
  );
});

test('accepts and rejects the same odd values as zod', async () => {
  const seen = { taken: 0, refused: 0 };
  await fc.assert(
    fc.asyncProperty(oddSpec, async (given) => {
      const answer = await offer(given);
      assert.equal(
        'taken' in answer,
        specSchema.safeParse(given).success,
        `the API server says: ${JSON.stringify(answer)}`,
      );
      seen['taken' in answer ? 'taken' : 'refused'] += 1;
    }),
    { numRuns: chooseRepetitions({ usual: 300, deep: 10_000 }) },
  );
  assert.ok(seen.taken > 50 && seen.refused > 50, `the values were not odd enough: ${JSON.stringify(seen)}`);
});
