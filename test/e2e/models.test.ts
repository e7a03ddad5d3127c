// Models on a real node: ask and compare from outside, and /v1 from inside an app that may use it.
import assert from 'node:assert/strict';
import { afterAll, test } from 'vitest';
import { z } from 'zod';
import { demoNotice } from '../../api/models/router/demo-router.ts';
import {
  appsNamespace,
  appUrl,
  baseUrl,
  deleteApps,
  waitFor,
  get,
  runKubectl,
  submit,
  runWithFiles,
  type Answer,
} from '../support/cluster.ts';

const name = 'e2e-models';
afterAll(() => deleteApps(name));

const post = (path: string, body: object): Promise<Answer> =>
  get(new URL(path, baseUrl), {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });

test('POST /api/ask returns its cost, and states that the router is a demo', async () => {
  const answer = await post('/api/ask', { prompt: 'Hello', max_tokens: 60 });
  assert.equal(answer.status, 200, answer.body);
  const reported = z
    .looseObject({ answer: z.string(), cost_usd: z.number().positive(), cost_source: z.literal('billed') })
    .parse(JSON.parse(answer.body));
  assert.ok(reported.answer.startsWith(demoNotice));
  assert.match(String(answer.headers['ratelimit']), /^"free-day";r=\d+;t=\d+$/);
});

test('POST /api/compare calls three different models', async () => {
  const answer = await post('/api/compare', { prompt: 'Hello', max_tokens: 60 });
  assert.equal(answer.status, 200, answer.body);
  const { results } = z
    .looseObject({ results: z.array(z.looseObject({ model: z.string(), cost_usd: z.number().positive() })).length(3) })
    .parse(JSON.parse(answer.body));
  assert.equal(new Set(results.map(({ model }) => model)).size, 3);
});

/** Asks a model for each visit with what it finds in its environment, and shows what came of it. */
const server = `import { createServer } from 'node:http';
createServer(async (_request, response) => {
  const { OPENAI_BASE_URL: base, OPENAI_API_KEY: token } = process.env;
  if (base === undefined || token === undefined) { response.end('{"enabled":false}'); return; }
  try {
    const answer = await fetch(base + '/chat/completions', {
      method: 'POST', headers: { authorization: 'Bearer ' + token, 'content-type': 'application/json' },
      body: JSON.stringify({ model: 'alpha-v4-flash', messages: [{ role: 'user', content: 'Hello' }], max_tokens: 60 }),
    });
    response.end(JSON.stringify({ enabled: true, status: answer.status, body: await answer.json() }));
  } catch (error) {
    response.end(JSON.stringify({ enabled: true, status: 0, body: String(error.cause ?? error) }));
  }
}).listen(process.env.PORT, '0.0.0.0');
`;
const files = {
  'server.js': server,
  'package.json': JSON.stringify({
    name,
    version: '1.0.0',
    private: true,
    type: 'module',
    license: 'MIT',
    scripts: { start: 'node server.js' },
  }),
};
const seen = z.looseObject({ enabled: z.boolean(), status: z.int().optional(), body: z.unknown().optional() });

test("a submitted app can use models within the installation's budget, unless the operator changes it", async () => {
  const ended = await runWithFiles(name, files, (folder) => submit(folder));
  assert.equal(ended.exitCode, 0, ended.all);
  const { body } = await waitFor(
    'an answer of a model inside the app',
    async () => {
      const reported = seen.parse(JSON.parse((await get(appUrl(name))).body));
      return reported.status === 200 ? reported : undefined;
    },
    120,
  );
  const completion = z
    .looseObject({
      model: z.literal('alpha-v4-flash'),
      choices: z.array(z.looseObject({ message: z.looseObject({ content: z.string() }) })).length(1),
      usage: z.looseObject({ cost: z.number().positive() }),
    })
    .parse(body);
  assert.ok(completion.choices[0]?.message.content.startsWith(demoNotice));

  await runKubectl(
    'patch',
    'happ',
    name,
    '-n',
    appsNamespace,
    '--type=merge',
    '-p',
    '{"spec":{"models":{"enabled":false}}}',
  );
  await waitFor(
    'the app without models',
    async () => {
      const answer: unknown = JSON.parse((await get(appUrl(name))).body);
      return seen.parse(answer).enabled ? undefined : answer;
    },
    120,
  );
});
