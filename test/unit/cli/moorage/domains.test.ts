// The commands for own domains: what they send, and what they print for a person and for a program.
import assert from 'node:assert/strict';
import { afterAll, beforeAll, test } from 'vitest';
import { z } from 'zod';
import { createAuthorKey } from '../../../../lib/ownership-file.ts';
import { type LoopbackApi, MoorageHome, type ProgramRun, startLoopbackApi } from '../../../support/moorage-program.ts';

const key = createAuthorKey();
const home = new MoorageHome();
const state = z.looseObject({ state: z.string() });
let api: LoopbackApi;

beforeAll(async () => {
  api = await startLoopbackApi({
    'GET /api/projects/hello': { slug: 'hello' },
    'GET /api/apps/hello': { slug: 'hello' },
  });
});
afterAll(() => {
  api.close();
  home.remove();
});

async function run(args: readonly string[], input = ''): Promise<ProgramRun> {
  return home.run(args, { input, environment: { MOORAGE_API: api.url, MOORAGE_KEY: key } });
}

test('domains are listed, added with their records, checked until DNS was asked, and removed', async () => {
  const domain = {
    ...{ domain: 'shop.example.com', state: 'Pending', message: 'Publish one.', target: 'hello.apps.test' },
    records: {
      txt: { name: '_moorage.shop.example.com', value: 'moorage-domain=1' },
      cname: { name: 'shop.example.com', value: 'hello--1.apps.test' },
    },
    check_requested_at: '2026-11-27T10:00:00.500Z',
  };
  const path = '/api/apps/hello/domains';
  api.answers[`GET ${path}`] = { offered: true, domains: [] };
  assert.equal((await run(['domains', 'list', 'hello'])).stdout, 'hello has no domains of its own.\n');
  api.answers[`POST ${path}`] = domain;
  const { stdout } = await run(['domains', 'add', 'shop.example.com', '-a', 'hello']);
  assert.deepEqual(api.requests.at(-1)?.body, { domain: 'shop.example.com' });
  assert.match(
    stdout,
    /CNAME +shop[.]example[.]com → hello--1[.]apps[.]test\nor TXT +_moorage[.]shop.* = moorage-domain=1\n/,
  );
  api.answers[`POST ${path}/shop.example.com/check`] = domain;
  const active = { ...domain, state: 'Active', message: 'It answers.', url: 'https://shop.example.com/' };
  api.answers[`GET ${path}`] = { offered: true, domains: [{ ...active, checked_at: '2026-11-27T10:00:01Z' }] };
  const checked = await run(['domains', 'check', 'shop.example.com', '-a', 'hello', '--json']);
  assert.deepEqual([checked.code, state.parse(JSON.parse(checked.stdout)).state], [0, 'Active']);
  api.answers[`GET ${path}`] = { offered: true, domains: [{ ...domain, checked_at: '2026-11-27T10:00:01Z' }] };
  assert.equal((await run(['domains', 'check', 'shop.example.com', '-a', 'hello'])).code, 1);
  api.answers[`DELETE ${path}/shop.example.com`] = { message: 'Removed.' };
  assert.equal((await run(['domains', 'remove', 'shop.example.com', '-a', 'hello'])).stdout, 'Removed.\n');
});
