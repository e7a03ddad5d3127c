// The small parts of the build stage: configuration, policy, checks, ports, log.
import assert from 'node:assert/strict';
import { fileURLToPath } from 'node:url';
import { parse } from 'smol-toml';
import { test } from 'vitest';
import { BuildLog } from '../../../../../controller/pipeline/build/build-log.ts';
import { findExposedPort, warnAboutVolumes } from '../../../../../controller/pipeline/build/image-config.ts';
import {
  formatDaemonConfig,
  formatSourcePolicy,
  parseRegistryHost,
  readLint,
  buildImageArguments,
} from '../../../../../controller/pipeline/build/buildkit.ts';
import { ListingReader, toNextAddress } from '../../../../../controller/pipeline/clone/fetch.ts';
import { Rejected } from '../../../../../controller/pipeline/contract.ts';
import { choosePython, isWithinRange } from '../../../../../controller/pipeline/plan/python/version.ts';
import { hasOnlyPublicTokens } from '../../../../../controller/pipeline/review/rules/secrets/formats.ts';
import { createMemoryTree } from '../../../../../controller/pipeline/tree.ts';
import { sampleInput } from '../../../../support/pipeline/sample.ts';

test('configures the daemon without foreign frontends and privileges, and with the mirror', () => {
  const input = sampleInput({
    plainHosts: ['proxy.example:5000', 'registry.example:5000'],
    mirror: 'registry.example:5000',
  });
  assert.deepEqual(
    JSON.parse(JSON.stringify(parse(formatDaemonConfig(input, { root: '/var/lib/b', socket: '/run/b.sock' }, 2)))),
    {
      root: '/var/lib/b',
      'insecure-entitlements': [],
      log: { format: 'text', level: 'warn' },
      grpc: { address: ['unix:///run/b.sock'] },
      otel: { socketPath: '/var/lib/b/otel.sock' },
      cdi: { disabled: true },
      history: { maxEntries: 2 },
      worker: {
        containerd: { enabled: false },
        oci: {
          enabled: true,
          snapshotter: 'overlayfs',
          gc: false,
          networkMode: 'host',
          binary: fileURLToPath(new URL('../../../../../controller/pipeline/build/step-runtime.sh', import.meta.url)),
          noProcessSandbox: false,
          'max-parallelism': 2,
        },
      },
      frontend: { 'gateway.v0': { enabled: false }, 'dockerfile.v0': { enabled: true } },
      registry: {
        'docker.io': { mirrors: ['registry.example:5000'] },
        'proxy.example:5000': { http: true },
        'registry.example:5000': { http: true },
      },
    },
  );
});

test('warns about image volumes that get no disk, whatever their name', () => {
  const none = new Set<string>();
  assert.deepEqual(warnAboutVolumes({ config: { Volumes: null } }, 'Dockerfile', none), []);
  assert.deepEqual(warnAboutVolumes(undefined, 'Dockerfile', none), []);
  const [warning] = warnAboutVolumes(
    { config: { Volumes: { '/data': {}, [`/\u001b[2J${'x'.repeat(9_000)}`]: {} } } },
    'Dockerfile',
    none,
  );
  assert.deepEqual([warning?.rule, warning?.severity, warning?.file], ['dockerfile/volume', 'warning', 'Dockerfile']);
  assert.match(warning?.message ?? '', /^VOLUME \(\/data, \/x+…\) has no effect/);
  assert.deepEqual(warnAboutVolumes({ config: { Volumes: { '/data/': {} } } }, 'Dockerfile', new Set(['/data'])), []);
});

test('reads the registry from an image name, and defaults to Docker Hub', () => {
  assert.deepEqual(['a/b', 'a/b/c', 'localhost/b', 'r.example/b', 'r:5000/a/b'].map(parseRegistryHost), [
    'docker.io',
    'docker.io',
    'localhost',
    'r.example',
    'r:5000',
  ]);
});

test("denies the platform's own repositories and git as sources of a build", () => {
  const denied = (input: Parameters<typeof formatSourcePolicy>[0]): string[] =>
    [...formatSourcePolicy(input).matchAll(/"DENY","selector":\{"identifier":"([^"]+)","matchType":"WILDCARD"/g)].map(
      (match) => match[1] ?? '',
    );
  const folders = ['apps', 'cache', 'moorage'];
  const proxied = ['proxy.example:5000', 'registry.example:5000'].flatMap((host) =>
    folders.map((folder) => `docker-image://${host}/${folder}/*`),
  );
  assert.deepEqual(denied(sampleInput()), [...proxied, 'git://*']);
  assert.deepEqual(denied(sampleInput({ mirror: 'other.example' })), [...proxied, 'git://*']);
  assert.deepEqual(denied(sampleInput({ mirror: 'proxy.example:5000' })), [
    ...proxied,
    ...folders.map((folder) => `docker-image://docker.io/${folder}/*`),
    'git://*',
  ]);
  assert.equal(
    denied(sampleInput({ mirror: 'proxy.example:5000', mirrorOf: ['docker.io', 'other.example'] })).length,
    proxied.length + 2 * folders.length + 1,
  );
});

test("passes the author's build arguments and the commit, but not Moorage's or the date", () => {
  const input = sampleInput();
  const args = buildImageArguments({
    input: {
      ...input,
      build: {
        ...input.build,
        args: [
          { name: 'A', value: 'b c' },
          { name: 'GIT_SHA', value: 'own' },
        ],
        env: [{ name: 'E', value: 'f' }],
      },
    },
    address: 'unix:///s',
    time: 5,
    policyFile: '/p',
    metadataFile: '/m',
    environment: {},
    notes: {
      authored: true,
      context: '/c',
      dockerfile: '/c/d/My Dockerfile',
      plan: { strategy: 'dockerfile', reason: '' },
    },
  });
  const options = args.filter((_, index) => args[index - 1] === '--opt');
  assert.deepEqual(options, [
    'filename=My Dockerfile',
    'cmdline=docker/dockerfile',
    'build-arg:A=b c',
    'build-arg:GIT_SHA=own',
    `build-arg:SOURCE_COMMIT=${input.commit}`,
    `build-arg:GIT_COMMIT=${input.commit}`,
    `build-arg:COMMIT_SHA=${input.commit}`,
  ]);
  assert.ok(args.includes('dockerfile=/c/d') && args.includes('context=/c'));
  assert.ok(!args.includes('--export-cache'));
  assert.match(args[args.indexOf('--output') + 1] ?? '', /(?:^|,)source-date-epoch=5(?:,|$)/);
});

test('imports no cache and runs every step again without the cache, and fills the cache all the same', () => {
  const buildWith = (noCache: boolean | undefined): string => {
    const solve = {
      input: { ...sampleInput(), noCache },
      cache: { ref: 'r/cache:all', mode: 'max' as const },
      address: 'unix:///s',
      time: 5,
      policyFile: '/p',
      metadataFile: '/m',
      environment: {},
      notes: {
        authored: true,
        context: '/c',
        dockerfile: '/c/Dockerfile',
        plan: { strategy: 'dockerfile' as const, reason: '' },
      },
    };
    return buildImageArguments(solve)
      .filter((argument) => argument.endsWith('-cache'))
      .join(' ');
  };
  assert.equal(buildWith(true), '--no-cache --export-cache');
  assert.equal(buildWith(undefined), '--import-cache --export-cache');
});

test('passes the bridge as a build context, and builds the last stage of an extended Dockerfile', () => {
  const input = sampleInput();
  const solve = {
    input: { ...input, build: { ...input.build, target: 'app' } },
    address: 'unix:///s',
    time: 5,
    policyFile: '/p',
    metadataFile: '/m',
    environment: {},
  };
  const notes = {
    authored: true,
    context: '/c',
    dockerfile: '/n/Dockerfile',
    plan: { strategy: 'dockerfile' as const, reason: '' },
  };
  const extended = buildImageArguments({ ...solve, notes: { ...notes, extended: '/c/Dockerfile', bridge: true } });
  assert.ok(extended.includes('context:moorage-bridge=local:moorage-bridge'));
  assert.ok(extended.includes('moorage-bridge=/usr/lib/moorage'));
  assert.ok(!extended.includes('target=app'));
  const plain = buildImageArguments({ ...solve, notes });
  assert.ok(plain.includes('target=app') && !plain.join(' ').includes('moorage-bridge'));
});

test('parses lint findings with rule, line and fix', () => {
  const text =
    '\nWARNING: SecretsUsedInArgOrEnv - https://docs.docker.com/go/x\nDo not use ARG or ENV (ENV "TOKEN")\nDockerfile:2\n--------------------\n   1 |     FROM a\n   2 | >>> ENV TOKEN=b\n   3 |     \n--------------------\n\nWARNING: StageNameCasing\nStage name should be lowercase\n';
  assert.deepEqual(
    readLint(text, 'web/Dockerfile').map(({ rule, line, file }) => [rule, file, line]),
    [
      ['dockerfile/SecretsUsedInArgOrEnv', 'web/Dockerfile', 2],
      ['dockerfile/StageNameCasing', 'web/Dockerfile', undefined],
    ],
  );
  assert.deepEqual(readLint('', 'Dockerfile'), []);
});

test('chooses the most likely of several exposed ports', () => {
  const port = (...ports: string[]): number | undefined =>
    findExposedPort({ config: { ExposedPorts: Object.fromEntries(ports.map((each) => [each, {}])) } });
  assert.equal(port('9000/tcp', '3000/tcp', '53/udp'), 3000);
  assert.equal(port('9000/tcp', '4433/tcp'), 4433);
  assert.equal(port('53/udp'), undefined);
  assert.equal(port('0/tcp', '99999/tcp'), undefined);
  assert.equal(findExposedPort({ config: { ExposedPorts: null } }), undefined);
  assert.equal(findExposedPort('nonsense'), undefined);
});

test('passes the log on up to its limit, and keeps its end', () => {
  const passed: Buffer[] = [];
  const log = new BuildLog((chunk) => {
    passed.push(Buffer.from(chunk));
  }, 10);
  for (const text of ['12345', '6\n89012\n', 'never\n', 'last']) log.add(Buffer.from(text));
  assert.ok(log.end().endsWith('never\nlast'));
  assert.equal(
    Buffer.concat(passed).toString(),
    '123456\n890\n[the log is longer than 10 bytes; the rest is not shown]\n',
  );
});

test("filters the builder's own progress from the log, in any chunks, but not from the verdict's input", () => {
  const said =
    '#4 ERROR: failed to configure registry cache importer: r/cache/a:latest: not found\n#5 sha256:0a 1MB / 2MB 0.1s\n#6 [2/3] RUN make\n#6 ...\n#6 0.1 writing é\n#6 DONE 1s\n#7 pushing layers\nerror: no';
  const bytes = Buffer.from(said);
  for (let size = 1; size < 40; size += 3) {
    const passed: Buffer[] = [];
    const log = new BuildLog((chunk) => {
      passed.push(Buffer.from(chunk));
    }, 1000);
    for (let offset = 0; offset < bytes.length; offset += size) log.add(bytes.subarray(offset, offset + size));
    assert.equal(log.end(), said);
    assert.equal(Buffer.concat(passed).toString(), '#6 [2/3] RUN make\n#6 0.1 writing é\n#6 DONE 1s\nerror: no');
  }
});

test('begins each line of a component with its name, in any chunks, and leaves blank lines out', () => {
  const passed: string[] = [];
  const log = new BuildLog(
    (chunk) => {
      passed.push(chunk.toString());
    },
    1000,
    'api | ',
  );
  for (const chunk of ['#1 on', 'e\n\n#2 tw', 'o\n', 'last']) log.add(Buffer.from(chunk));
  log.end();
  assert.equal(passed.join(''), 'api | #1 one\napi | #2 two\napi | last');
});

test('recognizes tokens that may be public', () => {
  const token = (claims: object): string =>
    `eyJhbGciOiJIUzI1NiJ9.${Buffer.from(JSON.stringify(claims)).toString('base64url')}.c2lnbmF0dXJl`;
  const anonymous = token({ iss: 'supabase', ref: 'abc', role: 'anon', exp: 2_000 });
  assert.equal(hasOnlyPublicTokens(`KEY=${anonymous}`, 1_000), true);
  assert.equal(hasOnlyPublicTokens(`KEY='${token({ iss: 'supabase-demo', role: 'service_role' })}';`, 1_000), true);
  assert.equal(hasOnlyPublicTokens(token({ sub: 'x', exp: 999 }), 1_000), true);
  assert.equal(hasOnlyPublicTokens(token({ sub: 'x', exp: 1_001 }), 1_000), false);
  assert.equal(hasOnlyPublicTokens(token({ role: 'service_role' }), 1_000), false);
  assert.equal(hasOnlyPublicTokens(`${anonymous} ${token({ role: 'service_role' })}`, 1_000), false);
  assert.equal(hasOnlyPublicTokens('none', 1_000), false);
});

test('follows redirects only on the same host', () => {
  assert.equal(
    toNextAddress('https://a.example/o/n', '/o/m.git/info/refs?service=git-upload-pack'),
    'https://a.example/o/m.git',
  );
  for (const location of [
    'https://b.example/o/n/info/refs',
    'http://a.example/o/n/info/refs',
    'https://a.example:444/o/n/info/refs',
    'https://u:p@a.example/o/n/info/refs',
    'https://a.example/login',
    'file:///etc/info/refs',
    '//b.example/info/refs',
  ]) {
    assert.throws(() => toNextAddress('https://a.example/o/n', location), /redirects/, location);
  }
});

test('parses a listing in any chunks, and stops at the first limit', () => {
  const listing = Buffer.from(
    `100644 blob ${'a'.repeat(40)}     400\ta b\n.txt\x00160000 commit ${'b'.repeat(40)}       -\tlib\x00120000 blob ${'c'.repeat(40)}       3\tlink\x00`,
  );
  for (let size = 1; size < 20; size += 1) {
    const reader = new ListingReader(sampleInput().limits);
    for (let offset = 0; offset < listing.length; offset += size) reader.read(listing.subarray(offset, offset + size));
    assert.deepEqual(
      [reader.counter.files, reader.counter.bytes, reader.gitlinks],
      [3, 403, [{ path: 'lib', commit: 'b'.repeat(40) }]],
    );
  }
  const reader = new ListingReader(sampleInput().limits);
  assert.throws(
    () => {
      reader.read(Buffer.from(`100644 blob ${'a'.repeat(40)}     501\tbig\0`));
    },
    (error: unknown) => error instanceof Rejected && error.findings[0].file === 'big',
  );
});

test('evaluates Python version ranges', () => {
  const holds = (range: string): boolean[] =>
    [
      [3, 11],
      [3, 13],
    ].map(([major = 0, minor = 0]) => isWithinRange([major, minor], range));
  const table: readonly (readonly [string, boolean, boolean])[] = [
    ['>=3.9', true, true],
    ['>=3.12', false, true],
    ['>=3.9,<3.13', true, false],
    ['<3.12', true, false],
    ['~=3.10', true, true],
    ['~=3.11.2', true, false],
    ['^3.10', true, true],
    ['^4', false, false],
    ['==3.11.*', true, false],
    ['3.11', true, false],
    ['!=3.11.*', false, true],
    ['!=3.11.4', true, true],
    ['>3.11', false, true],
    ['<=3.11', true, false],
    ['~3.11', true, false],
    ['>=3.13 || ==3.11.*', true, true],
    ['', true, true],
    ['*', true, true],
  ];
  for (const [range, older, newer] of table) assert.deepEqual(holds(range), [older, newer], range);
  assert.deepEqual(choosePython(createMemoryTree({ 'pyproject.toml': '[project]\nrequires-python = "<3"\n' })), {
    file: 'pyproject.toml',
    requestedVersion: '<3',
  });
});
