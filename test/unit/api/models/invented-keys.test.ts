// Invented keys over HTTP: each is asked of the router, however short it is, and a network that sends many is refused.
import assert from 'node:assert/strict';
import { afterAll, beforeAll, test } from 'vitest';
import { z } from 'zod';
import { json, sampleModels, type Sample } from '../../../support/models/sample.ts';
import { startScriptedRouter, type ScriptedRouter } from '../../../support/models/scripted-router.ts';

let router: ScriptedRouter;
let sample: Sample;
beforeAll(async () => {
  router = await startScriptedRouter({
    '/key': (response) => {
      response.writeHead(401, { 'content-type': 'application/json' }).end('{"error":{"message":"no such key"}}');
    },
  });
  sample = await sampleModels({ environment: { MOORAGE_ROUTER_URL: router.url } });
});
afterAll(async () => {
  await sample.stop();
  await router.close();
});

const problem = z.looseObject({ type: z.string(), detail: z.string() });

async function ask(path: string, key: string, address: string): Promise<{ answer: Response; detail: string }> {
  const body = path.startsWith('/v1')
    ? { model: 'alpha-v4-flash', messages: [{ role: 'user', content: 'Hello' }] }
    : { prompt: 'Hello' };
  const answer = await sample.request(path, json(body, { authorization: `Bearer ${key}`, 'x-forwarded-for': address }));
  return { answer, detail: problem.parse(await answer.json()).detail };
}

test('a short key is asked of the router as well', async () => {
  for (const [index, path] of ['/api/ask', '/v1/chat/completions'].entries()) {
    const { answer, detail } = await ask(path, 'sk-a', `203.0.${index}.5`);
    assert.equal(answer.status, 401);
    assert.match(detail, /The model router does not know this API key/);
  }
  assert.equal(router.asked.at(-1)?.authorization, 'Bearer sk-a');
});

test('of 300 invented keys of one network 10 are asked of the router, on all paths together; the others get 429 with Retry-After', async () => {
  const before = router.asked.length;
  const answers = await Promise.all(
    Array.from({ length: 300 }, async (_, index) => {
      const path = index % 2 === 0 ? '/api/ask' : '/v1/chat/completions';
      return (await ask(path, `sk-invented-${index}`, `198.51.100.${index % 250}`)).answer;
    }),
  );
  assert.equal(router.asked.length, before + 10);
  const limited = answers.filter(({ status }) => status === 429);
  assert.equal(limited.length, 290);
  for (const { headers } of limited) assert.match(headers.get('retry-after') ?? '', /^\d+$/);
  assert.equal((await ask('/api/ask', 'sk-another', '198.51.101.1')).answer.status, 401);
});
