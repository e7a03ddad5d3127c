// A hash of sources changes with everything that the image is built from, and with nothing else.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { chmod, mkdir, mkdtemp, rename, rm, symlink, utimes, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, onTestFinished, test } from 'vitest';
import { readPushedConfig } from '../../../../../controller/pipeline/build/image-config.ts';
import { computeSourceHash, createPathHasher } from '../../../../../controller/pipeline/build/source-hash.ts';
import { sampleInput } from '../../../../support/pipeline/sample.ts';

let root = '';
beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), 'moorage-hash-'));
  await mkdir(join(root, 'api', 'src'), { recursive: true });
  await writeFile(join(root, 'api', 'src', 'main.py'), 'x = 1\n');
  await writeFile(join(root, 'api', 'Dockerfile'), 'FROM python:3.13\nCOPY . .\n');
});
afterEach(() => rm(root, { recursive: true, force: true }));

interface Changes {
  readonly authored?: boolean;
  readonly build?: Partial<ReturnType<typeof sampleInput>['build']>;
  readonly commit?: string;
  readonly time?: number;
  readonly secret?: string;
}

function hash({
  authored = true,
  build = {},
  commit = 'a'.repeat(40),
  time = 1,
  secret = 's',
}: Changes = {}): Promise<string> {
  const context = join(root, 'api');
  const notes = { authored, context, dockerfile: join(context, 'Dockerfile') };
  const input = { build: { ...sampleInput().build, ...build }, commit };
  return computeSourceHash({ input, notes, time }, createPathHasher(), secret);
}

test('is the same for another commit, another time and other folders', async () => {
  const before = await hash();
  assert.match(before, /^v1:[\w-]{43}$/);
  await writeFile(join(root, 'other.txt'), 'changed');
  await utimes(join(root, 'api', 'src', 'main.py'), 5, 5);
  assert.equal(await hash({ commit: 'b'.repeat(40), time: 2 }), before);
});

test('changes with contents, names, links, executable bits, the Dockerfile, arguments and target', async () => {
  const file = join(root, 'api', 'src', 'main.py');
  const steps: (() => Promise<unknown>)[] = [
    () => writeFile(file, 'x = 2\n'),
    () => chmod(file, 0o755),
    () => rename(file, join(root, 'api', 'src', 'app.py')),
    () => symlink('src/app.py', join(root, 'api', 'link')),
    () => mkdir(join(root, 'api', 'empty')),
    () => writeFile(join(root, 'api', 'Dockerfile'), 'FROM python:3.14\nCOPY . .\n'),
  ];
  const seen = new Set([await hash()]);
  for (const step of steps) {
    await step();
    seen.add(await hash());
  }
  for (const changes of [
    { build: { target: 'run' } },
    { build: { args: [{ name: 'A', value: '1' }] } },
    { authored: false, build: { env: [{ name: 'A', value: '1' }] } },
    { authored: false, build: { env: [{ name: 'A', value: '2' }] } },
    { secret: 'other' },
  ])
    seen.add(await hash(changes));
  assert.equal(seen.size, 1 + steps.length + 5);
  // A Dockerfile of the author's does not see build.env.
  assert.equal(await hash({ build: { env: [{ name: 'A', value: '1' }] } }), await hash());
});

test('changes with the commit, if the Dockerfile declares it as an argument and none is given', async () => {
  await writeFile(join(root, 'api', 'Dockerfile'), 'FROM a\nARG X=1 GIT_SHA=none\nARG SOURCE_DATE_EPOCH\n');
  const other = { commit: 'b'.repeat(40) };
  assert.notEqual(await hash(other), await hash());
  assert.notEqual(await hash({ time: 2 }), await hash());
  const build = { args: [{ name: 'GIT_SHA', value: 'v1' }] };
  assert.equal(await hash({ build, ...other }), await hash({ build }));
});

test('leaves out what a Dockerfile does not read of its context, and counts all of it in doubt', async () => {
  const file = join(root, 'api', 'Dockerfile');
  await writeFile(join(root, 'api', 'package.json'), '{}');
  await mkdir(join(root, 'api', 'web'));
  const isSameAfter = async (text: string, change: string, content: string): Promise<boolean> => {
    await writeFile(file, `FROM a AS b\n${text}\n`);
    const before = await hash();
    await writeFile(join(root, 'api', change), content);
    return (await hash()) === before;
  };
  const copy =
    'COPY --chown=1 ./src /app/\nCOPY --from=b / /x\nADD ["package*.json", "./"]\nADD https://a.example/x /y';
  assert.ok(await isSameAfter(copy, 'web/index.html', '1'));
  assert.ok(!(await isSameAfter(copy, 'src/main.py', 'x = 3\n')));
  assert.ok(!(await isSameAfter(copy, 'package-lock.json', '{}')));
  assert.ok(!(await isSameAfter(copy, '.dockerignore', 'src/*.md\n')));
  await symlink('web', join(root, 'api', 'linked'));
  const doubtful = [
    'COPY . .',
    'COPY src/ / /app/',
    'ARG D=src\nCOPY $D /app',
    'COPY */main.py /app/',
    'COPY linked /app',
    'RUN --mount=type=bind,source=src,target=/src make',
    'RUN --mount=target=/src make',
    'ONBUILD COPY src .',
    'FROM node:onbuild',
  ];
  for (const [index, text] of doubtful.entries())
    assert.ok(!(await isSameAfter(text, 'web/index.html', `of ${index}`)), text);
  const mounts = 'RUN --mount=type=cache,target=/c --mount=type=bind,from=b,target=/b make\nCOPY src .';
  assert.ok(await isSameAfter(mounts, 'web/index.html', 'last'));
});

test('takes the configuration of an image from the registry, and gives none where anything is missing', async () => {
  const digest = `sha256:${'c'.repeat(64)}`;
  const asked: string[] = [];
  const answers: Record<string, unknown> = {
    [`/v2/apps/hello/manifests/${digest}`]: { config: { digest: `sha256:${'d'.repeat(64)}` } },
    [`/v2/apps/hello/blobs/sha256:${'d'.repeat(64)}`]: { config: { ExposedPorts: { '80/tcp': {} } } },
  };
  const server = createServer(({ url = '', headers }, response) => {
    asked.push(`${url.slice(0, 30)} ${headers.authorization === undefined ? '-' : 'token'}`);
    const answer = answers[url];
    response.writeHead(answer === undefined ? 404 : 200).end(JSON.stringify(answer ?? {}));
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  onTestFinished(() => {
    server.close();
  });
  const host = `127.0.0.1:${(server.address() as AddressInfo).port}`;
  const read = (of = digest): Promise<object | undefined> =>
    readPushedConfig({ push: `${host}/apps/hello`, plainHosts: [host] }, of, 'token');
  assert.deepEqual(await read(), { config: { ExposedPorts: { '80/tcp': {} } } });
  assert.ok(asked.every((each) => each.endsWith(' token')));
  assert.equal(await read(`sha256:${'e'.repeat(64)}`), undefined);
  delete answers[`/v2/apps/hello/blobs/sha256:${'d'.repeat(64)}`];
  assert.equal(await read(), undefined);
  server.close();
  server.closeAllConnections();
  assert.equal(await read(), undefined);
});
