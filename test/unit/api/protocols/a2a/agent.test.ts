// The A2A client of the protocol's makers reads the card and calls the endpoint that it names.
import assert from 'node:assert/strict';
import { Role, TaskState, type Message, type Part, type Task } from '@a2a-js/sdk';
import { ClientFactory, type Client } from '@a2a-js/sdk/client';
import { isLegacyAgentCard, LegacyJsonRpcTransport, parseLegacyAgentCard } from '@a2a-js/sdk/compat/v0_3/client';
import { Registry } from 'prom-client';
import { afterAll, beforeAll, test } from 'vitest';
import { z } from 'zod';
import { createA2aEndpoint } from '../../../../../api/protocols/a2a/endpoint.ts';
import type { AgentCall, AgentOptions } from '../../../../../api/protocols/a2a/calls.ts';
import { createRequestListener } from '../../../../../api/http/application.ts';
import { createBlockList } from '../../../../../lib/subnets.ts';
import { createDiscoveryEndpoints } from '../../../../../api/protocols/discovery/endpoints.ts';
import { invalidRequest } from '../../../../../api/http/problems.ts';
import { startServer, type PublicServer } from '../../../../../api/http/server.ts';
import { createHttpMetrics } from '../../../../../lib/telemetry.ts';
import { Problem } from '../../../../../lib/problem.ts';
import { echoTool, silentTool } from '../../../../support/discovery/sample.ts';
import { silent } from '../../../../support/api/sample.ts';
import { findFreePort } from '../../../../support/free-port.ts';

let server: PublicServer;
let baseUrl: string;
let client: Client;
const calls: AgentCall[] = [];

/** What a runner of tools would do. */
async function call(asked: AgentCall): Promise<Awaited<ReturnType<AgentOptions['call']>>> {
  calls.push(asked);
  if (asked.tool === 'broken') throw new Error('password is hunter2');
  if (asked.tool !== 'echo') throw new Problem(invalidRequest, `there is no tool ${asked.tool}`);
  const answer = { tool: 'echo', result: { said: asked.arguments['text'] }, cost_usd: 0 };
  return Promise.resolve(
    asked.arguments['text'] === 'file'
      ? {
          answer,
          file: {
            name: 'echo.bin',
            mediaType: 'application/octet-stream',
            url: undefined,
            bytes: Uint8Array.of(1, 2, 255),
          },
        }
      : { answer },
  );
}

beforeAll(async () => {
  const port = await findFreePort();
  baseUrl = `http://127.0.0.1:${port}`;
  const offer = {
    baseUrl,
    tools: [echoTool, silentTool],
    explainOff: ({ needs }: typeof silentTool) => (needs === undefined ? undefined : 'Set tools.speech.enabled.'),
    protocols: [],
    guides: [],
    findOperations: () => undefined,
    listApps: () => [
      {
        slug: 'chat',
        title: 'Chat',
        description: 'Talks.',
        category: 'chat',
        url: 'https://chat.moorage.test',
        repo: 'https://git.test/octo/chat',
      },
    ],
  };
  const others = [createA2aEndpoint({ offer, call })];
  const app = createRequestListener({
    endpoints: [...others, ...createDiscoveryEndpoints(others, baseUrl, offer)],
    baseUrl,
    callers: { salt: 'salt', trustedProxies: createBlockList([]) },
    log: silent,
    metrics: createHttpMetrics(new Registry()),
    ending: new AbortController().signal,
  });
  server = await startServer({ port, host: '127.0.0.1', listener: app, log: silent });
  client = await new ClientFactory().createFromUrl(baseUrl);
});
afterAll(async () => server.drain({ graceMs: 0, limitMs: 100, endStreams: () => undefined }));

const part = (content: NonNullable<Part['content']>): Part => ({
  content,
  metadata: undefined,
  filename: '',
  mediaType: '',
});
const data = (value: unknown): Part => part({ $case: 'data', value });
const text = (value: string): Part => part({ $case: 'text', value });

async function send(...parts: Part[]): Promise<Message | Task> {
  const message: Message = {
    messageId: crypto.randomUUID(),
    contextId: '',
    taskId: '',
    role: Role.ROLE_USER,
    parts,
    metadata: undefined,
    extensions: [],
    referenceTaskIds: [],
  };
  return client.sendMessage({ tenant: '', message, configuration: undefined, metadata: undefined });
}

function messageParts(answer: Message | Task): Part[] {
  assert.ok('parts' in answer, JSON.stringify(answer));
  return answer.parts;
}
const older = (words: string): object => ({
  message: { kind: 'message', messageId: '1', role: 'user', parts: [{ kind: 'text', text: words }] },
});
const valueOf = ({ content }: Part): unknown => content?.value;

test('the card has the form of A2A 1.0, with a skill for each tool and each live app [spec service.agent-card]', async () => {
  const card = z
    .looseObject({
      name: z.string(),
      description: z.string(),
      version: z.string(),
      capabilities: z.looseObject({}),
      defaultInputModes: z.array(z.string()),
      defaultOutputModes: z.array(z.string()),
      supportedInterfaces: z.array(
        z.looseObject({ url: z.string(), protocolBinding: z.string(), protocolVersion: z.string() }),
      ),
      skills: z.array(
        z.looseObject({ id: z.string(), name: z.string(), description: z.string(), tags: z.array(z.string()).min(1) }),
      ),
    })
    .parse(await (await fetch(`${baseUrl}/.well-known/agent-card.json`)).json());
  assert.deepEqual(
    card.supportedInterfaces.map(({ url, protocolBinding, protocolVersion }) => [
      url,
      protocolBinding,
      protocolVersion,
    ]),
    ['1.0', '0.3'].map((version) => [`${baseUrl}/a2a`, 'JSONRPC', version]),
  );
  assert.deepEqual(
    card.skills.map(({ id }) => id),
    ['echo', 'listen', 'app:chat'],
  );
  assert.match(card.skills[1]?.description ?? '', /Not available here\. Set tools\.speech\.enabled/);
});

test('a data part runs a tool; so does the same as text', async () => {
  const wanted = { tool: 'echo', arguments: { text: 'ahoy' } };
  for (const one of [data(wanted), text(JSON.stringify(wanted))]) {
    calls.length = 0;
    assert.deepEqual(messageParts(await send(one)).map(valueOf), [
      { tool: 'echo', result: { said: 'ahoy' }, cost_usd: 0 },
    ]);
    assert.deepEqual(
      calls.map(({ tool, arguments: given }) => [tool, given]),
      [['echo', { text: 'ahoy' }]],
    );
  }
});

test('a file comes beside the result', async () => {
  const [, file] = messageParts(await send(data({ tool: 'echo', arguments: { text: 'file' } })));
  assert.deepEqual(
    [file?.filename, file?.mediaType, file?.content?.$case],
    ['echo.bin', 'application/octet-stream', 'raw'],
  );
  assert.deepEqual([...Buffer.from(file?.content?.value as Uint8Array)], [1, 2, 255]);
});

test('a text is answered with what can be done, and in full of the tool that it names', async () => {
  const [all] = messageParts(await send(text('Hello, what can you do?')));
  assert.match(String(all?.content?.value), /- echo: Echo\n- listen: Listen/);
  const [one] = messageParts(await send(text('How do I use echo?')));
  assert.match(String(one?.content?.value), /"text":"ahoy & welcome"/);
  assert.match(String(one?.content?.value), /"maxLength":200/);
});

test('an app is listed with where it answers', async () => {
  assert.deepEqual(
    messageParts(await send(data({ tool: 'app:chat' }))).map(
      (one) => z.looseObject({ url: z.string() }).parse(valueOf(one)).url,
    ),
    ['https://chat.moorage.test'],
  );
});

test('a refusal is a rejected task with the problem, a fault a failed one that does not show its insides', async () => {
  for (const [tool, state, says] of [
    ['nope', TaskState.TASK_STATE_REJECTED, /no tool nope/],
    ['app:nope', TaskState.TASK_STATE_REJECTED, /No live app is named "nope"/],
    ['broken', TaskState.TASK_STATE_FAILED, /on our side/],
  ] as const) {
    const answer = await send(data({ tool }));
    assert.ok('status' in answer);
    assert.equal(answer.status?.state, state);
    const [words, problem] = answer.status.message?.parts ?? [];
    assert.match(String(words?.content?.value), says);
    assert.match(JSON.stringify(problem?.content?.value), /"request_id"/);
    assert.doesNotMatch(JSON.stringify(answer), /hunter2/);
  }
});

test('what is not a request of the protocol is a JSON-RPC error', async () => {
  const post = async (body: unknown, headers: Record<string, string> = {}): Promise<number | undefined> => {
    const answer = await fetch(`${baseUrl}/a2a`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...headers },
      body: JSON.stringify(body),
    });
    assert.equal(answer.status, 200);
    return z
      .looseObject({ jsonrpc: z.literal('2.0'), error: z.looseObject({ code: z.int() }).optional() })
      .parse(await answer.json()).error?.code;
  };
  const request = {
    jsonrpc: '2.0',
    id: 1,
    method: 'SendMessage',
    params: { message: { messageId: '1', role: 'ROLE_USER', parts: [{ text: 'Hi' }] } },
  };
  assert.equal(await post(request), undefined);
  assert.equal(await post({ ...request, method: 'Nope' }), -32601);
  assert.equal(await post({}), -32602);
  assert.equal(await post({ ...request, params: {} }), -32602);
  assert.equal(await post(request, { 'a2a-version': '0.2' }), -32009);
  assert.equal(await post(request, { 'a2a-version': '0.3' }), -32601);
  assert.equal(
    await post({ ...request, method: 'tasks/get', params: { id: 'none' } }, { 'a2a-version': '0.3.0' }),
    -32001,
  );
  assert.equal(await post({ ...request, method: 'SendStreamingMessage', params: {} }), -32602);
  assert.equal(await post({ ...request, method: 'SubscribeToTask', params: { id: 'none' } }), -32001);
  assert.equal(await post({ ...request, method: 'tasks/resubscribe', params: { id: 'none' } }), -32001);
  assert.equal(await post({ ...request, method: 'CreateTaskPushNotificationConfig', params: { url: 'x' } }), -32602);
  assert.equal(await post({ jsonrpc: '2.0', id: 2, method: 'GetTask', params: { id: 'none' } }), -32001);
});

test('a client of A2A 0.3 finds the endpoint in the card and runs a tool', async () => {
  const { supportedInterfaces, ...card } = (await (
    await fetch(`${baseUrl}/.well-known/agent-card.json`)
  ).json()) as Record<string, unknown>;
  assert.ok(supportedInterfaces !== undefined && isLegacyAgentCard(card));
  const {
    supportedInterfaces: [entry],
    skills,
  } = parseLegacyAgentCard(card);
  assert.deepEqual([entry?.url, entry?.protocolBinding, skills.length], [`${baseUrl}/a2a`, 'JSONRPC', 3]);
  const transport = new LegacyJsonRpcTransport({ endpoint: entry?.url ?? '' });
  const message: Message = {
    messageId: '1',
    contextId: '',
    taskId: '',
    role: Role.ROLE_USER,
    parts: [data({ tool: 'echo', arguments: { text: 'ahoy' } })],
    metadata: undefined,
    extensions: [],
    referenceTaskIds: [],
  };
  const answer = await transport.sendMessage({ tenant: '', message, configuration: undefined, metadata: undefined });
  assert.deepEqual(messageParts(answer as Message).map(valueOf), [
    { tool: 'echo', result: { said: 'ahoy' }, cost_usd: 0 },
  ]);
  const plain = await fetch(`${baseUrl}/a2a`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ jsonrpc: '2.0', id: 7, method: 'message/send', params: older('What can you do?') }),
  });
  assert.match(await plain.text(), /"id":7.*"kind":"message".*- echo: Echo/);
});
