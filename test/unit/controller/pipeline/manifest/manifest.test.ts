// The manifest, moorage.yaml: what is taken from it, and how each wrong one is refused with field, line and fix.
import assert from 'node:assert/strict';
import fc from 'fast-check';
import { test } from 'vitest';
import { readManifest, mergeManifest } from '../../../../../controller/pipeline/app-manifest.ts';
import { formatTermination } from '../../../../../controller/pipeline/message.ts';
import { reviewResult } from '../../../../../controller/pipeline/contract.ts';
import { createMemoryTree } from '../../../../../controller/pipeline/tree.ts';
import { sampleInput } from '../../../../support/pipeline/sample.ts';

const read = (text: string): ReturnType<typeof readManifest> =>
  readManifest(createMemoryTree({ 'moorage.yaml': text }));

test('reads the settings that an author may set', () => {
  const { settings, findings } = read(
    'source: {path: web}\nbuild:\n  strategy: node\n  resources: {memory: 8Gi}\nrun:\n  port: 3000\n  command: [node, a.js]\n  env:\n    - {name: A, value: "1"}\n  volumes: [{name: data, path: /data}]\nagents: {enabled: true, mcp: /tools}\nlisting: {title: Chat}\nauthor: {contact: me@example.org}\n',
  );
  assert.deepEqual(findings, []);
  assert.deepEqual(settings, {
    source: { path: 'web' },
    build: { strategy: 'node', resources: { memory: '8Gi' } },
    run: {
      port: 3000,
      command: ['node', 'a.js'],
      env: [{ name: 'A', value: '1' }],
      volumes: [{ name: 'data', path: '/data', size: '1Gi' }],
    },
    agents: { enabled: true, mcp: '/tools' },
    listing: { title: 'Chat' },
    author: { contact: 'me@example.org' },
  });
});

test('sets nothing without a file, or with an empty one', () => {
  assert.deepEqual(readManifest(createMemoryTree({ a: '' })), { findings: [] });
  for (const empty of ['', '# nothing yet\n', '\ufeff{}'])
    assert.deepEqual(read(empty), { settings: {}, findings: [] });
});

const wrong: readonly (readonly [name: string, text: string, line: number | undefined, says: RegExp])[] = [
  ['a field that there is not', 'run:\n  prot: 80\n', 2, /Unknown setting run\.prot.*port, command/],
  [
    'a section that there is not',
    'web: {}\n',
    1,
    /Unknown setting web.*source, build, run, components, tasks, services, agents, mcp, metering, previews, listing, author/,
  ],
  ['a number out of range', 'run:\n  port: 99999\n', 2, /run\.port.*65535/],
  [
    'a number where text is wanted',
    'run:\n  env:\n    - name: A\n      value: 1\n',
    4,
    /run\.env\[0\]\.value must be text.*quotes/,
  ],
  [
    'more memory than an author may have',
    'run:\n  port: 80\n  resources:\n    memory: 64Gi\n',
    4,
    /memory must be a quantity from 16Mi to 2Gi.*run\.resources\.memory in moorage\.yaml/,
  ],
  ['a longer build than an author may have', 'build:\n  timeout: 2h\n', 2, /timeout can be at most 1h/],
  ['volumes beyond the limit', 'run:\n  volumes: [{name: a, path: /a, size: 1Ti}]\n', 2, /at most 5Gi/],
  ['a path that leaves', 'source:\n  path: ../x\n', 2, /source\.path.*must not contain/],
  [
    'the share of the author',
    'author:\n  share: "1"\n',
    2,
    /author\.share cannot be set.*the operator of this installation/,
  ],
  ['a contact that is none', 'author:\n  contact: me\n', 2, /author\.contact: must be an e-mail address or a URL/],
  ['replicas', 'run:\n  replicas: 20\n', 2, /run\.replicas cannot be set/],
  ['secrets', 'run:\n  secrets: []\n', 2, /run\.secrets cannot be set.*Never commit a secret/],
  ['another repository', 'source:\n  repo: https://git.example/a/b\n', 2, /source\.repo cannot be set/],
  ['models', 'models: {enabled: true}\n', 1, /models cannot be set/],
  ['a list at the top', '- a\n', 1, /the file must be a section/],
  ['text at the top', 'hello', 1, /the file must be a section/],
  ['a key twice', 'run:\n  port: 1\n  port: 2\n', 3, /YAML.*unique/],
  ['broken YAML', 'run:\n  env: [\n', 3, /YAML/],
  ['two documents', 'run: {}\n---\nrun: {}\n', 2, /YAML/],
  ['a tag that makes objects', 'run: !!js/function "x"\n', 1, /YAML/],
  ['an anchor', 'run: &a {}\nbuild: *a\n', 1, /aliases/],
  ['__proto__', 'run:\n  __proto__: {port: 1}\n', 2, /Unknown setting run\.__proto__/],
  ['control characters in the message', 'run:\n  "a\\e[31m\\u202eb": 1\n', 2, /Unknown setting/],
  ['a file too large', `# ${'x'.repeat(17_000)}\n`, undefined, /16 KiB/],
  ['nesting without an end', `run: ${'['.repeat(8_000)}`, undefined, /YAML|nested/],
  ['deep nesting', `run: ${'['.repeat(100)}${']'.repeat(100)}`, 1, /nested too deep/],
  [
    'a component with the name of a service',
    'components:\n  - {name: web}\n  - {name: db, kind: worker}\nservices:\n  - {name: db, type: postgres}\n',
    undefined,
    /a component and a service are both named db/,
  ],
];

for (const [name, text, line, says] of wrong) {
  test(`rejects ${name}`, () => {
    const { settings, findings } = read(text);
    const [first] = findings;
    assert.ok(first !== undefined && settings === undefined);
    assert.deepEqual([first.rule, first.severity, first.file], ['settings/invalid', 'error', 'moorage.yaml']);
    assert.match(`${first.message} ${first.fix}`, says);
    // oxlint-disable-next-line no-control-regex
    assert.doesNotMatch(first.message, /[\u0000-\u001f\u202e]/);
    if (line !== undefined) assert.equal(first.line, line);
  });
}

test('rejects an alias bomb without using resources', () => {
  const bomb = [
    'a: &a [x,x,x,x,x,x,x,x,x]',
    ...['b', 'c', 'd', 'e', 'f', 'g', 'h', 'i'].map(
      (name, index) =>
        `${name}: &${name} [${Array.from({ length: 9 }, () => `*${'abcdefghi'.charAt(index)}`).join(',')}]`,
    ),
  ].join('\n');
  assert.match(read(bomb).findings[0]?.message ?? '', /aliases/);
});

test('rejects a link at its path, and ignores other file names', () => {
  assert.match(
    readManifest(createMemoryTree({ 'moorage.yaml': { linkTo: '/etc/passwd' } })).findings[0]?.message ?? '',
    /not a regular file/,
  );
  const [misnamed] = readManifest(createMemoryTree({ 'moorage.yml': 'run: {}' })).findings;
  assert.deepEqual([misnamed?.severity, misnamed?.file], ['warning', 'moorage.yml']);
});

test('property: any content results in settings or in a finding', () => {
  fc.assert(
    fc.property(
      fc.oneof(
        fc.string({ unit: 'grapheme', maxLength: 300 }),
        fc.json(),
        fc.stringMatching(/^[-:{}[\]&*!|>'"%@` \na-z]{0,80}$/),
      ),
      (text) => {
        const { settings, findings } = read(text);
        assert.equal(
          settings === undefined,
          findings.some(({ severity }) => severity === 'error'),
        );
      },
    ),
  );
});

test('uses the file where the HostedApp sets nothing, and the HostedApp where it does', () => {
  const tree = createMemoryTree({
    'moorage.yaml':
      'source: {path: ./web/}\nbuild: {strategy: node, env: [{name: A, value: file}, {name: B, value: file}]}\nrun: {port: 3000, command: [a]}\n',
  });
  const { input } = mergeManifest(sampleInput(), tree);
  assert.deepEqual([input.path, input.build.strategy, input.port, input.hasCommand], ['web', 'node', 3000, true]);
  const given = mergeManifest(
    {
      ...sampleInput({ path: 'other', port: 80, strategy: 'python' }),
      build: { strategy: 'python', dockerfile: 'Dockerfile', args: [], env: [{ name: 'A', value: 'own' }] },
    },
    tree,
  ).input;
  assert.deepEqual([given.path, given.build.strategy, given.port], ['other', 'python', 80]);
  assert.deepEqual(given.build.env, [
    { name: 'A', value: 'own' },
    { name: 'B', value: 'file' },
  ]);
});

test('prefers a default set explicitly in the HostedApp to the file', () => {
  const tree = createMemoryTree({
    'moorage.yaml':
      'source: {path: web}\nbuild: {strategy: node}\nrun: {command: [a]}\nservices: [{name: db, type: postgres}]\n',
  });
  const pinned = ['source.path', 'build.strategy', 'run.command', 'services'];
  const offered = { types: [], count: 0 };
  const { input, findings } = mergeManifest({ ...sampleInput(), pinned, offered }, tree);
  assert.deepEqual([input.path, input.build.strategy, input.hasCommand, findings], ['.', 'auto', false, []]);
  assert.equal(mergeManifest({ ...sampleInput(), offered }, tree).findings[0]?.rule, 'services/unavailable');
});

test('fits the largest settings into a termination message together with findings', () => {
  const { settings } = read(`run:\n  env: [{name: A, value: "${'x'.repeat(1_900)}"}]\n`);
  assert.ok(settings !== undefined);
  const finding = { rule: 'r/r', severity: 'warning' as const, message: 'm'.repeat(900), fix: 'n'.repeat(500) };
  const text = formatTermination({
    findings: Array.from({ length: 20 }, () => finding),
    plan: { strategy: 'node', reason: 'r'.repeat(390), certainty: 'guessed', otherwise: 'o'.repeat(290) },
    settings,
  });
  assert.ok(Buffer.byteLength(text) <= 4096);
  assert.deepEqual(reviewResult.parse(JSON.parse(text)).settings, settings);
});
