// The demo router: stands in for a model router on a first look. It calls no model, and every answer says so.
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { randomUUID } from 'node:crypto';
import { z } from 'zod';
import { formatMoney, computePrice, sumMoney } from '../../billing/index.ts';
import type { Catalog } from '../catalog.ts';

/** The beginning of every answer. */
export const demoNotice =
  'This is the demo router of Moorage: no model was called, and the cost is computed from the list prices.';

export interface DemoRouter {
  /** For MOORAGE_ROUTER_URL, with MOORAGE_ROUTER_KIND=openrouter. */
  readonly url: string;
  close(): Promise<void>;
}

const question = z.looseObject({
  model: z.string(),
  stream: z.boolean().optional(),
  max_tokens: z.int().optional(),
  messages: z.array(z.looseObject({ content: z.unknown().optional() })).optional(),
  /** Texts or tokens. */
  input: z.union([z.string(), z.array(z.string()), z.array(z.int()), z.array(z.array(z.int()))]).optional(),
});
type Question = z.output<typeof question>;

export interface DemoRouterOptions {
  /** Default a free one. */
  readonly port?: number;
  /** Default this machine only. */
  readonly host?: string;
}

/** Starts it. @throws Error when the port is taken */
export async function startDemoRouter(
  catalog: Catalog,
  { port = 0, host = '127.0.0.1' }: DemoRouterOptions = {},
): Promise<DemoRouter> {
  // Idle connections are the client's to close: one that is closed here just as it is used again breaks a call.
  const server = createServer({ keepAliveTimeout: 120_000 }, (request, response) => {
    void handleRequest(catalog, request, response).catch(() => {
      response.destroy();
    });
  });
  const listening = Promise.withResolvers<undefined>();
  server.once('error', listening.reject);
  server.listen(port, host, () => {
    listening.resolve(undefined);
  });
  await listening.promise;
  return {
    url: `http://127.0.0.1:${readPort(server)}`,
    close: async () => {
      server.closeAllConnections();
      await new Promise((closed) => {
        server.close(closed);
      });
    },
  };
}

function readPort(server: Server): number {
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('the demo router is not listening');
  return address.port;
}

async function handleRequest(catalog: Catalog, request: IncomingMessage, response: ServerResponse): Promise<void> {
  if (request.url === '/healthz') {
    sendReply(response, 200, { ok: true });
    return;
  }
  const key = request.headers.authorization?.replace(/^Bearer /, '');
  if (request.url === '/key') {
    if (key === undefined) {
      // Nothing is ever spent here, by any caller.
      sendReply(response, 200, { data: { label: 'demo', limit: 0, limit_reset: null } });
      return;
    }
    sendReply(response, key.startsWith('sk-demo-') ? 200 : 401, {
      data: { label: 'demo' },
      error: { message: 'the demo router accepts only keys that begin with sk-demo-' },
    });
    return;
  }
  if (request.url === '/models') {
    sendReply(response, 200, {
      object: 'list',
      data: [...catalog.models, ...catalog.embeddings].map(({ upstream }) => ({ id: upstream, object: 'model' })),
    });
    return;
  }
  if (request.method !== 'POST') {
    sendReply(response, 404, {
      error: { message: 'the demo router keeps no records: every response carries its cost' },
    });
    return;
  }
  const asked = question.parse(JSON.parse(await readBody(request)));
  if (request.url === '/embeddings') embed(catalog, asked, response);
  else if (asked.stream === true) streamChunks(catalog, asked, response);
  else complete(catalog, asked, response);
}

async function readBody(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(Buffer.from(chunk as Uint8Array));
  return Buffer.concat(chunks).toString('utf8');
}

function complete(catalog: Catalog, asked: Question, response: ServerResponse): void {
  const { text, finish, usage } = composeAnswer(catalog, asked);
  sendReply(
    response,
    200,
    {
      id: randomUUID(),
      object: 'chat.completion',
      created: Math.floor(Date.now() / 1000),
      model: asked.model,
      choices: [{ index: 0, message: { role: 'assistant', content: text }, finish_reason: finish }],
    },
    usage,
  );
}

function streamChunks(catalog: Catalog, asked: Question, response: ServerResponse): void {
  const { text, finish, usage } = composeAnswer(catalog, asked);
  const head = {
    id: randomUUID(),
    object: 'chat.completion.chunk',
    created: Math.floor(Date.now() / 1000),
    model: asked.model,
  };
  response.writeHead(200, { 'content-type': 'text/event-stream' });
  const send = (delta: object, ended: string | null): void => {
    response.write(`data: ${JSON.stringify({ ...head, choices: [{ index: 0, delta, finish_reason: ended }] })}\n\n`);
  };
  send({ role: 'assistant', content: '' }, null);
  for (const piece of text.match(/\S+\s*/g) ?? []) send({ content: piece }, null);
  send({}, finish);
  response.end(`data: ${addUsage({ ...head, choices: [] }, usage)}\n\ndata: [DONE]\n\n`);
}

function embed(catalog: Catalog, asked: Question, response: ServerResponse): void {
  const inputs = readInputs(asked);
  const tokens = inputs.reduce(
    (sum, input) => sum + (typeof input === 'string' ? countTokens(input) : input.length),
    0,
  );
  const model = catalog.embeddings.find(({ upstream }) => upstream === asked.model);
  const cost = formatMoney(model === undefined ? sumMoney([]) : computePrice(tokens, model.in_per_m));
  sendReply(
    response,
    200,
    {
      id: randomUUID(),
      object: 'list',
      model: asked.model,
      data: inputs.map((_, index) => ({ object: 'embedding', index, embedding: [1, 0, 0] })),
    },
    `{"prompt_tokens":${tokens},"total_tokens":${tokens},"cost":${cost}}`,
  );
}

function readInputs({ input = '' }: Question): (string | number[])[] {
  if (typeof input === 'string') return [input];
  return input.every((one) => typeof one === 'number') ? [input] : input;
}

/** The answer to a question and the bill for it, as JSON text with the exact cost. */
function composeAnswer(catalog: Catalog, asked: Question): { text: string; finish: string; usage: string } {
  const model = catalog.models.find(({ upstream }) => upstream === asked.model);
  const words =
    `${demoNotice} You asked ${model?.label ?? asked.model}: ${readLastMessage(asked)}`.match(/\S+\s*/g) ?? [];
  const tokens = countTokens(JSON.stringify(asked.messages ?? []));
  const out = Math.min(words.length, asked.max_tokens ?? words.length);
  const cost = formatMoney(
    sumMoney(model === undefined ? [] : [computePrice(tokens, model.in_per_m), computePrice(out, model.out_per_m)]),
  );
  // The notice is never cut off, however few tokens were asked for.
  const kept = Math.max(out, demoNotice.split(' ').length);
  return {
    text: words.slice(0, kept).join(''),
    finish: words.length > kept ? 'length' : 'stop',
    usage: `{"prompt_tokens":${tokens},"completion_tokens":${out},"total_tokens":${tokens + out},"cost":${cost}}`,
  };
}

function readLastMessage({ messages = [] }: Question): string {
  const content = messages.at(-1)?.content;
  return (typeof content === 'string' ? content : JSON.stringify(content ?? '')).slice(0, 2_000);
}

function countTokens(text: string): number {
  return Math.ceil(text.length / 4);
}

function addUsage(body: object, usage: string): string {
  return `${JSON.stringify(body).slice(0, -1)},"usage":${usage}}`;
}

function sendReply(response: ServerResponse, status: number, body: object, usage?: string): void {
  response
    .writeHead(status, { 'content-type': 'application/json' })
    .end(usage === undefined ? JSON.stringify(body) : addUsage(body, usage));
}
