// What native code finds that the input of a tool has taken over: it runs as a worker does, so the test does the same, by
// kubectl exec where workers run.
import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import sharp from 'sharp';
import { beforeAll, describe, test } from 'vitest';
import { z } from 'zod';
import { baseUrl, crash, waitFor, get, runKubectl, systemNamespace, type Answer } from '../support/cluster.ts';

const findings = z.object({
  uid: z.number(),
  status: z.string(),
  commands: z.array(z.string()),
  environments: z.array(z.string()),
  files: z.array(z.string()),
  written: z.array(z.string()),
  reached: z.array(z.string()),
});
type Findings = z.infer<typeof findings>;

/** Everything that a process of the container can read, write and reach, as one line of JSON. */
const look = `
const fs = require('node:fs'), net = require('node:net');
const read = (path) => { try { return fs.readFileSync(path, 'latin1'); } catch { return ''; } };
const pids = fs.readdirSync('/proc').filter((name) => /^[0-9]+$/.test(name));
const walk = (path, depth = 4) => { try { return fs.readdirSync(path, { withFileTypes: true }).flatMap((entry) => entry.isDirectory() ? (depth > 0 ? walk(path + '/' + entry.name, depth - 1) : []) : [path + '/' + entry.name]); } catch { return []; } };
const tryWrite = (path) => { try { fs.writeFileSync(path, 'x'); fs.unlinkSync(path); return [path]; } catch { return []; } };
const reach = (address) => new Promise((resolve) => {
  const at = address.lastIndexOf(':');
  const socket = net.connect({ host: address.slice(0, at), port: Number(address.slice(at + 1)), timeout: 2000 });
  const end = (answer) => { socket.destroy(); resolve(answer); };
  socket.once('connect', () => end([address])).once('timeout', () => end([])).once('error', () => end([]));
});
Promise.all(ADDRESSES.map(reach)).then((reached) => console.log(JSON.stringify({
  uid: process.getuid(),
  status: read('/proc/self/status'),
  commands: pids.map((pid) => read('/proc/' + pid + '/cmdline').split('\\0').join(' ')),
  environments: pids.map((pid) => read('/proc/' + pid + '/environ')),
  files: ['/var/run/secrets', '/run/secrets', '/etc/moorage'].flatMap((path) => walk(path)).map((path) => path + ' ' + read(path)),
  written: ['/tmp/x', '/app/x', '/etc/x', '/dev/x'].flatMap(tryWrite),
  reached: reached.flat(),
})));
`;

const inSystem = (...args: readonly string[]): Promise<string> => runKubectl('-n', systemNamespace, ...args);

async function lookFrom(pod: string, addresses: readonly string[] = []): Promise<Findings> {
  const script = look.replace('ADDRESSES', JSON.stringify(addresses));
  return findings.parse(JSON.parse(await inSystem('exec', pod, '--', 'node', '-e', script)));
}

function tool(name: string, input: object): Promise<Answer> {
  const body = JSON.stringify(input);
  return get(new URL(`/t/${name}`, baseUrl), { method: 'POST', headers: { 'content-type': 'application/json' }, body });
}

/** Pods of Moorage's own image, by name. */
async function pods(component?: string): Promise<readonly string[]> {
  const label = component === undefined ? 'in (api,workers,operator)' : `=${component}`;
  const listed = await inSystem(
    'get',
    'pods',
    '-l',
    `app.kubernetes.io/component${component === undefined ? ' ' : ''}${label}`,
    '--field-selector=status.phase=Running',
    '-o',
    'jsonpath={.items[*].metadata.name}',
  );
  return listed.split(' ').filter((name) => name !== '');
}

/** Where a worker is at work, found by giving it some. */
async function podOfAWorker(): Promise<string> {
  const call = tool('run_code', { code: 'const until = Date.now() + 6000; while (Date.now() < until); "done"' });
  const found = await waitFor(
    'no pod has a worker',
    async () => {
      for (const pod of await pods())
        if ((await lookFrom(pod)).commands.some((command) => command.includes('worker-main.ts'))) return pod;
      return undefined;
    },
    20,
  );
  await call;
  return found;
}

/** Every value of every Secret of the namespace that is long enough to be looked for. */
async function secrets(): Promise<readonly string[]> {
  const list = z
    .object({ items: z.array(z.object({ data: z.record(z.string(), z.string()).default({}) }).loose()) })
    .parse(JSON.parse(await inSystem('get', 'secrets', '-o', 'json')));
  return list.items
    .flatMap(({ data }) => Object.values(data))
    .map((value) => Buffer.from(value, 'base64').toString('latin1'))
    .filter((value) => value.length >= 8);
}

async function innerAddresses(): Promise<readonly string[]> {
  const of = (kind: string, path: string): Promise<string> => inSystem('get', kind, '-o', `jsonpath=${path}`);
  const pod = async (component: string): Promise<string> =>
    inSystem(
      'get',
      'pods',
      '-l',
      `app.kubernetes.io/component=${component}`,
      '-o',
      'jsonpath={.items[0].status.podIP}',
    );
  const [api, operator, postgres, node, dns] = await Promise.all([
    pod('api'),
    pod('operator'),
    pod('postgres'),
    of('nodes', '{.items[0].status.addresses[?(@.type=="InternalIP")].address}'),
    runKubectl('get', 'service', '-n', 'kube-system', '-o', 'jsonpath={.items[0].spec.clusterIP}'),
  ]);
  return [
    ...[8080, 8081, 9090].map((port) => `${api}:${port}`),
    `${operator}:9090`,
    `${postgres}:5432`,
    ...[6443, 10_250, 5000, 443].map((port) => `${node}:${port}`),
    '10.96.0.1:443',
    `${dns}:53`,
    '169.254.169.254:80',
    '1.1.1.1:443',
  ];
}

describe('attack: native code in a worker', () => {
  let worker: string;
  let found: Findings;
  beforeAll(async () => {
    worker = await podOfAWorker();
    found = await lookFrom(worker, await innerAddresses());
  });

  test('finds no Secret and no token in its environment or files', async () => {
    const values = await secrets();
    assert.ok(values.length >= 3);
    const all = JSON.stringify([found.environments, found.files, found.commands]);
    for (const value of values) assert.ok(!all.includes(JSON.stringify(value).slice(1, -1)), 'a Secret was found');
    assert.deepEqual(found.files, []);
    const names = found.environments.flatMap((text) => text.split('\0').map((line) => line.split('=')[0] ?? ''));
    assert.deepEqual(
      [...new Set(names)].filter((name) => /SECRET|SALT|TOKEN|KEY$|DATABASE|ROUTER|PASSWORD/.test(name)),
      [],
    );
  });

  test('sees only processes of workers', () => {
    for (const command of found.commands)
      assert.match(
        command,
        /remote\/server-main\.ts|worker-main\.ts|chromium-headless-shell|^node -e |^\/pause|^$/,
        command,
      );
  });

  test('is not root, has and gains no capability, is confined, and writes only temporary files', () => {
    assert.ok(found.uid > 1000);
    assert.match(found.status, /^CapEff:\s+0+$/m);
    assert.match(found.status, /^CapBnd:\s+0+$/m);
    assert.match(found.status, /^NoNewPrivs:\s+1$/m);
    assert.match(found.status, /^Seccomp:\s+2$/m);
    // Gone with the pod, like the processes.
    assert.deepEqual(found.written, ['/tmp/x']);
  });

  test('reaches no API, database, node, name server or internet address', () => {
    assert.deepEqual(found.reached, []);
  });

  test('the same probe from the API finds all of these, which shows that the probe works', async () => {
    const [api] = await pods('api');
    const seen = await lookFrom(api ?? '', ['10.96.0.1:443']);
    assert.ok(seen.environments.some((text) => text.includes('MOORAGE_CALLER_SALT=')));
    assert.ok(seen.files.some((file) => file.startsWith('/var/run/secrets/kubernetes.io/serviceaccount/')));
    assert.deepEqual(seen.reached, ['10.96.0.1:443']);
    assert.ok(seen.commands.every((command) => !command.includes('worker-main.ts')));
  });
});

describe('tools in workers', () => {
  const red = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg==';
  const calls = [
    ['run_code', { code: '6 * 7' }, /42/],
    ['render_diagram', { source: 'pie\n "Dogs": 3', format: 'png' }, /"kind":"mermaid".*"warnings":\[\]/],
    ['validate_json', { schema: { type: 'string' }, data: 1 }, /"valid":false/],
    ['convert_image', { data: red, format: 'webp', width: 8 }, /webp/],
  ] as const;

  for (const [name, input, answer] of calls) {
    test(`${name} answers through the gateway`, async () => {
      const { status, body } = await tool(name, input);
      assert.equal(status, 200, body);
      assert.match(body, answer);
    });
  }

  test('converts a picture for which libvips uses temporary files', async () => {
    const large = await sharp({ create: { width: 6_000, height: 6_000, channels: 4, background: '#f00a' } })
      .webp({ effort: 0 })
      .toBuffer();
    const input = { data: large.toString('base64'), format: 'png', width: 4_000, height: 2_000, fit: 'cover' };
    const { status, body } = await tool('convert_image', input);
    assert.equal(status, 200, body.slice(0, 500));
  });

  test('recover after all workers are killed; calls in the meantime are answered, or rejected with an explanation', async () => {
    assert.ok(crash('remote/server-main.ts') >= 1);
    const outcomes = await Promise.all(
      Array.from({ length: 6 }, async (_, at) => {
        await sleep(at * 500);
        return tool('run_code', { code: '6 * 7' });
      }),
    );
    for (const { status, body, headers } of outcomes) {
      assert.ok(status === 200 || status === 503, body);
      if (status === 503) assert.match(`${body} ${String(headers['retry-after'])}`, /tool-busy.* 5$/s);
    }
    await waitFor('run_code answers again', async () =>
      (await tool('run_code', { code: '6 * 7' })).status === 200 ? true : undefined,
    );
  });
});
