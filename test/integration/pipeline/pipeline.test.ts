// Repositories of every kind go through clone, review and build for real, and the images that come out answer.
import assert from 'node:assert/strict';
import { afterAll, beforeAll, test } from 'vitest';
import { formatCacheRepository, cacheTags } from '../../../crds/names.ts';
import { buildResult, unpreparedExitCode } from '../../../controller/pipeline/contract.ts';
import { answerOf, inspect } from '../../support/pipeline/images.ts';
import { labUid, startLab, type Lab } from '../../support/pipeline/lab.ts';
import type { RepositoryContent } from '../../support/pipeline/repositories.ts';

let lab: Lab;
beforeAll(async () => {
  lab = await startLab();
});
afterAll(() => lab.stop());

/** Without it, a Dockerfile is taken for one to develop in, and the other files are planned. */
const start = 'CMD ["./server"]\n';

const apps: readonly { fixture: string; port: number; path: string; answer: RegExp }[] = [
  { fixture: 'dockerfile-app', port: 8000, path: '/', answer: /Good day from a Dockerfile/ },
  { fixture: 'fastapi', port: 8080, path: '/', answer: /hello from FastAPI/ },
  { fixture: 'flask', port: 8080, path: '/', answer: /hello from Flask/ },
  { fixture: 'express', port: 8080, path: '/', answer: /hello from Express/ },
  { fixture: 'vite', port: 8080, path: '/some/view', answer: /src="\/assets\/index-[^"]+\.js"/ },
  { fixture: 'static', port: 8080, path: '/', answer: /hello from static files/ },
];

for (const { fixture, port, path, answer } of apps) {
  test(`${fixture} becomes an image that responds as an unprivileged user`, async () => {
    const build = {
      strategy: 'auto' as const,
      dockerfile: 'Dockerfile',
      args: fixture === 'dockerfile-app' ? [{ name: 'GREETING', value: 'Good day' }] : [],
      env: [],
    };
    // The others begin with base images that are unpacked already.
    const builder = fixture === 'dockerfile-app' ? 'cold' : 'warm';
    const ended = await lab.through(fixture, { fixture }, { build }, builder);
    assert.equal(ended.code, 0, ended.log.slice(-3000));
    const result = buildResult.parse(ended.message);
    assert.match(result.image, new RegExp(`^${lab.registry.host}/apps/${fixture}\\.${labUid}@sha256:[0-9a-f]{64}$`));
    assert.equal(result.port, port);
    const said = await answerOf(lab, result.image, port, path);
    assert.match(said, answer);
    assert.match(said, /user=1000/);
  });
}

test('the same commit produces the same image, and a second build takes its layers from the cache', async () => {
  const repository = await lab.repositories.add('again', { fixture: 'flask' });
  const images: string[] = [];
  const logs: string[] = [];
  for (let round = 0; round < 2; round += 1) {
    const cache = `${lab.registry.proxy.host}/${formatCacheRepository({ name: 'again', uid: labUid })}`;
    const pod = await lab.pod(repository, { app: 'again', cache }, 'cold');
    const ended = await pod.upTo('build');
    assert.equal(ended.code, 0, ended.log.slice(-2000));
    images.push(buildResult.parse(ended.message).image);
    logs.push(ended.log);
    await pod.remove();
  }
  assert.equal(images[0], images[1]);
  assert.doesNotMatch(logs[0] ?? '', /^#\d+ CACHED/m);
  assert.match(logs[1] ?? '', /bash \/opt\/moorage\/uv\/install[^\n]*\n#\d+ CACHED/);
});

test("replaces a cache that is too large with the image's own, which the next build uses", async () => {
  const app = { name: 'large', uid: labUid };
  const ask = (path: string): Promise<Response> =>
    fetch(`http://${lab.registry.host}/v2/${formatCacheRepository(app)}/${path}`, {
      headers: { authorization: lab.registry.authorization, accept: 'application/vnd.oci.image.manifest.v1+json' },
    });
  const filled: (string | null)[][] = [];
  for (let round = 0; round < 2; round += 1) {
    const files = { 'index.html': `<p>round ${round}</p>\n` };
    const cache = `${lab.registry.proxy.host}/${formatCacheRepository(app)}`;
    const repository = await lab.repositories.add(`large-${round}`, { fixture: 'static', files });
    const pod = await lab.pod(repository, { app: app.name, cache, cacheBytes: 1_000 }, 'warm');
    const ended = await pod.upTo('build');
    assert.equal(ended.code, 0, ended.log.slice(-2000));
    assert.equal(ended.log.includes('larger than this installation keeps'), round === 0);
    await pod.remove();
    const manifests = await Promise.all([cacheTags.all, cacheTags.image].map((tag) => ask(`manifests/${tag}`)));
    filled.push(manifests.map(({ headers }) => headers.get('docker-content-digest')));
  }
  const [before, after] = filled;
  assert.ok(before?.every((digest) => digest !== null));
  assert.equal(after?.[0], before[0], 'the cache of all steps is not filled any more');
  assert.notEqual(after?.[1], before[1], 'that of the image is');
});

test('keeps build arguments and credentials out of a planned image', async () => {
  const ended = await lab.through(
    'quiet',
    {
      fixture: 'static',
      files: {
        'package.json':
          '{"scripts":{"build":"mkdir dist && echo $SECRETISH > dist/index.html"},"devDependencies":{"vite":"7.1.7"}}',
      },
    },
    {
      build: {
        strategy: 'node',
        dockerfile: 'Dockerfile',
        args: [],
        env: [{ name: 'SECRETISH', value: 'only at build time' }],
      },
    },
  );
  assert.equal(ended.code, 0, ended.log.slice(-2000));
  const { image } = buildResult.parse(ended.message);
  assert.doesNotMatch(JSON.stringify((await inspect(lab.registry, image)).configuration), /only at build time/);
  assert.match(await answerOf(lab, image, 8080, '/'), /only at build time/);
});

test('a build step reaches neither credentials nor the builder, and gains no privileges', async () => {
  const steps = [
    'id -u',
    'env',
    'cat /proc/1/cmdline | tr "\\0" " "',
    'cat /proc/1/environ | tr "\\0" "\\n"',
    'ls / /run',
    'find / -xdev -name "*.sock" -o -xdev -name config.json -path "*docker*" 2>/dev/null',
    'grep "@.*buildkit" /proc/net/unix || echo no-abstract-socket',
    'grep CapEff /proc/self/status',
    'mount -t tmpfs none /mnt 2>&1 || echo mount-refused',
    `bash -c 'exec 3<>/dev/tcp/${lab.registry.proxy.host.replace(':', '/')}; printf "GET /v2/_catalog HTTP/1.0\\r\\n\\r\\n" >&3; head -1 <&3'`,
  ];
  const ended = await lab.through('prying', {
    fixture: 'static',
    files: {
      Dockerfile: [
        'FROM debian:bookworm-slim',
        ...steps.map((step) => `RUN echo "> "; ${step}`),
        'CMD ["./server"]',
        '',
      ].join('\n'),
    },
  });
  assert.equal(ended.code, 0, ended.log.slice(-3000));
  assert.doesNotMatch(ended.log, /DOCKER_CONFIG|MOORAGE_|docker\/config\.json/);
  assert.doesNotMatch(ended.log, /^#\d+ [\d.]+ \/\S*\.sock$/m);
  assert.match(ended.log, /^#\d+ [\d.]+ no-abstract-socket$/m);
  assert.match(ended.log, /^#\d+ [\d.]+ mount-refused$/m);
  assert.match(ended.log, /HTTP\/1\.[01] 401/);
  assert.match(ended.log, /CapEff:\s+00000000a80405fb/);
});

test('a build ends at once if the installation still has to make one of its images', async () => {
  const imagesOnDemand = ['golang:1.26-bookworm', 'debian:bookworm-slim'];
  const dockerfile = `ARG GO=1.26\nFROM golang:\${GO}-bookworm AS build\nFROM debian:bookworm-slim\n${start}`;
  const content = { fixture: 'static', files: { Dockerfile: dockerfile } };
  const ended = await lab.through('unprepared', content, { imagesOnDemand });
  assert.equal(ended.code, unpreparedExitCode, ended.log.slice(-2000));
  assert.deepEqual(ended.message, { unprepared: ['golang:1.26-bookworm'] });
  assert.doesNotMatch(ended.log, /load build definition/);
});

test('a Dockerfile cannot use the images of other apps', async () => {
  const victim = await lab.through('victim', { fixture: 'static' });
  const { image } = buildResult.parse(victim.message);
  for (const [index, dockerfile] of [
    `FROM ${image}\n${start}`,
    `ARG NAME=${image}\nFROM \${NAME}\n${start}`,
    `FROM debian:bookworm-slim\nCOPY --from=${image} /srv /srv\n${start}`,
    `FROM ${image.slice(lab.registry.host.length + 1)}\n${start}`,
    `FROM ${image.replace(lab.registry.host, lab.registry.proxy.host)}\n${start}`,
  ].entries()) {
    const content = { fixture: 'static', files: { Dockerfile: dockerfile } };
    const ended = await lab.through(`thief-${index}`, content, {}, 'cold');
    assert.equal(ended.code, 42, ended.log.slice(-2000));
    assert.ok('rejected' in ended.message);
    assert.equal(ended.message.findings[0]?.rule, 'build/base-image', JSON.stringify(ended.message));
  }
});

const failures: readonly {
  name: string;
  content: RepositoryContent;
  rule: string;
  file: string;
  line?: number;
  message: RegExp;
  log?: RegExp;
}[] = [
  {
    name: 'no such package',
    content: { fixture: 'failing-build' },
    rule: 'build/failed',
    file: 'requirements.txt',
    message: /installing the packages.*no-such-package-for-moorage-tests/,
    log: /No solution found/,
  },
  {
    name: 'a step that fails',
    content: {
      fixture: 'static',
      files: { Dockerfile: `FROM debian:bookworm-slim\n\nRUN echo first \\\n && not-a-program\n${start}` },
    },
    rule: 'build/failed',
    file: 'Dockerfile',
    line: 3,
    message: /not-a-program/,
    log: /not-a-program: not found/,
  },
  {
    name: 'a file that is not there',
    content: { fixture: 'static', files: { Dockerfile: `FROM debian:bookworm-slim\nCOPY missing.txt /\n${start}` } },
    rule: 'build/file-missing',
    file: 'Dockerfile',
    line: 2,
    message: /missing\.txt/,
  },
  {
    name: 'an unknown instruction',
    content: { fixture: 'static', files: { Dockerfile: `FROM debian:bookworm-slim\nRUNN true\n${start}` } },
    rule: 'dockerfile/invalid',
    file: 'Dockerfile',
    line: 2,
    message: /RUNN/,
  },
  {
    name: 'a base image that is not there',
    content: { fixture: 'static', files: { Dockerfile: `# a comment\nFROM debian:no-such-tag\n${start}` } },
    rule: 'build/base-image',
    file: 'Dockerfile',
    line: 2,
    message: /debian:no-such-tag/,
  },
  {
    name: 'a privilege that is not given',
    content: {
      fixture: 'static',
      files: { Dockerfile: `FROM debian:bookworm-slim\nRUN --security=insecure true\n${start}` },
    },
    rule: 'build/failed',
    file: 'Dockerfile',
    message: /security\.insecure/,
  },
];

for (const [index, { name, content, rule, file, line, message, log }] of failures.entries()) {
  test(`rejects with a fix: ${name}`, async () => {
    const ended = await lab.through(`failure-${index}`, content);
    assert.equal(ended.code, 42, ended.log.slice(-2000));
    assert.ok('rejected' in ended.message);
    const [first] = ended.message.findings;
    assert.equal(first?.rule, rule, JSON.stringify(ended.message));
    assert.equal(first.file, file);
    if (line !== undefined) assert.equal(first.line, line);
    assert.match(first.message, message);
    assert.ok(first.fix.length > 20);
    if (log !== undefined) assert.match(ended.message.log ?? '', log);
  });
}

test("reports BuildKit's own checks as warnings with their line", async () => {
  const ended = await lab.through('checked', {
    fixture: 'static',
    files: { Dockerfile: 'FROM debian:bookworm-slim as base\nENV API_TOKEN=abc\nCMD ./server\n' },
  });
  assert.equal(ended.code, 0, ended.log.slice(-2000));
  const found = buildResult
    .parse(ended.message)
    .findings.map(({ rule, severity, file, line }) => ({ rule, severity, file, line }));
  assert.deepEqual(found, [
    { rule: 'dockerfile/FromAsCasing', severity: 'warning', file: 'Dockerfile', line: 1 },
    { rule: 'dockerfile/SecretsUsedInArgOrEnv', severity: 'warning', file: 'Dockerfile', line: 2 },
    { rule: 'dockerfile/JSONArgsRecommended', severity: 'warning', file: 'Dockerfile', line: 3 },
  ]);
});

test('reports a registry that refuses the push as a fault, not a verdict', async () => {
  const ended = await lab.through(
    'refused',
    { fixture: 'static' },
    { push: `${lab.registry.proxy.host}/apps/of-another` },
  );
  assert.equal(ended.code, 1, ended.log.slice(-2000));
  assert.ok('fault' in ended.message);
});
