// Files that tools have made, on PGlite; and their links, as callers of /t follow them.
import assert from 'node:assert/strict';
import { afterAll, beforeAll, test } from 'vitest';
import { z } from 'zod';
import { migratedDatabase } from '../../../../support/ledger/snapshot.ts';
import { toToolAccount } from '../../../../../api/billing/ledger/accounts.ts';
import { openLedgerDatabase } from '../../../../../api/billing/database/database.ts';
import { json } from '../../../../support/models/sample.ts';
import { sampleToolApp, type ToolSample } from '../../../../support/tools/sample.ts';
import { artifactSuite } from '../../../../support/tools/artifacts-suite.ts';

artifactSuite('PGlite', () => openLedgerDatabase(migratedDatabase));

const answer = z.looseObject({
  cost_usd: z.number(),
  hint: z.string().optional(),
  artifact: z.object({
    media_type: z.string(),
    file_name: z.string(),
    bytes: z.int(),
    url: z.string().optional(),
    expires_at: z.string().optional(),
    base64: z.string().optional(),
  }),
});

let sample: ToolSample;
beforeAll(async () => {
  sample = await sampleToolApp({ environment: { DATABASE_URL: migratedDatabase } });
});
afterAll(() => sample.stop());

async function draw(query: string, init?: RequestInit, from = sample): Promise<z.output<typeof answer>> {
  return answer.parse(await (await from.request(`/t/draw${query}`, init)).json());
}
const pathOf = (url: string | undefined): string => (url ?? assert.fail('no url')).replace('https://moorage.test', '');

test('serves the same bytes at a link to anyone, repeatedly and free of charge', async () => {
  const { artifact } = await draw('?bytes=100');
  assert.deepEqual(
    { ...artifact, url: undefined, expires_at: undefined },
    {
      media_type: 'image/svg+xml',
      file_name: 'drawing.svg',
      bytes: 100,
      base64: Buffer.alloc(100, 65).toString('base64'),
      url: undefined,
      expires_at: undefined,
    },
  );
  assert.match(artifact.url ?? '', /^https:\/\/moorage\.test\/t\/artifacts\/[A-Za-z0-9_-]{22}$/);
  const hours = (Date.parse(artifact.expires_at ?? '') - Date.now()) / 3_600_000;
  assert.ok(hours > 0.9 && hours <= 1.01, artifact.expires_at);
  const { ledger } = sample.models.ledger.get();
  const earned = await ledger.balance(toToolAccount('draw'));
  const calls = await sample.registry.getSingleMetricAsString('moorage_tool_calls_total');
  for (const accept of ['*/*', 'image/png', 'application/json']) {
    const file = await sample.request(pathOf(artifact.url), { headers: { accept, 'x-forwarded-for': '203.0.113.9' } });
    assert.deepEqual(Buffer.from(await file.arrayBuffer()), Buffer.alloc(100, 65));
    const headers = [
      'content-type',
      'content-disposition',
      'x-content-type-options',
      'cache-control',
      'referrer-policy',
      'set-cookie',
    ].map((name) => file.headers.get(name));
    assert.deepEqual(headers, [
      'image/svg+xml',
      'inline; filename="drawing.svg"',
      'nosniff',
      'no-store',
      'no-referrer',
      null,
    ]);
    assert.match(file.headers.get('content-security-policy') ?? '', /default-src 'none'.*sandbox/);
  }
  assert.equal(await ledger.balance(toToolAccount('draw')), earned);
  assert.equal(await sample.registry.getSingleMetricAsString('moorage_tool_calls_total'), calls);
});

test('serves files that a browser could run as downloads', async () => {
  const { artifact } = await draw('?format=html');
  const file = await sample.request(pathOf(artifact.url));
  assert.deepEqual(
    [file.headers.get('content-type'), file.headers.get('content-disposition')],
    ['text/html', 'attachment; filename="file"'],
  );
});

test('reports an unknown file as gone, and explains how to create it again', async () => {
  for (const id of ['AAAAAAAAAAAAAAAAAAAAAA', 'x', '..%2f..', 'y'.repeat(101)]) {
    const gone = await sample.request(`/t/artifacts/${id}`);
    const body = z.looseObject({ type: z.string(), detail: z.string() }).parse(await gone.json());
    assert.ok(
      id.length > 100
        ? gone.status === 400
        : gone.status === 404 && /unknown-file$/.test(body.type) && /Call the tool again/.test(body.detail),
      JSON.stringify(body),
    );
  }
});

test('returns a large file only as a link, and one too large to store only with raw', async () => {
  const large = await draw('?bytes=65537');
  assert.deepEqual([large.artifact.base64, typeof large.artifact.url], [undefined, 'string']);
  const huge = await draw('', json({ bytes: 34_000_000 }));
  assert.deepEqual([huge.artifact.url, huge.artifact.base64], [undefined, undefined]);
  assert.match(huge.hint ?? '', /"raw": true/);
  const raw = await sample.request('/t/draw', json({ bytes: 34_000_000, raw: true }));
  assert.equal((await raw.arrayBuffer()).byteLength, 34_000_000);
});

test('stores nothing for a caller who requests the bytes directly', async () => {
  const { database } = sample.models.ledger.get();
  const count = {
    name: 'count-files',
    text: 'select count(*)::int as files from tools.artifact',
    row: z.object({ files: z.int() }),
  };
  const before = await database.query(count, []);
  await (await sample.request('/t/draw?raw=1')).arrayBuffer();
  assert.deepEqual(await database.query(count, []), before);
});

test('names the tool in the usage record', async () => {
  const { database } = sample.models.ledger.get();
  const uses = await database.query(
    {
      name: 'uses',
      text: 'select distinct kind, tool from ledger.usage',
      row: z.object({ kind: z.string(), tool: z.string() }),
    },
    [],
  );
  assert.deepEqual(uses, [{ kind: 'tool', tool: 'draw' }]);
});
