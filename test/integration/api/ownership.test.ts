// Whoever submits a repository first claims its contact, and no more: the author replaces it, and it does not come back.
import assert from 'node:assert/strict';
import { afterAll, beforeAll, test } from 'vitest';
import { z } from 'zod';
import { findAuthorContact } from '../../../crds/effective-settings.ts';
import { hostedApp, type HostedApp } from '../../../crds/hosted-app.ts';
import { openContact } from '../../../lib/ownership-file.ts';
import { setStatus, since, startAppsServer } from '../../support/api/apps-server.ts';
import { namespaces, ownershipSecret, startReplica, type Replica } from '../../support/api/replica.ts';
import type { ApiServer } from '../../support/kubernetes/api-server.ts';

const stranger = { address: '203.0.113.66', contact: 'mallory@example.org', note: 'Buy coins at evil.example' };
const author = { address: '198.51.100.7', contact: 'me@example.org' };
const repository = 'https://git.test/octo/chat';

let server: ApiServer;
let api: Replica;
beforeAll(async () => {
  server = await startAppsServer();
  api = await startReplica(server);
});
afterAll(async () => {
  await api.stop();
  await server.stop();
});

const answer = z.looseObject({
  created: z.boolean().optional(),
  message: z.string(),
  contact_from: z.string().optional(),
  contact_verified: z.boolean().optional(),
  ownership: z.object({ file: z.string(), token: z.string() }).optional(),
});

async function submit({
  address,
  ...said
}: {
  address: string;
  contact?: string;
  note?: string;
}): Promise<z.output<typeof answer>> {
  const response = await api.submit('octo/chat', address, said);
  assert.equal(response.status, 200);
  return answer.parse(await response.json());
}

async function stored(): Promise<HostedApp> {
  return hostedApp.parse(JSON.parse(await server.kubectl('get', 'happ', 'chat', '-n', namespaces.apps, '-o', 'json')));
}

async function status(): Promise<string> {
  const response = await fetch(`${api.url}/api/submit-status/octo/chat`);
  const { contact_from: from, contact_verified: verified } = answer.parse(await response.json());
  return `${from} ${verified}`;
}

async function statusBecomes(wanted: string): Promise<void> {
  for (let tries = 0; (await status()) !== wanted; tries += 1) {
    assert.ok(tries < 200, `never ${wanted}`);
    await new Promise((resolve) => {
      setTimeout(resolve, 50);
    });
  }
}

test('attack: a stranger who submits first only makes a claim, which never overrides the author', async () => {
  const { created, ownership } = await submit(stranger);
  assert.equal(created, true);
  assert.equal(await status(), 'submission false');
  const { spec } = await stored();
  assert.deepEqual(spec.submission, { contact: stranger.contact, note: stranger.note });
  assert.deepEqual([spec.author.contact, spec.listing.description], [undefined, undefined]);
  // He has a token for his own contact, and no way to push it.
  assert.equal(openContact(ownership?.token ?? '', repository, ownershipSecret), stranger.contact);
});

test('an author who submits again learns what to commit, and the contact cannot be found by guessing', async () => {
  const [first, guess] = [await submit(author), await submit({ ...author, contact: stranger.contact })];
  assert.equal(first.created, false);
  assert.equal(first.ownership?.file, '.moorage-owner');
  assert.equal(openContact(first.ownership.token, repository, ownershipSecret), author.contact);
  assert.match(first.message, /author\.contact in moorage\.yaml or with ownership\.token in \.moorage-owner/);
  assert.equal(first.message, guess.message);
  assert.equal((await submit({ address: author.address })).ownership, undefined);
  assert.equal(await status(), 'submission false', 'submitting changes nothing');
});

test("attack: after the author's proof, the stranger's resubmission does not change it back", async () => {
  await setStatus(server, 'chat', { ownership: { since, contact: author.contact } });
  await statusBecomes('.moorage-owner true');
  await submit(stranger);
  assert.equal(await status(), '.moorage-owner true');
  assert.equal(findAuthorContact(await stored())?.contact, author.contact);
  const settings = { commit: 'a'.repeat(40), values: JSON.stringify({ author: { contact: 'new@example.org' } }) };
  await setStatus(server, 'chat', { settings, ownership: { since, contact: null } });
  await statusBecomes('moorage.yaml true');
  await submit(stranger);
  assert.equal(findAuthorContact(await stored())?.contact, 'new@example.org');
});
