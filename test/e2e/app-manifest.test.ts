// What an author changes without kubectl: moorage.yaml in his repository, whose contact counts, and submitting a rejected
// one again.
import assert from 'node:assert/strict';
import { afterAll, test } from 'vitest';
import { z } from 'zod';
import { findAuthorContact } from '../../crds/effective-settings.ts';
import { readInstallation } from '../../cli/submit/installation.ts';
import { pushSnapshot, takeSnapshot } from '../../cli/submit/snapshot.ts';
import {
  appUrl,
  baseUrl,
  deleteApps,
  edit,
  waitFor,
  get,
  readApp,
  submit,
  runWithCopy,
  runWithFiles,
} from '../support/cluster.ts';

const names = { manifest: 'e2e-manifest', refused: 'e2e-bad-manifest', again: 'e2e-again', owned: 'e2e-owned' };

afterAll(() => deleteApps(...Object.values(names)));

test.concurrent(
  'an app that only moorage.yaml makes hostable goes live with its settings, and adopts a changed file',
  async () => {
    await runWithCopy('app-manifest', names.manifest, async (folder) => {
      const ended = await submit(folder);
      assert.equal(ended.exitCode, 0, ended.all);
      assert.equal((await get(appUrl(names.manifest))).body, 'Hello from moorage.yaml');
      const { status } = await readApp(names.manifest);
      assert.ok(
        status?.effective?.some(
          ({ field, from, value }) => field === 'run.port' && from === 'moorage.yaml' && value === '9123',
        ),
        JSON.stringify(status?.effective),
      );
      edit(folder, 'moorage.yaml', (text) => text.replace('Hello from', 'Changed in'));
      const changed = await submit(folder);
      assert.equal(changed.exitCode, 0, changed.all);
      await waitFor('the changed greeting', async () =>
        (await get(appUrl(names.manifest))).body === 'Changed in moorage.yaml' ? true : undefined,
      );
    });
  },
);

test.concurrent('rejects a setting that authors may not change, with file and line', async () => {
  await runWithFiles(
    names.refused,
    { 'index.html': '<p>hi</p>', 'moorage.yaml': 'run:\n  replicas: 20\n' },
    async (folder) => {
      const ended = await submit(folder);
      assert.equal(ended.exitCode, 1, ended.all);
      const { rule, file, line } = (await readApp(names.refused)).status?.rejection ?? {};
      assert.deepEqual([rule, file, line], ['settings/invalid', 'moorage.yaml', 2]);
    },
  );
});

const answered = z.looseObject({
  status: z.string(),
  retried: z.boolean(),
  retry_at: z.string().optional(),
  contact_from: z.string().optional(),
  contact_verified: z.boolean().optional(),
  ownership: z.object({ file: z.string(), token: z.string() }).optional(),
});

async function post(name: string, more: { contact?: string; note?: string } = {}): Promise<z.output<typeof answered>> {
  const answer = await get(new URL('/api/submit', baseUrl), {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ repo: `http://git.moorage-git.svc.cluster.local/local/${name}`, ...more }),
  });
  assert.equal(answer.status, 200, answer.body);
  return answered.parse(JSON.parse(answer.body));
}

test.concurrent(
  'attack: the first submitter of a repository claims its contact, and a token committed by the author takes it back',
  async () => {
    const stranger = { contact: 'mallory@example.org', note: 'Buy coins at evil.example' };
    await runWithFiles(names.owned, {}, async (folder) =>
      pushSnapshot(await takeSnapshot(folder), names.owned, await readInstallation()),
    );
    const claimed = await post(names.owned, stranger);
    assert.deepEqual([claimed.contact_from, claimed.contact_verified], ['submission', false]);
    const { ownership } = await post(names.owned, { contact: 'me@example.org' });
    assert.ok(ownership !== undefined);
    const files = {
      'index.html': '<p>mine</p>',
      'moorage.yaml': 'listing: {description: What it does}\n',
      [ownership.file]: `${ownership.token}\n`,
    };
    const ended = await runWithFiles(names.owned, files, (folder) => submit(folder));
    assert.equal(ended.exitCode, 0, ended.all);
    const again = await post(names.owned, stranger);
    assert.deepEqual([again.contact_from, again.contact_verified], ['.moorage-owner', true]);
    assert.equal(findAuthorContact(await readApp(names.owned))?.contact, 'me@example.org');
    const { body } = await get(new URL('/agent-capabilities.json', baseUrl));
    assert.match(body, /What it does/);
    assert.doesNotMatch(body, /evil\.example/);
  },
);

test.concurrent(
  'a rejected repository that is submitted again runs through a new pipeline, at most once a minute',
  async () => {
    const files = { Dockerfile: 'FROM debian:bookworm-slim\nRUN exit 1\n' };
    assert.equal((await runWithFiles(names.again, files, (folder) => submit(folder))).exitCode, 1);
    const before = (await readApp(names.again)).status?.history?.[0]?.number ?? 0;
    const again = await post(names.again);
    assert.deepEqual([again.retried, again.status], [true, 'in_pipeline']);
    const history = await waitFor(
      'the second verdict',
      async () => {
        const { status } = await readApp(names.again);
        return status?.phase === 'Rejected' && (status.history?.[0]?.number ?? 0) > before ? status.history : undefined;
      },
      600,
    );
    assert.equal(history[0]?.number, before + 1, 'one new pipeline');
    assert.match(history[0].reason, /rebuild requested/);
  },
);
