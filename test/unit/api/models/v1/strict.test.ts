// What /v1 takes: every member of a request is known, and either passed on as it was sent or refused by its name.
import assert from 'node:assert/strict';
import { afterAll, beforeAll, beforeEach, test } from 'vitest';
import { z } from 'zod';
import { readCatalog } from '../../../../../api/models/catalog.ts';
import { json, sampleModels, type Sample } from '../../../../support/models/sample.ts';
import {
  completion,
  delta,
  reply,
  startScriptedRouter,
  stream,
  usageEvent,
  type ScriptedRouter,
} from '../../../../support/models/scripted-router.ts';

const usage = '{"prompt_tokens":3,"completion_tokens":1,"cost":0.000001}';
const model = 'alpha-v4-flash';
const upstream = readCatalog().byId.get(model)?.upstream ?? '';
const embedding = readCatalog().embeddings[0]?.upstream ?? '';
const whole = reply(200, completion(usage));
const pieces = stream(delta('Hi', 'stop'), usageEvent(usage), '[DONE]');

let router: ScriptedRouter;
let sample: Sample;
beforeAll(async () => {
  router = await startScriptedRouter({
    [upstream]: (response, asked, closed) =>
      (asked.body.includes('"stream":true') ? pieces : whole)(response, asked, closed),
    [embedding]: reply(200, `{"data":[{"embedding":[1]}],"usage":${usage}}`),
    '/key': (response, { authorization }) => {
      response.writeHead(authorization === 'Bearer sk-x' ? 200 : 401).end('{"data":{},"error":{"message":"no"}}');
    },
  });
  sample = await sampleModels({ environment: { MOORAGE_ROUTER_URL: router.url, MOORAGE_FREE_QUOTA_USD: '0.01' } });
});
afterAll(async () => {
  await sample.stop();
  await router.close();
});
beforeEach(() => {
  router.asked.length = 0;
});

const messages = [{ role: 'user', content: 'Hello' }];
const base = { model, messages, max_tokens: 20 };
const problem = z.looseObject({
  type: z.string(),
  detail: z.string(),
  errors: z.array(z.looseObject({ field: z.string(), message: z.string(), fix: z.string() })).default([]),
});
type Problem = z.output<typeof problem>;

async function send(
  path: string,
  body: object,
  headers: Readonly<Record<string, string>> = {},
): Promise<{ answer: Response; body: unknown; reported: Problem | undefined }> {
  const answer = await sample.request(path, json(body, headers));
  const read = await answer.json();
  return { answer, body: read, reported: answer.status < 400 ? undefined : problem.parse(read) };
}

/** Bodies of calls that reached the router. */
const routed = (): unknown[] =>
  router.asked.filter(({ body }) => body !== '').map(({ body }) => JSON.parse(body) as unknown);

const said = (message: object): object => ({ messages: [{ role: 'user', content: 'Hello' }, message] });
const image = { url: 'https://a.example/a.png' };

const refused: readonly (readonly [name: string, more: object, field: string])[] = [
  ['a tool that the router runs', { tools: [{ type: 'openrouter:web_search' }] }, 'tools.0.type'],
  ['an MCP server', { tools: [{ type: 'mcp', server_url: 'litellm_proxy' }] }, 'tools.0.type'],
  [
    'a search beside a function',
    { tools: [{ type: 'function', function: { name: 'a' }, web_search: {} }] },
    'tools.0.web_search',
  ],
  [
    'a cached function',
    { tools: [{ type: 'function', function: { name: 'a', cache_control: {} } }] },
    'tools.0.function.cache_control',
  ],
  ['a tool that is text', { tools: ['web_search'] }, 'tools.0'],
  ['a choice of a tool that is no function', { tool_choice: { type: 'web_search_preview' } }, 'tool_choice.type'],
  ['an unknown choice', { tool_choice: 'web_search' }, 'tool_choice'],
  ['a function with more members', { functions: [{ name: 'a', url: 'https://a.example' }] }, 'functions.0.url'],
  ['reasoning with a budget of its own', { reasoning: { effort: 'low', max_tokens: 100_000 } }, 'reasoning.max_tokens'],
  ['an effort that there is not', { reasoning_effort: 'endless' }, 'reasoning_effort'],
  ['cache_control', { cache_control: { type: 'ephemeral' } }, 'cache_control'],
  ['models', { models: ['zeta-fable-5'] }, 'models'],
  ['provider', { provider: { order: ['a'] } }, 'provider'],
  ['plugins', { plugins: [{ id: 'web' }] }, 'plugins'],
  ['web_search_options', { web_search_options: {} }, 'web_search_options'],
  ['transforms', { transforms: [] }, 'transforms'],
  ['a priority tier', { service_tier: 'priority' }, 'service_tier'],
  ['several answers', { n: 2 }, 'n'],
  ['sound as an answer', { modalities: ['audio'] }, 'modalities.0'],
  ['an unknown option of streams', { stream: true, stream_options: { all: true } }, 'stream_options.all'],
  ['an unknown form of the answer', { response_format: { type: 'grammar', grammar: '' } }, 'response_format.type'],
  [
    'a member of a schema',
    { response_format: { type: 'json_schema', json_schema: { name: 'a', plugin: 1 } } },
    'response_format.json_schema.plugin',
  ],
  ['max_tokens above the maximum', { max_tokens: 16_385 }, 'max_tokens'],
  [
    'max_completion_tokens above the maximum',
    { max_tokens: undefined, max_completion_tokens: 99_999 },
    'max_completion_tokens',
  ],
  ['two maxima that differ', { max_completion_tokens: 30 }, 'max_tokens'],
  [
    'a cached message',
    said({ role: 'user', content: 'a', cache_control: { type: 'ephemeral' } }),
    'messages.1.cache_control',
  ],
  [
    'a cached part',
    said({ role: 'user', content: [{ type: 'text', text: 'a', cache_control: {} }] }),
    'messages.1.content.0.cache_control',
  ],
  ['a film in a message', said({ role: 'user', content: 'a', video_url: 'x' }), 'messages.1.video_url'],
  ['a prefix of an answer', said({ role: 'assistant', content: 'a', prefix: true }), 'messages.1.prefix'],
  ['sound in an answer', said({ role: 'assistant', audio: { id: 'x' } }), 'messages.1.audio'],
  [
    'a call of a tool that is no function',
    said({ role: 'assistant', tool_calls: [{ id: '1', type: 'mcp', function: { name: 'a', arguments: '' } }] }),
    'messages.1.tool_calls.0.type',
  ],
  ['a role that there is not', said({ role: 'router', content: 'a' }), 'messages.1.role'],
  ['a file', said({ role: 'user', content: [{ type: 'file', file: {} }] }), 'messages.1.content.0.type'],
  [
    'a format of an image',
    said({ role: 'user', content: [{ type: 'image_url', image_url: { ...image, format: 'video/mp4' } }] }),
    'messages.1.content.0.image_url.format',
  ],
];

for (const [name, more, field] of refused)
  test(`refuses ${name} by its name`, async () => {
    const { answer, reported } = await send('/v1/chat/completions', { ...base, ...more });
    assert.equal(answer.status, 400, JSON.stringify(reported));
    assert.deepEqual(
      reported?.errors.map((error) => error.field),
      [field],
    );
    assert.doesNotMatch(reported.errors[0]?.fix ?? '', /No fields are accepted/);
    assert.deepEqual(routed(), []);
  });

test('passes on all that it takes as it was sent', async () => {
  const sent = {
    ...base,
    temperature: 0.3,
    top_p: 0.9,
    stop: ['END'],
    seed: 7,
    logit_bias: { '50256': -100 },
    tools: [
      {
        type: 'function',
        function: { name: 'look', description: 'Looks', parameters: { type: 'object' }, strict: true },
      },
    ],
    tool_choice: { type: 'function', function: { name: 'look' } },
    parallel_tool_calls: false,
    response_format: { type: 'json_schema', json_schema: { name: 'a', schema: { type: 'object' } } },
    reasoning: { effort: 'low' },
    user: 'me',
    messages: [
      { role: 'system', content: 'Be brief.' },
      {
        role: 'user',
        content: [
          { type: 'text', text: 'Hello' },
          { type: 'image_url', image_url: image },
        ],
        name: 'me',
      },
      {
        role: 'assistant',
        content: null,
        refusal: null,
        annotations: [],
        audio: null,
        function_call: null,
        reasoning: 'I should look.',
        reasoning_details: [{ type: 'reasoning.text', text: 'I should look.', signature: 'x', format: 'y', index: 0 }],
        tool_calls: [{ id: 'call-1', type: 'function', index: 0, function: { name: 'look', arguments: '{}' } }],
      },
      { role: 'tool', tool_call_id: 'call-1', content: 'Nothing.' },
    ],
  };
  const { answer, body } = await send('/v1/chat/completions', {
    ...sent,
    n: 1,
    store: false,
    service_tier: 'auto',
    modalities: ['text'],
    presence_penalty: null,
  });
  assert.equal(answer.status, 200, JSON.stringify(body));
  assert.deepEqual(routed(), [{ ...sent, model: upstream, usage: { include: true } }]);
  assert.equal(answer.headers.get('x-max-tokens'), null);
});

test('says in a header how many tokens it allows where the request does not', async () => {
  const { answer } = await send('/v1/chat/completions', { model, messages });
  assert.equal(answer.headers.get('x-max-tokens'), '1024');
  assert.equal(z.looseObject({ max_tokens: z.int() }).parse(routed()[0]).max_tokens, 1024);
  const streamed = await sample.request('/v1/chat/completions', json({ model, messages, stream: true }));
  assert.equal(streamed.headers.get('x-max-tokens'), '1024');
  await streamed.text();
});

test('answers 404 to an unknown model, with the one that may have been meant', async () => {
  for (const [path, body, meant] of [
    ['/v1/chat/completions', { ...base, model: 'alpha-v4-flesh' }, 'alpha-v4-flash'],
    ['/v1/embeddings', { model: 'embed-smal', input: 'Hello' }, 'embed-small'],
  ] as const) {
    const { answer, reported } = await send(path, body);
    assert.equal(answer.status, 404, JSON.stringify(reported));
    assert.match(reported?.type ?? '', /\/model-unknown$/);
    assert.match(reported?.detail ?? '', new RegExp(`Did you mean ${meant}`));
  }
});

test('refuses unknown members of embeddings by name', async () => {
  const sent = { model: 'embed-small', input: 'Hello', plugins: [], encodingFormat: 'float' };
  const { answer, reported } = await send('/v1/embeddings', sent);
  assert.equal(answer.status, 400);
  assert.deepEqual(
    reported?.errors.map(({ field }) => field),
    ['plugins', 'encodingFormat'],
  );
  assert.match(reported.errors[1]?.fix ?? '', /Did you mean "encoding_format"\?/);
});

test('takes X-Api-Key as a key, and refuses two that differ', async () => {
  const premium = { ...base, model: 'alpha-v4-flash' };
  const paid = await send('/v1/chat/completions', premium, { 'x-api-key': 'sk-x' });
  assert.equal(paid.answer.status, 200, JSON.stringify(paid.body));
  assert.equal(paid.answer.headers.get('ratelimit'), null);
  assert.equal(router.asked.find(({ path }) => path === '/chat/completions')?.authorization, 'Bearer sk-x');
  const unknown = await send('/v1/chat/completions', premium, { 'x-api-key': 'sk-y' });
  assert.equal(unknown.answer.status, 401);
  const nothing = await send('/v1/chat/completions', premium, { 'x-api-key': 'anonymous' });
  assert.equal(nothing.answer.status, 200);
  const two = await send('/v1/chat/completions', premium, { 'x-api-key': 'sk-x', authorization: 'Bearer sk-y' });
  assert.equal(two.answer.status, 400);
  assert.equal(two.reported?.errors[0]?.field, 'X-Api-Key');
});

test('suggests the field and the value that were meant, and never that a list be sent once', async () => {
  const camel = await send('/api/ask', { prompt: 'Hello', maxTokens: 5 });
  assert.match(
    camel.reported?.errors[0]?.fix ?? '',
    /^Did you mean "max_tokens"\? Rename it, or remove it\. Known fields: /,
  );
  const value = await send('/api/ask', { prompt: 'Hello', model: 'alpha-v4-flesh' });
  assert.match(value.reported?.errors[0]?.fix ?? '', /^Did you mean "alpha-v4-flash"\?/);
});
