// What the router itself allows the platform key to spend: read at the start, set with a key that may, and warned of where there is none.
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:http';
import { onTestFinished, test } from 'vitest';
import type { Logger } from '../../../../../lib/telemetry.ts';
import { RouterClient } from '../../../../../api/models/router/client.ts';
import { reportPlatformLimit } from '../../../../../api/models/start.ts';

const key = 'sk-platform-12345678';
const hash = createHash('sha256').update(key).digest('hex');

interface RouterRequest {
  readonly method: string;
  readonly path: string;
  readonly authorization: string;
  readonly body: string;
}

/** A router that says this of the platform's key. */
async function start(
  kind: 'openrouter' | 'litellm',
  said: { readonly status: number; readonly body: string },
): Promise<{ client: RouterClient; asked: RouterRequest[] }> {
  const asked: RouterRequest[] = [];
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request
      .on('data', (chunk: Buffer) => chunks.push(chunk))
      .on('end', () => {
        const { method = '', url: path = '', headers } = request;
        asked.push({
          method,
          path,
          authorization: headers.authorization ?? '',
          body: Buffer.concat(chunks).toString(),
        });
        response.writeHead(said.status, { 'content-type': 'application/json' }).end(said.body);
      });
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  assert.ok(typeof address === 'object' && address !== null);
  const url = `http://127.0.0.1:${address.port}/v1`;
  const client = new RouterClient({ kind, url, key, billKey: 'sk-admin' }, { callMs: 1_000 });
  onTestFinished(async () => {
    await client.close();
    server.closeAllConnections();
    server.close();
  });
  return { client, asked };
}

/** What is logged at the start. */
async function logged(client: RouterClient): Promise<{ level: string; fields: unknown; text: string }[]> {
  const lines: { level: string; fields: unknown; text: string }[] = [];
  const at =
    (level: string) =>
    (fields: unknown, text: string): void => {
      lines.push({ level, fields, text });
    };
  await reportPlatformLimit(client, { info: at('info'), warn: at('warn') } as unknown as Logger);
  return lines;
}

test('a limit that the router enforces is logged at the start', async () => {
  for (const [kind, body, path, usd, per] of [
    ['openrouter', '{"data":{"limit":6,"limit_reset":"daily","usage":0.25}}', '/v1/key', '6', 'daily'],
    ['litellm', '{"key":"x","info":{"max_budget":6.5,"budget_duration":"1d","spend":0.1}}', '/key/info', '6.5', '1d'],
  ] as const) {
    const { client, asked } = await start(kind, { status: 200, body });
    assert.deepEqual(await logged(client), [
      { level: 'info', fields: { router: kind, limit_usd: usd, per }, text: 'the router limits the platform key' },
    ]);
    assert.deepEqual(
      asked.map((one) => [one.method, one.path, one.authorization]),
      [['GET', path, `Bearer ${key}`]],
    );
  }
});

test('a key without a limit, and one whose limit cannot be seen, are warned of with what to do', async () => {
  for (const [kind, status, body, says] of [
    ['openrouter', 200, '{"data":{"limit":null}}', /^the router has no limit on .*OpenRouter.*limit-the-platform-key/],
    ['litellm', 200, '{"info":{"max_budget":null}}', /^the router has no limit on .*\/key\/generate/],
    [
      'litellm',
      500,
      '{"error":{"message":"No connected db."}}',
      /^cannot see whether .*needs a database behind LiteLLM/,
    ],
    ['openrouter', 200, '[]', /^cannot see whether/],
  ] as const) {
    const { client } = await start(kind, { status, body });
    const [line] = await logged(client);
    assert.equal(line?.level, 'warn');
    assert.match(line.text, says);
  }
});

test('a limit is set with the key that may manage others', async () => {
  const openRouter = await start('openrouter', { status: 200, body: '{}' });
  assert.equal(await openRouter.client.limitPlatform(6), undefined);
  assert.deepEqual(openRouter.asked, [
    {
      method: 'PATCH',
      path: `/v1/keys/${hash}`,
      authorization: 'Bearer sk-admin',
      body: '{"limit":6,"limit_reset":"daily"}',
    },
  ]);
  const liteLlm = await start('litellm', { status: 200, body: '{}' });
  assert.equal(await liteLlm.client.limitPlatform(6), undefined);
  assert.deepEqual(liteLlm.asked, [
    {
      method: 'POST',
      path: '/key/update',
      authorization: 'Bearer sk-admin',
      body: JSON.stringify({ key, max_budget: 6, budget_duration: '1d' }),
    },
  ]);
  const refused = await start('openrouter', { status: 403, body: '{}' });
  assert.equal(await refused.client.limitPlatform(6), 'the router answered with status 403');
});
