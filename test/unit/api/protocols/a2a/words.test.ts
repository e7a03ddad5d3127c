// Words, and the forms in which agents write calls, sent by the client of the protocol's makers.
import assert from 'node:assert/strict';
import { Role, TaskState, type Message, type Part, type Task } from '@a2a-js/sdk';
import { ClientFactory, type Client } from '@a2a-js/sdk/client';
import { afterAll, beforeAll, test } from 'vitest';
import { z } from 'zod';
import { startServer, type PublicServer } from '../../../../../api/http/server.ts';
import { readCatalog } from '../../../../../api/models/catalog.ts';
import { defineTool } from '../../../../../api/tools/tool.ts';
import { echoTool } from '../../../../support/discovery/sample.ts';
import { silent } from '../../../../support/api/sample.ts';
import { findFreePort } from '../../../../support/free-port.ts';
import { migratedDatabase } from '../../../../support/ledger/snapshot.ts';
import { startScriptedRouter, type ScriptedRouter } from '../../../../support/models/scripted-router.ts';
import { sampleToolApp, type ToolSample } from '../../../../support/tools/sample.ts';

const runTool = defineTool({
  name: 'run',
  title: 'Run code',
  description: 'Runs code.',
  input: z.strictObject({ code: z.string().describe('The code'), stdin: z.string().optional().describe('Input') }),
  output: z.object({ ran: z.string().describe('What ran') }),
  example: { code: '6*7' },
  price: '0',
  openWorld: false,
  run: ({ code }) => Promise.resolve({ result: { ran: code } }),
});

interface Agent {
  readonly client: Client;
  readonly sample: ToolSample;
  readonly server: PublicServer;
}
let router: ScriptedRouter;
let withModels: Agent;
let without: Agent;
/** What the model answers next. */
let understood = '';

async function start(environment: Readonly<Record<string, string>>): Promise<Agent> {
  const port = await findFreePort();
  const baseUrl = `http://127.0.0.1:${port}`;
  const sample = await sampleToolApp({ tools: [echoTool, runTool], environment, baseUrl });
  const server = await startServer({ port, host: '127.0.0.1', listener: sample.app, log: silent });
  return { sample, server, client: await new ClientFactory().createFromUrl(baseUrl) };
}

beforeAll(async () => {
  router = await startScriptedRouter({
    [readCatalog().preferred.upstream]: (response) => {
      const message = { role: 'assistant', content: understood };
      const usage = { prompt_tokens: 300, completion_tokens: 20, cost: 0.000123 };
      response
        .writeHead(200, { 'content-type': 'application/json' })
        .end(JSON.stringify({ id: 'gen-1', choices: [{ message, finish_reason: 'stop' }], usage }));
    },
  });
  withModels = await start({
    DATABASE_URL: migratedDatabase,
    MOORAGE_ROUTER_URL: router.url,
    MOORAGE_ROUTER_KEY: 'sk-platform-1234',
  });
  without = await start({});
});
afterAll(async () => {
  for (const { server, sample } of [withModels, without]) {
    await server.drain({ graceMs: 0, limitMs: 1_000, endStreams: () => undefined });
    await sample.stop();
  }
  await router.close();
});

const part = (content: NonNullable<Part['content']>): Part => ({
  content,
  metadata: undefined,
  filename: '',
  mediaType: '',
});
const text = (value: string): Part => part({ $case: 'text', value });
const data = (value: unknown): Part => part({ $case: 'data', value });

async function send({ client }: Agent, given: Part, taskId = ''): Promise<Message | Task> {
  const message: Message = {
    messageId: crypto.randomUUID(),
    contextId: '',
    taskId,
    role: Role.ROLE_USER,
    parts: [given],
    metadata: undefined,
    extensions: [],
    referenceTaskIds: [],
  };
  return client.sendMessage({ tenant: '', message, configuration: undefined, metadata: undefined });
}

function partsOf(answer: Message | Task): Part[] {
  assert.ok('parts' in answer, JSON.stringify(answer));
  return answer.parts;
}
const result = z.looseObject({ result: z.unknown() });
const resultOf = (answer: Message | Task): unknown => result.parse(partsOf(answer)[0]?.content?.value).result;

for (const [form, given] of [
  ['arguments inside', data({ tool: 'run', arguments: { code: '6*7' } })],
  ['arguments beside the name', data({ tool: 'run', code: '6*7' })],
  ['arguments alone', data({ code: '6*7' })],
  ['JSON in a text', text('{"tool": "run", "code": "6*7"}')],
  ['a fenced block', text('Please run this:\n\n```json\n{"tool": "run", "arguments": {"code": "6*7"}}\n```\nThanks.')],
  ['a fenced block without a language', text('```\n{"code": "6*7"}\n```')],
] as const) {
  test(`a call is understood without a model: ${form}`, async () => {
    const before = router.asked.length;
    for (const agent of [withModels, without]) assert.deepEqual(resultOf(await send(agent, given)), { ran: '6*7' });
    assert.equal(router.asked.length, before);
  });
}

test('words are mapped to a tool by a model, which the answer says with its cost', async () => {
  understood = '```json\n{"tool": "run", "arguments": {"code": "6*7"}}\n```';
  const answer = await send(withModels, text('Work out six times seven with code.'));
  assert.deepEqual(resultOf(answer), { ran: '6*7' });
  const [first, last] = partsOf(answer);
  const { interpretation } = z.looseObject({ interpretation: z.looseObject({}) }).parse(first?.content?.value);
  assert.deepEqual(
    [interpretation['tool'], interpretation['arguments'], interpretation['cost_usd'], interpretation['cost_source']],
    ['run', { code: '6*7' }, 0.000123, 'metered'],
  );
  assert.match(
    String(last?.content?.value),
    /^Read as run \{"code":"6\*7"\}\. The model \S+ read the words; that cost \$0\.000123, in addition to the call\.$/,
  );
});

for (const [why, reply, asks] of [
  ['the model asks', '{"tool": null, "question": "Which code?"}', /^Which code\?/],
  ['the tool is made up', '{"tool": "launch", "arguments": {}}', /^No tool here does/],
  ['a field is missing', '{"tool": "run", "arguments": {}}', /^run needs more to go on: "code"/],
  ['the model does not answer in JSON', 'I would rather not.', /^The model did not recognize a tool/],
] as const) {
  test(`unsure is asked back, and a whole request answers it: ${why}`, async () => {
    understood = reply;
    const answer = await send(withModels, text('Do it.'));
    assert.ok('status' in answer, JSON.stringify(answer));
    assert.equal(answer.status?.state, TaskState.TASK_STATE_INPUT_REQUIRED);
    const [question, cost] = answer.status.message?.parts ?? [];
    assert.match(String(question?.content?.value), asks);
    assert.match(JSON.stringify(cost?.content?.value), /"cost_usd":0\.000(123|246)/);
    assert.deepEqual(resultOf(await send(withModels, data({ tool: 'run', code: '1' }), answer.id)), { ran: '1' });
  });
}

test('without a model router words are asked back, with the tools there are', async () => {
  const answer = await send(without, text('Work out six times seven.'));
  assert.ok('status' in answer, JSON.stringify(answer));
  assert.equal(answer.status?.state, TaskState.TASK_STATE_INPUT_REQUIRED);
  assert.match(
    String(answer.status.message?.parts[0]?.content?.value),
    /no model router is connected\. .*- run: Run code/s,
  );
});
