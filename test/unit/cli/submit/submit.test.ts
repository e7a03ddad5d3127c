// Following a submission against a scripted API: by the log where it is served, else by the status.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type RequestListener, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { test } from 'vitest';
import { createApiClient } from '../../../../cli/submit/api-client.ts';
import { Fault } from '../../../../cli/submit/installation.ts';
import { createOutput } from '../../../../cli/submit/output.ts';
import { submit } from '../../../../cli/submit/submit.ts';

/** Answers one request; the address is the server's own. */
type Answer = (response: ServerResponse, url: string) => void;

const base = { slug: 'chat', url: 'https://chat.test', message: 'It waits.', commit: 'c', newest_commit: 'c' };
const inPipeline = (stage: string): object => ({ ...base, status: 'in_pipeline', stage });
const live = { ...base, status: 'live', message: 'It answers.' };
const rejection = { rule: 'secrets/aws', message: 'A key is in it.', fix: 'Remove it.' };
const rejected = { ...base, status: 'rejected', message: 'Rejected.', rejection };

const json =
  (body: object, status = 200, headers: Record<string, string> = {}): Answer =>
  (response, url) =>
    void response
      .writeHead(status, { 'content-type': 'application/json', ...headers })
      .end(JSON.stringify({ status_url: `${url}/status`, log_url: `${url}/log`, ...body }));

const refusal = (status: number, detail: string): Answer => json({ detail }, status, { 'retry-after': '0' });

const event = (name: string, data: object, id = 'a'): string =>
  `event: ${name}\nid: ${id}\ndata: ${JSON.stringify(data)}\n\n`;

/** An event stream that ends, or breaks off as a dying replica does. */
const stream =
  (text: string, { breaks = false } = {}): Answer =>
  (response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    response.write(text, () => (breaks ? response.destroy() : response.end()));
  };

interface Script {
  /** Answers in turn; the last one stays. */
  readonly log: readonly Answer[];
  readonly status: readonly Answer[];
}

/** Submits octo/chat to a server that answers by the script. Resolves with the exit code and what was shown. */
async function run(script: Script): Promise<{ code: number; lines: string[]; logs: number }> {
  const asked = { log: 0, status: 0 };
  let url = '';
  const listener: RequestListener = (request, response) => {
    const kind = request.url === '/log' ? 'log' : 'status';
    const first = json({ ...inPipeline('queued'), created: true, polled: true });
    const answer = request.method === 'POST' ? first : script[kind][Math.min(asked[kind]++, script[kind].length - 1)];
    answer?.(response, url);
  };
  const server = createServer(listener).listen(0, '127.0.0.1');
  await once(server, 'listening');
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const installation = {
    baseUrl: url,
    gitUrl: url,
    internalGitUrl: url,
    authority: undefined,
    gitPassword: undefined,
  };
  const api = createApiClient(installation, { maximumBreaks: 3, reconnectMs: 1 });
  const lines: string[] = [];
  const output = createOutput((line) => {
    lines.push(line.replace(/^ *[\d.]+ s {2}/, ''));
  });
  try {
    const code = await submit({ what: 'octo/chat' }, { installation, api, output, lookMs: 1 });
    return { code, lines, logs: asked.log };
  } finally {
    await api.close();
    server.closeAllConnections();
    server.close();
  }
}

for (const status of [404, 429, 500, 503]) {
  test(`a log refused with ${status}: one line says so, stages come from the status, and live is 0`, async () => {
    const { code, lines, logs } = await run({
      log: [refusal(status, 'too many logs')],
      status: [json(inPipeline('cloning')), json(inPipeline('building')), json(inPipeline('building')), json(live)],
    });
    assert.deepEqual([code, logs], [0, 1]);
    assert.deepEqual(lines, [
      'submitted: chat',
      'the log cannot be followed (too many logs); checking the status instead',
      'cloning',
      'building',
      'live',
      'https://chat.test',
    ]);
  });
}

test('a denied log of a rejected commit still ends with 1 and the reason', async () => {
  const { code, lines } = await run({ log: [refusal(503, 'no')], status: [json(rejected)] });
  assert.equal(code, 1);
  assert.deepEqual(lines.slice(2), [
    'rejected',
    '  rule   secrets/aws',
    '  why    A key is in it.',
    '  fix    Remove it.',
  ]);
});

test('names a proxy page instead of a log by its first line', async () => {
  const { code, lines } = await run({
    log: [(response) => void response.writeHead(503).end('no available server\nnginx\n')],
    status: [json(live)],
  });
  assert.equal(code, 0);
  assert.equal(
    lines[1],
    'the log cannot be followed (the API answered 503: no available server); checking the status instead',
  );
});

test('resumes a broken stream, also after a rejected request', async () => {
  const { code, lines, logs } = await run({
    log: [
      stream(event('log', { stage: 'build', line: 'step 1' }), { breaks: true }),
      refusal(503, 'no'),
      stream(event('log', { stage: 'build', line: 'step 2' }, 'b') + event('end', { status: 'live' }, 'c')),
    ],
    status: [json(live)],
  });
  assert.deepEqual([code, logs], [0, 3]);
  assert.deepEqual(
    lines.slice(1, -2).map((line) => line.trim()),
    ['build:', 'step 1', 'step 2'],
  );
});

test('falls back to the status if a stream stays broken', async () => {
  const { code, lines } = await run({
    log: [stream(': keepalive\n\n', { breaks: true })],
    status: [json(inPipeline('building')), json(live)],
  });
  assert.equal(code, 0);
  assert.deepEqual(lines, [
    'submitted: chat',
    'the log cannot be followed (the log stream broke 3 times in a row); checking the status instead',
    'building',
    'live',
    'https://chat.test',
  ]);
});

test('retries a status that is rejected for a while', async () => {
  const { code } = await run({
    log: [refusal(429, 'no')],
    status: [refusal(429, 'later'), refusal(503, 'later'), json(live)],
  });
  assert.equal(code, 0);
});

test('ends with a fault if a status is gone or stays rejected', async () => {
  const refused = (answer: Answer, message: string): Promise<void> =>
    assert.rejects(
      run({ log: [refusal(503, 'no')], status: [answer] }),
      (error) => error instanceof Fault && error.message === message,
    );
  await refused(refusal(404, 'there is no such app'), 'there is no such app');
  await refused(refusal(503, 'no leader'), 'no leader');
});
