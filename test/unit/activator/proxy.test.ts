// The activator with real sockets: requests, streams and changes of protocol are passed on as they are, and held while
// their app is asleep.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { createServer, request, type IncomingMessage, type RequestListener, type Server } from 'node:http';
import { connect, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeEach, onTestFinished, test } from 'vitest';
import { host, probeToken, startActivator, type ActivatorWorld } from '../../support/activator/world.ts';
import { findFreePort, listen } from '../../support/free-port.ts';

let world: ActivatorWorld;
const apps: Server[] = [];

beforeEach(async () => {
  world = await startActivator();
});
afterEach(async () => {
  await world.stop();
  for (const server of apps.splice(0)) {
    server.closeAllConnections();
    server.close();
  }
});

async function startApp(listener: RequestListener, port = 0): Promise<number> {
  const server = createServer(listener);
  apps.push(server);
  return listen(server, port);
}

interface Answer {
  readonly status: number;
  readonly headers: IncomingMessage['headers'];
  readonly trailers: NodeJS.Dict<string>;
  readonly body: string;
}

interface Question {
  readonly method?: string;
  readonly path?: string;
  readonly headers?: Record<string, string>;
  readonly body?: string | Buffer;
  readonly trailers?: Record<string, string>;
}

async function ask({ method = 'GET', path = '/', headers = {}, body, trailers }: Question = {}): Promise<Answer> {
  const asked = request({ port: world.port, method, path, headers: { host, ...headers }, agent: false });
  const answered = once(asked, 'response') as Promise<[IncomingMessage]>;
  if (body !== undefined) asked.write(body);
  if (trailers !== undefined) asked.addTrailers(trailers);
  asked.end();
  const [response] = await answered;
  const chunks: Buffer[] = [];
  for await (const chunk of response as AsyncIterable<Buffer>) chunks.push(chunk);
  return {
    status: response.statusCode ?? 0,
    headers: response.headers,
    trailers: response.trailers,
    body: Buffer.concat(chunks).toString(),
  };
}

async function until(holds: () => boolean): Promise<void> {
  while (!holds()) await sleep(5);
}

const asleep = (number: number): void => {
  world.show({ idle: { state: 'Asleep', number, wakeMs: 900 } });
  world.run();
};

test('a request and its response are passed on as they are, without what is about the connection', async () => {
  const seen: IncomingMessage['headers'][] = [];
  const port = await startApp((asked, answer) => {
    seen.push(asked.headers);
    asked.resume();
    asked.once('end', () => {
      answer.writeHead(203, 'Fine', [
        ['Set-Cookie', 'a=1'],
        ['Set-Cookie', 'b=2'],
        ['Keep-Alive', 'timeout=9'],
        ['X-Trailer-Sent', asked.trailers['x-sum'] ?? ''],
        ['Trailer', 'X-Check'],
      ]);
      answer.write('hello');
      answer.addTrailers({ 'X-Check': 'ok' });
      answer.end();
    });
  });
  world.run({ port });
  const answer = await ask({
    method: 'POST',
    path: '/a?b=c',
    headers: {
      'x-own': '1',
      connection: 'x-own, keep-alive',
      te: 'trailers',
      'transfer-encoding': 'chunked',
      trailer: 'X-Sum',
      'x-kept': 'yes',
    },
    body: 'text',
    trailers: { 'X-Sum': '42' },
  });
  assert.deepEqual([answer.status, answer.body, answer.headers['set-cookie']], [203, 'hello', ['a=1', 'b=2']]);
  assert.notEqual(answer.headers['keep-alive'], 'timeout=9');
  assert.equal(answer.headers['x-trailer-sent'], '42');
  assert.deepEqual({ ...answer.trailers }, { 'x-check': 'ok' });
  assert.deepEqual([seen[0]?.host, seen[0]?.['x-kept'], seen[0]?.['x-own']], [host, 'yes', undefined]);
});

test('a body of 64 MB goes through in both directions without being kept', async () => {
  const port = await startApp((asked, answer) => {
    answer.writeHead(200);
    asked.pipe(answer);
  });
  world.run({ port });
  const asked = request({ port: world.port, method: 'POST', headers: { host }, agent: false });
  const answered = once(asked, 'response') as Promise<[IncomingMessage]>;
  const chunk = Buffer.alloc(1_048_576, 7);
  const sent = createHash('sha256');
  const writing = (async () => {
    for (let index = 0; index < 64; index += 1) {
      sent.update(chunk);
      if (!asked.write(chunk)) await once(asked, 'drain');
    }
    asked.end();
  })();
  const received = createHash('sha256');
  for await (const part of (await answered)[0] as AsyncIterable<Buffer>) received.update(part);
  await writing;
  assert.equal(received.digest('hex'), sent.digest('hex'));
});

test('events of a stream arrive one by one, and the app is in use until the stream ends', async () => {
  const next: (() => void)[] = [];
  const port = await startApp((_asked, answer) => {
    answer.writeHead(200, { 'content-type': 'text/event-stream' });
    answer.flushHeaders();
    next.push(() => answer.write('data: x\n\n'));
  });
  world.run({ port });
  const asked = request({ port: world.port, headers: { host }, agent: false });
  asked.end();
  const [response] = (await once(asked, 'response')) as [IncomingMessage];
  for (let event = 0; event < 3; event += 1) {
    const arrived = once(response, 'data') as Promise<[Buffer]>;
    next[0]?.();
    assert.equal((await arrived)[0].toString(), 'data: x\n\n');
  }
  assert.equal(world.activity.report().apps['hello']?.inFlight, 1);
  assert.equal(world.activity.close({ app: 'hello', number: 1, idleMs: 0 }), false);
  response.on('error', () => undefined);
  asked.destroy();
  await eventually(() => world.activity.inFlight === 0);
  assert.equal(world.activity.close({ app: 'hello', number: 1, idleMs: 0 }), true);
});

/** An app that speaks a protocol of its own after the upgrade: it sends back what it gets. */
async function startEcho(port = 0): Promise<number> {
  const server = createServer((_asked, answer) => answer.end('plain'));
  server.on('upgrade', (asked, stream) => {
    if (asked.url === '/refused') {
      stream.end('HTTP/1.1 403 Forbidden\r\nContent-Length: 2\r\n\r\nno');
      return;
    }
    stream.write('HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nX-App: yes\r\n\r\n');
    stream.pipe(stream);
  });
  apps.push(server);
  return listen(server, port);
}

function upgrade(path = '/'): Promise<[IncomingMessage, Socket]> {
  const asked = request({
    port: world.port,
    path,
    headers: { host, connection: 'Upgrade', upgrade: 'websocket', 'sec-websocket-key': 'x' },
    agent: false,
  });
  asked.end();
  return once(asked, 'upgrade') as unknown as Promise<[IncomingMessage, Socket]>;
}

test('a change of protocol is passed on, bytes go both ways, and either end closes both', async () => {
  world.run({ port: await startEcho() });
  const [response, socket] = await upgrade();
  assert.deepEqual([response.statusCode, response.headers['x-app']], [101, 'yes']);
  for (const text of ['one', 'two']) {
    const back = once(socket, 'data') as Promise<[Buffer]>;
    socket.write(text);
    assert.equal((await back)[0].toString(), text);
  }
  assert.equal(world.activity.inFlight, 1);
  socket.destroy();
  await eventually(() => world.activity.inFlight === 0);
});

test('an app that refuses a change of protocol is heard', async () => {
  world.run({ port: await startEcho() });
  const asked = request({
    port: world.port,
    path: '/refused',
    headers: { host, connection: 'Upgrade', upgrade: 'websocket' },
    agent: false,
  });
  asked.end();
  const [response] = (await once(asked, 'response')) as [IncomingMessage];
  response.resume();
  assert.equal(response.statusCode, 403);
});

test('1,000 requests at once wake an app with one word, and all of them get its response', async () => {
  asleep(3);
  const port = await findFreePort();
  world.onAsk = () => {
    world.show({ idle: { state: 'Waking', number: 3, wakeMs: undefined } });
    world.run({ port, isReady: false });
    setTimeout(() => {
      void startApp((asked, answer) => {
        asked.resume();
        asked.once('end', () => answer.end(`hello ${asked.url ?? ''}`));
      }, port);
    }, 300);
  };
  const answers = await Promise.all(
    Array.from({ length: 1_000 }, (_, index) =>
      ask({ path: `/${index}`, ...(index % 4 === 0 ? { method: 'POST', body: 'x'.repeat(2_000) } : {}) }),
    ),
  );
  assert.deepEqual(
    answers.map(({ status, body }) => `${status} ${body}`),
    answers.map((_, index) => `200 hello /${index}`),
  );
  assert.deepEqual(world.asked, [3]);
  assert.deepEqual(
    world.measured.map(({ depth }) => depth),
    ['sleep'],
  );
  assert.equal(world.activity.report().apps['hello']?.wakes[0]?.number, 3);
  assert.equal(world.gate.heldRequests, 0);
});

/** A server that never takes a connection, with a queue for two (one more than the number it asks for). */
const neverAccepts = `const server = require('node:net').createServer().listen(0, '127.0.0.1', 1, () => {
  require('node:fs').writeSync(1, String(server.address().port)); for (;;); });`;

test('held requests go to another pod soon where the queue of the first is full, however long the kernel would try', async () => {
  asleep(1);
  const asked = Promise.all(Array.from({ length: 10 }, () => ask()));
  await until(() => world.gate.heldRequests === 10);
  const full = spawn(process.execPath, ['-e', neverAccepts], { stdio: ['ignore', 'pipe', 'inherit'] });
  onTestFinished(() => void full.kill('SIGKILL'));
  const port = Number(((await once(full.stdout, 'data')) as [Buffer])[0].toString());
  const queued = connect(port);
  onTestFinished(() => void queued.destroy());
  await once(queued, 'connect');
  // The look whether it listens takes the other place.
  world.show({});
  world.run({ port });
  await until(() => world.gate.heldRequests === 0);
  world.run({ port: await startApp((_asked, answer) => answer.end('hello')) });
  const order = await Promise.race([asked.then(() => 'the responses'), sleep(8_000, 'a connection that is given up')]);
  assert.equal(order, 'the responses');
  assert.deepEqual(new Set((await asked).map(({ body }) => body)), new Set(['hello']));
});

test('a stream and a change of protocol are held as any other request', async () => {
  asleep(1);
  const port = await findFreePort();
  world.onAsk = () => {
    world.run({ port, isReady: false });
    setTimeout(() => void startEcho(port), 100);
  };
  const [[response, socket], plain] = await Promise.all([upgrade(), ask()]);
  assert.deepEqual([response.statusCode, plain.body], [101, 'plain']);
  const back = once(socket, 'data') as Promise<[Buffer]>;
  socket.write('late');
  assert.equal((await back)[0].toString(), 'late');
  socket.destroy();
});

test('the body of a held request is not read, nor asked for, until the app takes it', async () => {
  asleep(1);
  const port = await findFreePort();
  const client = connect(world.port, '127.0.0.1');
  const heard: string[] = [];
  client.on('data', (chunk: Buffer) => heard.push(chunk.toString()));
  client.write(`POST / HTTP/1.1\r\nHost: ${host}\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n`);
  await eventually(() => world.gate.heldRequests === 1);
  await sleep(100);
  assert.deepEqual(heard, []);
  await startApp((asked, answer) => asked.pipe(answer), port);
  world.run({ port });
  await eventually(() => heard.join('').includes('100 Continue'));
  client.write('hello');
  await eventually(() => heard.join('').includes('hello'));
  client.destroy();
});

test('a client that leaves is held no longer', async () => {
  asleep(1);
  const asked = request({ port: world.port, headers: { host }, agent: false });
  asked.on('error', () => undefined);
  asked.end();
  await eventually(() => world.gate.heldRequests === 1);
  asked.destroy();
  await eventually(() => world.gate.heldRequests === 0 && world.activity.inFlight === 0);
});

test('a person sees a page after a second, which names no script and is not kept', async () => {
  asleep(1);
  const navigation = { 'sec-fetch-mode': 'navigate', accept: 'text/html,*/*' };
  const { status, headers, body } = await ask({ headers: navigation });
  assert.deepEqual([status, headers['cache-control'], headers['retry-after']], [503, 'no-store', '1']);
  assert.match(body, /<h1>Hello is waking up<\/h1>/);
  assert.equal(headers['refresh'], '1');
  assert.doesNotMatch(body, /<script/);
  assert.match(headers['content-security-policy']?.toString() ?? '', /default-src 'none'; style-src 'sha256-/);
  const chinese = await ask({ headers: { ...navigation, 'accept-language': 'zh-CN' } });
  assert.match(chinese.body, /正在唤醒/);
  // The page that waits is answered by the app.
  const port = await startApp((_asked, answer) => answer.end('there'));
  const again = ask({ path: '/x', headers: { ...navigation, referer: `http://${host}/x` } });
  await sleep(1_300);
  world.run({ port });
  assert.equal((await again).body, 'there');
});

test('Prefer: wait=1 gets a problem after a second, with the time that wakes of this app take', async () => {
  world.show({ idle: { state: 'Asleep', number: 1, wakeMs: 4_400 } });
  const { status, headers, body } = await ask({ headers: { prefer: 'respond-async, wait=1' } });
  assert.deepEqual(
    [status, headers['content-type'], headers['retry-after'], headers['preference-applied']],
    [503, 'application/problem+json', '4', 'wait=1'],
  );
  const problem = JSON.parse(body) as { type: string; detail: string };
  assert.equal(problem.type, 'https://moorage.test/problems/app-waking');
  assert.match(problem.detail, /not ready within the 1 s of Prefer: wait\. Try again in 4 seconds\./);
});

test('a wake that fails says why, in the words of the status', async () => {
  world.show({
    idle: { state: 'Waking', number: 1, wakeMs: undefined },
    failure: { message: 'The app crashed with exit code 1 (2 restarts).', fix: 'Set KEY.' },
  });
  const { status, body } = await ask();
  assert.equal(status, 503);
  assert.match(body, /Hello does not start\. The app crashed with exit code 1 \(2 restarts\)\. Set KEY\./);
});

test('a look by the platform wakes nothing and is no use', async () => {
  asleep(1);
  assert.equal((await ask({ headers: { 'moorage-probe': probeToken } })).status, 503);
  assert.deepEqual(world.asked, []);
  const port = await startApp((_asked, answer) => answer.end('hello'));
  world.show({});
  world.run({ port });
  assert.equal((await ask({ headers: { 'moorage-probe': probeToken } })).status, 200);
  assert.equal(world.activity.report().apps['hello'], undefined);
});

test('a look of a stranger is a request like any other, and the app gets no such header', async () => {
  const seen: IncomingMessage['headers'][] = [];
  const port = await startApp((asked, answer) => {
    seen.push(asked.headers);
    answer.end('hello');
  });
  asleep(1);
  world.onAsk = () => {
    world.show({});
    world.run({ port });
  };
  assert.equal((await ask({ headers: { 'moorage-probe': '1' } })).status, 200);
  assert.deepEqual(world.asked, [1]);
  assert.notEqual(world.activity.report().apps['hello'], undefined);
  assert.equal((await ask({ headers: { 'moorage-probe': probeToken } })).status, 200);
  assert.deepEqual(
    seen.map((headers) => headers['moorage-probe']),
    [undefined, undefined],
  );
});

test('one client holds as many requests as it may, and others are held still', async () => {
  await world.stop();
  world = await startActivator({ perClient: 2 });
  const port = await startApp((_asked, answer) => answer.end('hello'));
  asleep(1);
  const as = (forwarded: string): Promise<Answer> => ask({ headers: { 'x-forwarded-for': forwarded } });
  // What a client writes itself stands before what the gateway adds, and proxies before it are no clients.
  const held = [
    as('203.0.113.7'),
    as('198.51.100.1, 203.0.113.7, 10.1.2.3'),
    as('2001:db8:0:1::1'),
    as('2001:db8:0:2::'),
  ];
  await until(() => world.gate.heldRequests === 4);
  for (const more of ['203.0.113.7', '192.0.2.1, 203.0.113.7', '2001:db8::5']) {
    const refused = await as(more);
    assert.equal(refused.status, 429);
    assert.equal(refused.headers['retry-after'], '5');
    assert.match(refused.body, /too-many-waiting/);
  }
  // The API names no client: it has limits for its callers.
  const others = [as('203.0.113.8'), as('2001:db8:1::1'), ask(), ask(), ask()];
  await until(() => world.gate.heldRequests === 9);
  world.show({});
  world.run({ port });
  assert.deepEqual(
    (await Promise.all([...held, ...others])).map(({ status }) => status),
    new Array(9).fill(200),
  );
  asleep(2);
  const last = as('203.0.113.7');
  await until(() => world.gate.heldRequests === 1);
  world.show({});
  world.run({ port });
  assert.equal((await last).status, 200);
});

test('a look while an app is being put to sleep does not wake it', async () => {
  world.run({ port: await startApp((_asked, answer) => answer.end('hello')) });
  assert.equal(world.activity.close({ app: 'hello', number: 1, idleMs: 0 }), true);
  const look = await ask({ headers: { 'moorage-probe': probeToken } });
  asleep(1);
  await sleep(100);
  assert.deepEqual([look.status, world.asked], [503, []]);
});

test('a look at an app that naps leaves it napping', async () => {
  world.run({ port: await startApp((_asked, answer) => answer.end('hello')) });
  world.show({ idle: { state: 'Napping', number: 7, wakeMs: undefined } });
  assert.equal((await ask({ headers: { 'moorage-probe': probeToken } })).status, 200);
  assert.deepEqual(world.asked, []);
});

test('a host without an app is unknown; a suspended app says so', async () => {
  assert.equal((await ask({ headers: { host: 'other.apps.test' } })).status, 404);
  world.show({ isStopped: true });
  assert.match((await ask()).body, /suspended by the operator of this installation/);
});

test('a request that comes while the app is being put to sleep is held, and answered by the pod after it', async () => {
  const old = await startApp((_asked, answer) => answer.end('old'));
  world.run({ port: old });
  assert.equal(world.activity.close({ app: 'hello', number: 1, idleMs: 0 }), true);
  const held = ask();
  await eventually(() => world.gate.heldRequests === 1);
  // The pod is still there when the app is seen to sleep: it is on its way out.
  const port = await findFreePort();
  world.onAsk = () => {
    setTimeout(() => {
      void startApp((_asked, answer) => answer.end('new'), port).then(() => {
        world.run({ port });
      });
    }, 100);
  };
  world.show({ idle: { state: 'Asleep', number: 1, wakeMs: undefined } });
  assert.equal((await held).body, 'new');
  assert.deepEqual(world.asked, [1]);
});

test('an app that is opened again, or of which nothing is heard, is held no longer', async () => {
  const port = await startApp((_asked, answer) => answer.end('hello'));
  world.run({ port });
  world.activity.close({ app: 'hello', number: 1, idleMs: 0 });
  const held = ask();
  await eventually(() => world.gate.heldRequests === 1);
  world.activity.open('hello');
  assert.equal((await held).body, 'hello');
});

test('a napping app answers at once, and is woken by it', async () => {
  const port = await startApp((_asked, answer) => answer.end('hello'));
  world.show({ idle: { state: 'Napping', number: 7, wakeMs: undefined } });
  world.run({ port });
  assert.equal((await ask()).body, 'hello');
  assert.deepEqual(world.asked, [7]);
  assert.deepEqual(
    world.measured.map(({ depth }) => depth),
    ['nap'],
  );
});

test('a connection that is reset before an answer is tried again, unless the request must not be made twice', async () => {
  let tries = 0;
  const port = await startApp((asked, answer) => {
    tries += 1;
    if (tries < 3) asked.socket.resetAndDestroy();
    else answer.end('hello');
  });
  world.run({ port });
  assert.equal((await ask()).body, 'hello');
  assert.equal(tries, 3);
  tries = 0;
  const refused = await ask({ method: 'POST', body: 'x' });
  assert.deepEqual([refused.status, tries], [502, 1]);
});

test('beyond the limit, requests are refused with a time to come back', async () => {
  await world.stop();
  world = await startActivator({ perApp: 2, total: 10 });
  asleep(1);
  const held = [ask(), ask()];
  await eventually(() => world.gate.heldRequests === 2);
  const third = await ask();
  assert.deepEqual([third.status, third.headers['retry-after']], [503, '5']);
  const port = await startApp((_asked, answer) => answer.end('hello'));
  world.run({ port });
  assert.deepEqual(await Promise.all(held.map(async (each) => (await each).status)), [200, 200]);
});

test('an app that says how it is gets requests once it is well, not once it listens', async () => {
  let isWell = false;
  const port = await startApp((asked, answer) => {
    answer.writeHead(isWell ? 200 : 503);
    answer.end(asked.url);
  });
  world.show({ healthPath: '/healthz' });
  world.run({ port, isReady: false });
  const held = ask({ path: '/app' });
  await eventually(() => world.gate.heldRequests === 1);
  await sleep(100);
  assert.equal(world.gate.heldRequests, 1);
  isWell = true;
  assert.deepEqual([(await held).status, (await held).body], [200, '/app']);
});

async function eventually(holds: () => boolean): Promise<void> {
  for (let tries = 0; tries < 1_000; tries += 1) {
    if (holds()) return;
    await sleep(10);
  }
  assert.fail('it did not come to that');
}
