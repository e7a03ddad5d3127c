// Hostile and faulty repositories, cloned over HTTP and reviewed for real: what is refused, where, and that nothing
// leaks or runs.
import assert from 'node:assert/strict';
import { existsSync, lstatSync, readFileSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { randomBytes } from 'node:crypto';
import { createServer, type Socket } from 'node:net';
import { afterAll, beforeAll, test } from 'vitest';
import { cloneResult, type PipelineInput, reviewResult } from '../../../controller/pipeline/contract.ts';
import type { Finding } from '../../../crds/hosted-app.ts';
import { sealContact } from '../../../lib/ownership-file.ts';
import { limits, makePod, type Pod, type StageEnd } from '../../support/pipeline/lab.ts';
import { addProgramsToPath } from '../../support/pipeline/registry.ts';
import {
  createGitRunner,
  serveRepositories,
  type Repositories,
  type Repository,
  type RepositoryContent,
} from '../../support/pipeline/repositories.ts';

let repositories: Repositories;
beforeAll(async () => {
  await addProgramsToPath();
  repositories = await serveRepositories();
});
afterAll(() => repositories.stop());

async function inPod<Result>(
  repository: Repository,
  use: (pod: Pod) => Promise<Result>,
  input: Partial<PipelineInput> = {},
): Promise<Result> {
  const pod = await makePod(repository, input);
  try {
    return await use(pod);
  } finally {
    await pod.remove();
  }
}

/** Findings of a rejected stage as `rule file:line`. */
function rejectedBy(ended: StageEnd): string[] {
  assert.equal(ended.code, 42, ended.log);
  assert.ok('rejected' in ended.message);
  for (const each of ended.message.findings) assert.ok(each.fix.length > 20, JSON.stringify(each));
  return ended.message.findings
    .filter((each) => each.severity === 'error')
    .map(
      (each) =>
        `${each.rule}${each.file === undefined ? '' : ` ${each.file}`}${each.line === undefined ? '' : `:${each.line}`}`,
    );
}

/** A key of the right form that nobody has: made at run time, so that this repository carries none. */
function fakeKey(): string {
  const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567';
  return `AKIA${[...randomBytes(16)].map((byte) => alphabet[byte % 32]).join('')}`;
}

test("clones a plain repository without its history, with all files at the commit's time", async () => {
  const repository = await repositories.add('plain', {
    fixture: 'static',
    files: { 'a/b.sh': '#!/bin/sh\n' },
    change: (_folder, git) => {
      git('update-index', '--chmod=+x', 'a/b.sh');
    },
  });
  await inPod(repository, async (pod) => {
    const ended = await pod.stage('clone');
    assert.equal(ended.code, 0, ended.log);
    assert.deepEqual(cloneResult.parse(ended.message), {
      commit: repository.commit,
      files: 3,
      bytes: ['LICENSE', 'index.html', 'a/b.sh'].reduce(
        (sum, file) => sum + statSync(join(repository.folder, file)).size,
        0,
      ),
    });
    const source = join(pod.root, 'workspace', 'source');
    assert.ok(!existsSync(join(source, '.git')));
    assert.ok(!existsSync(join(pod.root, 'workspace', '.moorage', 'git')));
    for (const path of ['', 'a', 'a/b.sh', 'index.html'])
      assert.equal(statSync(join(source, path)).mtime.toISOString(), '2026-01-02T03:04:05.000Z', path);
    assert.equal(statSync(join(source, 'a/b.sh')).mode & 0o777, 0o755);
  });
});

test('finds an older commit on a server that serves only its references', async () => {
  const first = await repositories.add('old-commit', { fixture: 'static' });
  const git = createGitRunner(first.folder);
  git('commit', '--quiet', '--allow-empty', '--message', 'Later');
  await inPod({ ...first, url: `${repositories.url}old/old-commit` }, async (pod) => {
    const ended = await pod.stage('clone');
    assert.equal(ended.code, 0, ended.log);
    assert.equal(cloneResult.parse(ended.message).commit, first.commit);
  });
});

test('follows a renamed repository only on its own host', async () => {
  const repository = await repositories.add('renamed', { fixture: 'static' });
  const near = await inPod({ ...repository, url: `${repositories.url}moved/renamed` }, (pod) => pod.stage('clone'));
  assert.equal(near.code, 0, near.log);
  const far = await inPod({ ...repository, url: `${repositories.url}elsewhere/renamed` }, (pod) => pod.stage('clone'));
  assert.equal(far.code, 1);
  assert.ok('fault' in far.message);
  assert.match(far.message.fault, /redirects to another host \(localhost\.invalid\)/);
});

const faults: readonly {
  name: string;
  change: (repository: Repository) => Partial<Repository>;
  input?: Partial<PipelineInput>;
  says: RegExp;
}[] = [
  {
    name: 'a commit that is gone',
    change: () => ({ commit: '1'.repeat(40) }),
    says: /could not be fetched|no longer in the repository/,
  },
  {
    name: 'a server that does not answer',
    change: () => ({ url: 'http://127.0.0.1:1/a/b' }),
    says: /could not be fetched/,
  },
  {
    name: 'a repository that is not there',
    change: ({ url }) => ({ url: `${url}-gone` }),
    says: /could not be fetched/,
  },
  {
    name: 'plain http where it is not allowed',
    change: () => ({}),
    input: { insecure: false },
    says: /could not be fetched.*(not allowed|transport)/,
  },
];

for (const [index, { name, change, input = {}, says }] of faults.entries()) {
  test(`reports a fault, to be retried: ${name}`, async () => {
    const repository = await repositories.add(`fault-${index}`, { fixture: 'static' });
    const ended = await inPod({ ...repository, ...change(repository) }, (pod) => pod.stage('clone'), input);
    assert.equal(ended.code, 1, ended.log);
    assert.ok('fault' in ended.message);
    assert.match(ended.message.fault, says);
  });
}

const large: readonly { name: string; files: Readonly<Record<string, string>>; expect: string }[] = [
  {
    name: 'a huge file that compresses to nothing',
    files: { 'zeros.bin': '0'.repeat(limits.fileBytes + 1) },
    expect: 'limits/file-bytes zeros.bin',
  },
  {
    name: 'too many files',
    files: Object.fromEntries(Array.from({ length: limits.files + 1 }, (_, index) => [`many/${index}`, `${index}`])),
    expect: 'limits/files',
  },
];

for (const [index, { name, files, expect }] of large.entries()) {
  test(`rejects before checkout: ${name}`, async () => {
    const repository = await repositories.add(`large-${index}`, { fixture: 'static', files });
    await inPod(repository, async (pod) => {
      assert.deepEqual(rejectedBy(await pod.stage('clone')), [expect]);
      assert.ok(!existsSync(join(pod.root, 'workspace', 'source', 'index.html')));
    });
  });
}

test('stops a huge pack while it downloads', async () => {
  const repository = await repositories.add('huge', {
    fixture: 'static',
    change: (folder, git) => {
      for (const name of ['a', 'b', 'c']) writeFileSync(join(folder, name), randomBytes(9_000_000));
      git('add', '.');
    },
  });
  const ended = await inPod(repository, (pod) => pod.stage('clone'), {
    limits: { ...limits, repositoryBytes: 10_000_000 },
  });
  assert.deepEqual(rejectedBy(ended), ['limits/repository-bytes']);
  assert.ok('rejected' in ended.message);
  assert.match(ended.message.findings[0]?.message ?? '', /the fetch was stopped/);
});

test('names an object that git itself rejects', async () => {
  const repository = await repositories.add('damaged', {
    fixture: 'static',
    change: (folder, git) => {
      // A tree with an entry ".." can only be made by hand.
      const blob = git('hash-object', '-w', join(folder, 'index.html'));
      writeFileSync(join(folder, 'tree.raw'), Buffer.concat([Buffer.from('100644 ..\0'), Buffer.from(blob, 'hex')]));
      const tree = git('hash-object', '-t', 'tree', '-w', '--literally', 'tree.raw');
      git('update-ref', 'refs/heads/bad', git('commit-tree', '-m', 'bad', tree));
    },
  });
  const commit = createGitRunner(repository.folder)('rev-parse', 'refs/heads/bad');
  const ended = await inPod({ ...repository, commit }, (pod) => pod.stage('clone'));
  assert.deepEqual(rejectedBy(ended), ['git/damaged']);
});

interface Refusal {
  readonly name: string;
  readonly content: (key: string) => RepositoryContent;
  readonly expect: readonly string[];
}

const awsLine = (key: string): string => `import os\nregion = "eu-west-1"\nkey = "${key}"\n`;
const refused: readonly Refusal[] = [
  {
    name: 'a planted AWS key',
    content: (key) => ({ fixture: 'flask', files: { 'config/settings.py': awsLine(key) } }),
    expect: ['secrets/aws-access-token config/settings.py:3'],
  },
  { name: 'no licence', content: () => ({ fixture: 'no-license' }), expect: ['license/missing'] },
  {
    name: 'links that leave the repository',
    content: () => ({
      fixture: 'static',
      change: (folder, git) => {
        symlinkSync('/etc', join(folder, 'etc'));
        symlinkSync('../../../../root', join(folder, 'home'));
        git('add', '--all');
      },
    }),
    expect: ['symlinks/absolute etc', 'symlinks/escape home'],
  },
  {
    name: 'a submodule, declared or not',
    content: () => ({
      fixture: 'static',
      files: { '.gitmodules': '[submodule "lib"]\n\tpath = lib\n\turl = ext::sh -c "touch /tmp/moorage-was-here"\n' },
      change: (_folder, git) => {
        git('update-index', '--add', '--cacheinfo', `160000,${'2'.repeat(40)},lib`);
      },
    }),
    expect: ['git/unsafe-address .gitmodules:3'],
  },
  {
    name: 'several at once',
    content: (key) => ({
      fixture: 'no-license',
      files: { 'a.py': awsLine(key), Dockerfile: '# syntax=evil/frontend\nFROM a\n' },
    }),
    expect: ['secrets/aws-access-token a.py:3', 'license/missing', 'dockerfile/syntax Dockerfile:1'],
  },
  {
    name: 'nothing to build',
    content: () => ({
      files: {
        LICENSE: readFileSync(join(import.meta.dirname, '../../fixtures/static/LICENSE'), 'utf8'),
        'main.rs': '',
      },
    }),
    expect: ['plan/unknown'],
  },
];

for (const [index, { name, content, expect }] of refused.entries()) {
  test(`the review rejects: ${name}`, async () => {
    const key = fakeKey();
    const repository = await repositories.add(`refused-${index}`, content(key));
    const ended = await inPod(repository, (pod) => pod.upTo('review'));
    assert.deepEqual(rejectedBy(ended), expect);
    assert.ok(!ended.log.includes(key) && !JSON.stringify(ended.message).includes(key), 'the secret itself is shown');
    assert.ok(!existsSync('/tmp/moorage-was-here'));
  });
}

/** What the review says of a repository that passes, as `severity rule file:line`. */
async function warnedBy(repository: Repository, input: Partial<PipelineInput> = {}): Promise<Finding[]> {
  return inPod(
    repository,
    async (pod) => {
      const ended = await pod.upTo('review');
      assert.equal(ended.code, 0, ended.log);
      return reviewResult.parse(ended.message).findings;
    },
    input,
  );
}

const allowedBy: readonly { name: string; files: (key: string) => Readonly<Record<string, string>>; says: RegExp }[] = [
  {
    name: '.gitleaksignore',
    files: (key) => ({
      'app/settings.py': awsLine(key),
      '.gitleaksignore': `# known\n${'a'.repeat(40)}:app/settings.py:aws-access-token:3\n`,
    }),
    says: /^1 finding was allowed by the repository: 1 by \.gitleaksignore\.$/,
  },
  {
    name: 'a comment',
    files: (key) => ({ 'app/settings.py': awsLine(key).replace(/"\n$/, '"  # gitleaks:allow\n') }),
    says: /1 by gitleaks:allow comments/,
  },
  {
    name: 'the allowlists of .gitleaks.toml, with paths from the top',
    files: (key) => ({
      'app/settings.py': awsLine(key),
      'app/more.py': awsLine(key),
      '.gitleaks.toml':
        '[extend]\npath = "/etc/passwd"\n[[rules]]\nid = "mine"\nregex = "(((("\n[[allowlists]]\ntargetRules = ["aws-access-token", "mine"]\npaths = [\'\'\'^app/\'\'\']\n',
    }),
    says: /^2 findings were allowed by the repository: 2 by \.gitleaks\.toml\.$/,
  },
];

for (const [index, { name, files, says }] of allowedBy.entries()) {
  test(`reports what the repository allows: ${name}`, async () => {
    const key = fakeKey();
    const repository = await repositories.add(`allowed-${index}`, { fixture: 'flask', files: files(key) });
    const findings = await warnedBy(repository);
    assert.match(findings.find(({ rule }) => rule === 'secrets/allowed')?.message ?? '', says);
    assert.ok(findings.every(({ severity }) => severity === 'warning'));
  });
}

test('ignores allowlists that gitleaks rejects, and reports them', async () => {
  const repository = await repositories.add('broken-allowlist', {
    fixture: 'flask',
    files: { 'settings.py': awsLine(fakeKey()), '.gitleaks.toml': '[allowlist]\nregexes = ["(((("]\n' },
  });
  const ended = await inPod(repository, (pod) => pod.upTo('review'));
  assert.deepEqual(rejectedBy(ended), ['secrets/aws-access-token settings.py:3']);
  assert.match(JSON.stringify(ended.message), /secrets\/allowlists/);
});

test('warns about a token where samples are usual, and about a placeholder', async () => {
  const key = fakeKey();
  const repository = await repositories.add('samples', {
    fixture: 'flask',
    files: Object.fromEntries(
      ['docs/use.py', 'tests/a.py', 'docker-compose.dev.yml', 'config.py', '.env.example'].map((file) => [
        file,
        awsLine(key),
      ]),
    ),
  });
  const findings = await warnedBy(repository);
  assert.deepEqual(
    new Set(findings.filter(({ rule }) => rule === 'secrets/aws-access-token').map(({ file }) => file)),
    new Set(['.env.example', 'config.py', 'docker-compose.dev.yml', 'docs/use.py', 'tests/a.py']),
  );
});

test('shows the first of many warnings of a kind', async () => {
  const files = Object.fromEntries(Array.from({ length: 9 }, (_, index) => [`docs/${index}.md`, awsLine(fakeKey())]));
  const repository = await repositories.add('many-warnings', { fixture: 'flask', files });
  const findings = await warnedBy(repository);
  assert.equal(findings.filter(({ rule }) => rule === 'secrets/aws-access-token').length, 5);
  assert.match(findings.find(({ rule }) => rule === 'secrets/more')?.message ?? '', /^4 more warnings/);
});

test('turns a waived finding into a warning with the reason, and reports a waiver that matches nothing', async () => {
  const repository = await repositories.add('waived', {
    fixture: 'no-license',
    files: { 'settings.py': awsLine(fakeKey()) },
  });
  const findings = await warnedBy(repository, {
    waivers: [
      { rule: 'license/missing', reason: 'The author allowed us by mail.' },
      { rule: 'secrets/aws-access-token', file: 'settings.py', reason: 'Revoked.' },
      { rule: 'secrets/jwt', file: 'other.py', reason: 'Not there.' },
    ],
  });
  const messages = findings.map(({ rule, severity, message }) => `${severity} ${rule} ${message.slice(0, 40)}`);
  assert.ok(messages.includes('warning license/missing Waived: The author allowed us by mail. ('), messages.join('\n'));
  assert.ok(messages.some((each) => each.startsWith('warning secrets/aws-access-token Waived: Revoked. (')));
  assert.ok(messages.some((each) => each.startsWith('warning waivers/unused')));
});

test('runs no filters, hooks or attributes of a repository', async () => {
  const witness = join(repositories.folder, 'ran');
  const repository = await repositories.add('filters', {
    fixture: 'static',
    files: {
      '.gitattributes': '* filter=evil diff=evil\n*.html filter=lfs\n',
      '.gitconfig': `[filter "evil"]\n\tsmudge = touch ${witness}\n`,
      'post-checkout': `#!/bin/sh\ntouch ${witness}\n`,
    },
  });
  await inPod(repository, async (pod) => {
    const ended = await pod.upTo('review');
    assert.equal(ended.code, 0, ended.log);
    assert.equal(reviewResult.parse(ended.message).plan.strategy, 'static');
    assert.ok(!existsSync(witness));
    assert.match(readFileSync(join(pod.root, 'workspace', 'source', 'index.html'), 'utf8'), /hello from static files/);
  });
});

test('plans a folder of a repository separately', async () => {
  const repository = await repositories.add('folder', {
    files: {
      LICENSE: readFileSync(join(import.meta.dirname, '../../fixtures/static/LICENSE'), 'utf8'),
      'web/site/index.html': '<p>hi',
    },
  });
  const ended = await inPod(repository, (pod) => pod.upTo('review'), { path: './web/site/' });
  assert.equal(ended.code, 0, ended.log);
  const missing = await inPod(repository, (pod) => pod.upTo('review'), { path: 'web/sight' });
  assert.deepEqual(rejectedBy(missing), ['source/path']);
});

test('keeps links as links, and survives a loop of them', async () => {
  const repository = await repositories.add('loop', {
    fixture: 'static',
    change: (folder, git) => {
      symlinkSync('loop', join(folder, 'loop'));
      symlinkSync('.', join(folder, 'self'));
      git('add', '--all');
    },
  });
  await inPod(repository, async (pod) => {
    const ended = await pod.upTo('review');
    assert.equal(ended.code, 0, ended.log);
    assert.ok(lstatSync(join(pod.root, 'workspace', 'source', 'self')).isSymbolicLink());
  });
});

test('reports a fault for invalid input and a stop signal', async () => {
  const repository = await repositories.add('stopped', { fixture: 'static' });
  await inPod(repository, async (pod) => {
    const log = join(pod.root, 'termination-log');
    const main = join(import.meta.dirname, '../../../controller/pipeline/main.ts');
    const wrong = spawn(process.execPath, [main, 'clone'], {
      env: { PATH: process.env['PATH'] ?? '', MOORAGE_PIPELINE: '{"app":1}', MOORAGE_TERMINATION_LOG: log },
      stdio: 'ignore',
    });
    assert.deepEqual(await once(wrong, 'close'), [1, null]);
    assert.match(readFileSync(log, 'utf8'), /"fault":".*MOORAGE_PIPELINE/);
    // A server that never answers holds the clone until it is stopped.
    const silent = createServer().listen(0, '127.0.0.1');
    await once(silent, 'listening');
    const address = silent.address();
    assert.ok(address !== null && typeof address === 'object');
    const input = {
      app: 'a',
      repo: `http://127.0.0.1:${address.port}/a/b`,
      insecure: true,
      commit: repository.commit,
      path: '.',
      build: { strategy: 'auto', dockerfile: 'Dockerfile', args: [], env: [] },
      image: 'r.invalid/apps/a',
      push: 'r.invalid/apps/a',
      limits,
    };
    const held = spawn(process.execPath, [main, 'clone'], {
      env: {
        PATH: process.env['PATH'] ?? '',
        MOORAGE_PIPELINE: JSON.stringify(input),
        MOORAGE_WORKSPACE: join(pod.root, 'workspace'),
        MOORAGE_TERMINATION_LOG: log,
      },
      stdio: 'ignore',
    });
    const [socket] = (await once(silent, 'connection')) as [Socket];
    held.kill('SIGTERM');
    assert.deepEqual(await once(held, 'close'), [143, null]);
    assert.match(readFileSync(log, 'utf8'), /stopped before it completed/);
    socket.destroy();
    silent.close();
  });
});

test('reads folder, port and start command from moorage.yaml, and reports them to the operator', async () => {
  const repository = await repositories.add('app-manifest', { fixture: 'app-manifest' });
  await inPod(repository, async (pod) => {
    const ended = await pod.upTo('review');
    assert.equal(ended.code, 0, ended.log);
    const { plan, settings } = reviewResult.parse(ended.message);
    assert.deepEqual(
      [plan.strategy, plan.port, settings?.run?.port, settings?.source?.path],
      ['python', 9123, 9123, 'server'],
    );
  });
  const wrong = await repositories.add('settings-wrong', {
    fixture: 'static',
    files: { 'moorage.yaml': 'run:\n  port: 80\n  secrets: []\n' },
  });
  await inPod(wrong, async (pod) => {
    assert.deepEqual(rejectedBy(await pod.upTo('review')), ['settings/invalid moorage.yaml:3']);
  });
});

test('reports ownership tokens in the clone, and does not treat them as secrets in the review', async () => {
  const token = sealContact('me@example.org', 'https://git.test/octo/owned', 's'.repeat(32));
  const repository = await repositories.add('owned', {
    fixture: 'static',
    files: { '.moorage-owner': `# ours\n${token}\n` },
  });
  await inPod(repository, async (pod) => {
    const ended = await pod.stage('clone');
    assert.deepEqual(cloneResult.parse(ended.message).ownership, [token]);
    const reviewed = await pod.stage('review');
    assert.equal(reviewed.code, 0, reviewed.log);
  });
});
