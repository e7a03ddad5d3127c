// Calls that change what is kept: never by GET, and not by a page of another site.
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, test } from 'vitest';
import { z } from 'zod';
import { createMemoryTool } from '../../../../api/tools/builtin/memory/memory.ts';
import { migratedDatabase } from '../../../support/ledger/snapshot.ts';
import { json } from '../../../support/models/sample.ts';
import { sampleToolApp, type ToolSample } from '../../../support/tools/sample.ts';

const session = randomUUID();
let sample: ToolSample;
beforeAll(async () => {
  sample = await sampleToolApp({
    environment: { DATABASE_URL: migratedDatabase },
    make: (services) => [createMemoryTool(services)],
  });
});
afterAll(() => sample.stop());

const kept = z.looseObject({ result: z.looseObject({ value: z.unknown() }) });

async function readValue(): Promise<unknown> {
  const response = await sample.request(`/t/memory?s=${session}&action=get&key=k`);
  return kept.parse(await response.json()).result.value;
}

test('rejects GET and HEAD for a call that changes stored data, names the request to send, and changes nothing', async () => {
  assert.equal(
    (await sample.request(`/t/memory?s=${session}`, json({ action: 'set', key: 'k', value: 'mine' }))).status,
    200,
  );
  for (const query of ['action=set&key=k&value=theirs', 'action=delete&key=k', 'op=set&name=k&data=theirs']) {
    for (const method of ['GET', 'HEAD']) {
      const response = await sample.request(`/t/memory?s=${session}&${query}`, { method });
      assert.equal(response.status, 405, query);
      assert.equal(response.headers.get('allow'), 'POST');
      if (method === 'HEAD') continue;
      const { detail } = z.looseObject({ detail: z.string() }).parse(await response.json());
      assert.match(
        detail,
        /^This call changes what is kept, which GET must not\. Send POST \/t\/memory with the body \{/,
      );
    }
  }
  assert.equal(await readValue(), 'mine');
});

test('rejects a cross-site POST from a browser without a key', async () => {
  const post = (headers: Record<string, string>): Promise<Response> => {
    const init = json({ action: 'set', key: 'k', value: 'theirs' });
    return sample.request(`/t/memory?s=${session}`, { ...init, headers: { ...(init.headers as object), ...headers } });
  };
  for (const headers of [
    { origin: 'https://evil.example' },
    { 'sec-fetch-site': 'cross-site' },
    // An app on a subdomain.
    { 'sec-fetch-site': 'same-site' },
  ]) {
    const response = await post(headers);
    assert.equal(response.status, 403);
    assert.match(await response.text(), /foreign-write/);
  }
  assert.equal(await readValue(), 'mine');
  assert.equal((await post({ 'sec-fetch-site': 'same-origin' })).status, 200);
});
