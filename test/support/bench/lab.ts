// Two chat apps that call /v1 as hosted apps do, and the models behind LiteLLM: each as able, dear and reliable as a test says.
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { z } from 'zod';
import {
  type BenchmarkManifest,
  type Grader,
  createInstance,
  type Seeds,
} from '../../../api/catalog/bench/tasks/task.ts';
import type { Values } from '../../../api/catalog/bench/tasks/template.ts';

export interface TestServer {
  readonly url: string;
  close(): Promise<void>;
}

/** A server on loopback that answers by a function of path and JSON body. */
export async function serve(
  answer: (path: string, body: unknown, response: ServerResponse) => Promise<void> | void,
): Promise<TestServer> {
  const server = createServer((request, response) => {
    void readBody(request)
      .then((text) => answer(request.url ?? '', text === '' ? undefined : JSON.parse(text), response))
      .catch((error: unknown) => response.writeHead(500).end(String(error)));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('not listening');
  return {
    url: `http://127.0.0.1:${address.port}`,
    close: async () => {
      const closed = once(server, 'close');
      server.closeAllConnections();
      server.close();
      await closed;
    },
  };
}

async function readBody(request: IncomingMessage): Promise<string> {
  const chunks: Uint8Array[] = [];
  for await (const chunk of request as AsyncIterable<Uint8Array>) chunks.push(chunk);
  return Buffer.concat(chunks).toString('utf8');
}

/** The right answer of an instance. */
export function rightAnswer(grader: Grader, values: Values): string {
  switch (grader.kind) {
    case 'json_schema':
      return JSON.stringify(grader.schema['const']);
    case 'number':
      return `The answer is\n${grader.value}`;
    case 'regex':
      return String(values['words']);
    case 'script':
      return z.array(z.string()).parse(values['sorted']).join(', ');
    case 'contains':
      return grader.values.join(' ');
  }
}

/** Which question a prompt is: its place among all of a campaign, and its right answer. */
export type Key = ReadonlyMap<string, { readonly place: number; readonly right: string }>;

export function createKey(manifest: BenchmarkManifest, seeds: Seeds, runs: number): Key {
  return new Map(
    manifest.tasks.flatMap((task, index) =>
      Array.from({ length: runs }, (_none, k) => {
        const { prompt, grader, values } = createInstance(task, k + 1, seeds);
        return [prompt, { place: index * runs + k, right: rightAnswer(grader, values) }] as const;
      }),
    ),
  );
}

/** What a model does with the question of this place. */
export type Behaviour = (place: number) => 'right' | 'wrong' | 'slow' | 429 | 500 | 503;

const completionRequest = z.looseObject({
  model: z.string(),
  user: z.unknown().optional(),
  stream: z.boolean().nullish(),
  messages: z.array(z.looseObject({ content: z.string() })).min(1),
});

/** The servers of the models, as LiteLLM asks them: tokens are characters, so that each run costs something else. */
export function upstream(
  behaviours: Readonly<Record<string, Behaviour>>,
  key: () => Key,
  seen: (request: z.output<typeof completionRequest>) => void,
): Promise<TestServer> {
  return serve(async (_path, body, response) => {
    const request = completionRequest.parse(body);
    seen(request);
    const prompt = request.messages.at(-1)?.content ?? '';
    const question = key().get(prompt);
    const behaviour = question === undefined ? 'right' : resolveBehaviour(behaviours[request.model], question.place);
    if (typeof behaviour === 'number') {
      response.writeHead(behaviour, { 'content-type': 'application/json' }).end('{"error":{"message":"not now"}}');
      return;
    }
    if (behaviour === 'slow') await new Promise((resolve) => setTimeout(resolve, 1_200));
    const content = behaviour === 'wrong' ? 'I would rather not say.' : (question?.right ?? 'Hello');
    complete(request, response, { prompt, content });
  });
}

const resolveBehaviour = (behaviour: Behaviour | undefined, place: number): ReturnType<Behaviour> =>
  behaviour?.(place) ?? 'right';

function complete(
  { model, stream }: z.output<typeof completionRequest>,
  response: ServerResponse,
  { prompt, content }: { readonly prompt: string; readonly content: string },
): void {
  const usage = {
    prompt_tokens: prompt.length,
    completion_tokens: content.length,
    total_tokens: prompt.length + content.length,
  };
  if (stream === true) {
    streamed(response, model, content, usage);
    return;
  }
  const choices = [{ index: 0, finish_reason: 'stop', message: { role: 'assistant', content } }];
  const completion = { id: 'one', object: 'chat.completion', created: 1, model, choices, usage };
  response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(completion));
}

function streamed(response: ServerResponse, model: string, content: string, usage: object): void {
  const chunk = { id: 'one', object: 'chat.completion.chunk', created: 1, model };
  response.writeHead(200, { 'content-type': 'text/event-stream' });
  const write = (data: object): void => void response.write(`data: ${JSON.stringify({ ...chunk, ...data })}\n\n`);
  write({ choices: [{ index: 0, delta: { role: 'assistant', content }, finish_reason: null }] });
  write({ choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] });
  write({ choices: [], usage });
  response.end('data: [DONE]\n\n');
}

/** Asks /v1 with the token of an app. */
export type AskModel = (body: object) => Promise<Response>;

/** Like NextChat: passes the body on as it came, and the answer back as it is. */
export function passingApp(ask: AskModel): Promise<TestServer> {
  return serve(async (path, body, response) => {
    if (path !== '/api/openai/v1/chat/completions') {
      response.writeHead(404).end('{}');
      return;
    }
    const answer = await ask(z.looseObject({}).parse(body));
    response.writeHead(answer.status, { 'content-type': 'application/json' }).end(await answer.text());
  });
}

/** An app with a mind of its own: asks for its own model, streams, and shows failures as if they were answers. */
export function ownModelApp(ask: AskModel, model: string): Promise<TestServer> {
  return serve(async (_path, body, response) => {
    const { question } = z.object({ question: z.string() }).parse(body);
    const answer = await ask({ model, stream: true, messages: [{ role: 'user', content: question }] });
    const text = await answer.text();
    const parts = answer.ok
      ? [...text.matchAll(/^data: (\{.*\})$/gm)].map(([, data = '']) => delta(data))
      : ['Something went wrong.'];
    response
      .writeHead(200, { 'content-type': 'application/json' })
      .end(JSON.stringify({ said: [question, parts.join('')] }));
  });
}

const chunkShape = z.looseObject({
  choices: z.array(z.looseObject({ delta: z.looseObject({ content: z.string().nullish() }).nullish() })).nullish(),
});
const delta = (data: string): string => chunkShape.parse(JSON.parse(data)).choices?.[0]?.delta?.content ?? '';
