// Every way by which a caller can reach a model, each as its clients send it, with what the answer says that it cost.
import assert from 'node:assert/strict';
import { z } from 'zod';
import { parseMoney, sumMoney, type Money } from '../../../api/billing/ledger/money.ts';
import { post } from './lab.ts';

export interface ShownCost {
  readonly way: string;
  /** Id of the request, as its header has it. */
  readonly request: string;
  readonly cost: Money;
  /** Whether the answer says that its cost, or a part of it, is not known yet. */
  readonly pending: boolean;
}

export interface WayIn {
  readonly name: string;
  /** @throws TypeError when the connection fails */
  call(base: string, index: number): Promise<ShownCost>;
}

const free = ['alpha-v4-flash', 'beta-K3', 'beta-K3-codex', 'gamma5.2', 'delta-5.6-luna', 'epsilon-3.5-flash'] as const;

interface Question {
  readonly prompt: string;
  readonly model: string;
  /** For comparisons. */
  readonly models: readonly string[];
}

interface Way {
  readonly name: string;
  readonly path: string;
  readonly body: (question: Question) => unknown;
  readonly headers?: Readonly<Record<string, string>>;
  /** Where in the answer the costs are. */
  readonly costs: (answer: unknown) => readonly (string | undefined)[];
  /** Whether the answer is a stream of events, of which one has the cost. */
  readonly streamed?: (event: unknown) => boolean;
}

/** Numbers become their digits, so that no sum is rounded. The types of the language do not know the third argument yet. */
const parseJson = JSON.parse as (
  text: string,
  reviver: (key: string, value: unknown, context: { readonly source?: string }) => unknown,
) => unknown;
const parseExact = (text: string): unknown =>
  parseJson(text, (_key, value, { source }) => (typeof value === 'number' ? source : value));

const cost = z.string().optional();
const costed = z.looseObject({ cost_usd: cost });
const compared = z.looseObject({ results: z.array(costed) });
const used = z.looseObject({ usage: z.looseObject({ cost }) });
const overMcp = z.looseObject({ result: z.looseObject({ structuredContent: costed }) });
const overA2a = z.looseObject({
  result: z.looseObject({ parts: z.array(z.looseObject({ data: costed.optional() })) }),
});

const readCost = (answer: unknown): [string | undefined] => [costed.parse(answer).cost_usd];
const readUsage = (answer: unknown): [string | undefined] => [used.parse(answer).usage.cost];
const messages = (prompt: string): unknown => [{ role: 'user', content: prompt }];
const toolCall = (name: string, fields: object): unknown => ({
  jsonrpc: '2.0',
  id: 1,
  method: 'tools/call',
  params: { name, arguments: fields },
});
const mcp = { accept: 'application/json, text/event-stream', 'mcp-protocol-version': '2025-11-25' };

const ways: readonly Way[] = [
  { name: '/api/ask', path: '/api/ask', body: ({ prompt, model }) => ({ prompt, model }), costs: readCost },
  {
    name: '/api/ask, stream',
    path: '/api/ask',
    body: ({ prompt, model }) => ({ prompt, model, stream: true }),
    costs: readCost,
    streamed: (event) => costed.safeParse(event).data?.cost_usd !== undefined,
  },
  {
    name: '/api/compare',
    path: '/api/compare',
    body: ({ prompt, models }) => ({ prompt, models }),
    costs: (answer) => compared.parse(answer).results.map(({ cost_usd }) => cost_usd),
  },
  { name: '/t/ask_model', path: '/t/ask_model', body: ({ prompt, model }) => ({ prompt, model }), costs: readCost },
  {
    name: '/t/compare_models',
    path: '/t/compare_models',
    body: ({ prompt, models }) => ({ prompt, models }),
    costs: readCost,
  },
  {
    name: '/mcp',
    path: '/mcp',
    headers: mcp,
    body: ({ prompt, model }) => toolCall('ask_model', { prompt, model }),
    costs: (answer) => [overMcp.parse(answer).result.structuredContent.cost_usd],
  },
  {
    name: '/v1',
    path: '/v1/chat/completions',
    body: ({ prompt, model }) => ({ model, messages: messages(prompt) }),
    costs: readUsage,
  },
  {
    name: '/v1, stream',
    path: '/v1/chat/completions',
    body: ({ prompt, model }) => ({
      model,
      messages: messages(prompt),
      stream: true,
      stream_options: { include_usage: true },
    }),
    costs: readUsage,
    streamed: (event) => used.safeParse(event).success,
  },
  {
    name: '/a2a',
    path: '/a2a',
    body: ({ prompt, model }) => ({
      jsonrpc: '2.0',
      id: 1,
      method: 'message/send',
      params: {
        message: {
          kind: 'message',
          messageId: prompt,
          role: 'user',
          parts: [{ kind: 'data', data: { tool: 'ask_model', arguments: { prompt, model } } }],
        },
      },
    }),
    costs: (answer) => [overA2a.parse(answer).result.parts.find(({ data }) => data !== undefined)?.data?.cost_usd],
  },
];

export const waysIn: readonly WayIn[] = ways.map((way) => ({
  name: way.name,
  async call(base, index) {
    const model = free[index % free.length] ?? 'beta-K3';
    const response = await post(
      `${base}${way.path}`,
      way.body({ prompt: `Question ${index}`, model, models: free.slice(index % 3, (index % 3) + 2) }),
      { 'x-forwarded-for': `198.51.${index % 40}.7`, ...way.headers },
    );
    const text = await response.text();
    assert.equal(response.status, 200, `${way.name}: ${text}`);
    const costs = way.costs(way.streamed === undefined ? parseExact(text) : findEvent(text, way.streamed));
    return {
      way: way.name,
      request: response.headers.get('x-request-id') ?? assert.fail('no id of the request'),
      cost: sumMoney(costs.map((digits) => parseMoney(digits ?? '0'))),
      pending: costs.includes(undefined),
    };
  },
}));

/** A stream that breaks off is a connection that failed. */
function findEvent(text: string, isWanted: (event: unknown) => boolean): unknown {
  for (const line of text.split('\n')) {
    if (!line.startsWith('data: {')) continue;
    const event = parseExact(line.slice('data: '.length));
    if (isWanted(event)) return event;
  }
  throw new TypeError('the stream broke off');
}
