// Submodules, cloned over HTTP for real: fetched at their exact commits from allowed hosts, and missing ones judged.
import assert from 'node:assert/strict';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, test } from 'vitest';
import { cloneResult, type PipelineInput, reviewResult } from '../../../controller/pipeline/contract.ts';
import { readNotes, type Submodule } from '../../../controller/pipeline/handover.ts';
import { limits, makePod, type Pod } from '../../support/pipeline/lab.ts';
import { addProgramsToPath } from '../../support/pipeline/registry.ts';
import {
  createGitRunner,
  serveRepositories,
  type Repositories,
  type Repository,
} from '../../support/pipeline/repositories.ts';

let repositories: Repositories;
let library: Repository;
let hosts: Pick<PipelineInput, 'gitHosts'>;
beforeAll(async () => {
  await addProgramsToPath();
  repositories = await serveRepositories();
  const { host } = new URL(repositories.url);
  hosts = { gitHosts: { allowed: [host], insecure: [host] } };
  library = await repositories.add('owner/library', { files: { 'lib.py': 'x = 1\n' } });
});
afterAll(() => repositories.stop());

interface Declared {
  readonly path: string;
  readonly url: string;
  readonly commit: string;
}

/** A repository with submodules, which need not exist. */
async function withSubmodules(
  name: string,
  modules: readonly Declared[],
  files: Readonly<Record<string, string>> = {},
): Promise<Repository> {
  const text = modules.map(({ path, url }, index) => `[submodule "m${index}"]\n\tpath = ${path}\n\turl = ${url}\n`);
  return repositories.add(`owner/${name}`, {
    fixture: 'static',
    files: { '.gitmodules': text.join(''), ...files },
    change: (_folder, git) => {
      for (const { path, commit } of modules) git('update-index', '--add', '--cacheinfo', `160000,${commit},${path}`);
    },
  });
}

async function cloned<Result>(
  repository: Repository,
  use: (found: { pod: Pod; source: string; submodules: readonly Submodule[]; log: string }) => Promise<Result> | Result,
  input: Partial<PipelineInput> = {},
): Promise<Result> {
  const pod = await makePod(repository, { ...hosts, ...input });
  try {
    const ended = await pod.stage('clone');
    assert.equal(ended.code, 0, ended.log);
    cloneResult.parse(ended.message);
    const notes = join(pod.root, 'workspace', '.moorage');
    const { submodules } = await readNotes(notes, 'clone');
    assert.ok(!existsSync(join(notes, 'git')));
    return await use({ pod, source: join(pod.root, 'workspace', 'source'), submodules, log: ended.log });
  } finally {
    await pod.remove();
  }
}

test('fetches the exact commits, including nested submodules and relative addresses', async () => {
  const older = library.commit;
  createGitRunner(library.folder)('commit', '--quiet', '--allow-empty', '--message', 'Later');
  const middle = await withSubmodules('middle', [{ path: 'deep/lib', url: '../library.git', commit: older }]);
  const top = await withSubmodules('top', [
    { path: 'vendor/middle', url: `${repositories.url}owner/middle.git`, commit: middle.commit },
    { path: 'other', url: '../library', commit: older },
  ]);
  await cloned(top, ({ source, submodules, log }) => {
    assert.deepEqual(
      submodules.map(({ path, problem }) => [path, problem]),
      [
        ['other', undefined],
        ['vendor/middle', undefined],
        ['vendor/middle/deep/lib', undefined],
      ],
    );
    for (const path of ['other/lib.py', 'vendor/middle/deep/lib/lib.py'])
      assert.equal(readFileSync(join(source, path), 'utf8'), 'x = 1\n');
    assert.ok(!existsSync(join(source, 'other/.git')));
    assert.match(log, /submodule vendor\/middle: \d+ files, .* at [0-9a-f]{40}/);
  });
});

test('limits the depth and size of what is fetched', async () => {
  let { commit } = library;
  let path = 'library';
  for (const name of ['one', 'two', 'three', 'four']) {
    ({ commit } = await withSubmodules(name, [{ path: 'm', url: `../${path}`, commit }]));
    path = name;
  }
  const repository = { url: `${repositories.url}owner/four`, commit, folder: '' };
  await cloned(repository, ({ submodules }) => {
    assert.deepEqual(
      submodules.map((each) => [each.path, each.problem]),
      [
        ['m', undefined],
        ['m/m', undefined],
        ['m/m/m', undefined],
        ['m/m/m/m', 'submodules are fetched to a depth of 3'],
      ],
    );
  });
  const many = await withSubmodules(
    'many',
    Array.from({ length: 22 }, (_, index) => ({ path: `m${index + 10}`, url: '../library', commit: library.commit })),
  );
  await cloned(many, ({ submodules }) => {
    assert.equal(submodules.filter(({ problem }) => problem === undefined).length, 20);
    assert.equal(submodules.filter(({ problem }) => problem === 'at most 20 submodules are fetched').length, 2);
  });
  const large = await repositories.add('owner/large', {
    files: Object.fromEntries(Array.from({ length: 40 }, (_, index) => [`f${index}`, `${index}`])),
  });
  const heavy = await withSubmodules('heavy', [{ path: 'large', url: '../large', commit: large.commit }]);
  await cloned(
    heavy,
    ({ submodules, source }) => {
      assert.match(submodules[0]?.problem ?? '', /more than 20 files/);
      assert.ok(!existsSync(join(source, 'large', 'f1')));
    },
    { limits: { ...limits, files: 20 } },
  );
});

test('fetches only from allowed hosts, and follows no link out of the folder', async () => {
  const { commit } = library;
  const url = `${repositories.url}owner/library`;
  const hostile: readonly (readonly [string, RegExp])[] = [
    ['ext::sh -c "touch /tmp/moorage-was-here"', /is not one of a git server/],
    ['file:///etc', /is not one of a git server/],
    ['/etc', /is not one of a git server/],
    ['https://127.0.0.1:1/owner/library', /host 127\.0\.0\.1:1 is not allowed/],
    ['https://169.254.169.254/latest/meta-data', /host 169\.254\.169\.254 is not allowed/],
    ['../../../../etc/passwd', /repository path is not owner\/name|not allowed|is not fetched|could not be/],
    ['http://me:secret@host.example/owner/library', /not supported|credentials|not allowed/],
  ];
  const repository = await withSubmodules(
    'hostile',
    hostile.map(([address], index) => ({ path: `m${index}`, url: address, commit })),
  );
  await cloned(repository, ({ submodules }) => {
    assert.equal(submodules.length, hostile.length);
    for (const [index, [address, says]] of hostile.entries())
      assert.match(submodules.find(({ path }) => path === `m${index}`)?.problem ?? 'none', says, address);
    assert.ok(!existsSync('/tmp/moorage-was-here'));
  });
  const twice = await repositories.add('owner/twice', {
    fixture: 'static',
    files: {
      '.gitmodules': `[submodule "a"]\n\tpath = lib\n\turl = ${url}\n[submodule "b"]\n\tpath = lib\n\turl = ${url}2\n`,
      '.GITMODULES': `[submodule "c"]\n\tpath = upper\n\turl = ${url}\n`,
    },
    change: (_folder, git) => {
      for (const path of ['lib', 'upper']) git('update-index', '--add', '--cacheinfo', `160000,${commit},${path}`);
    },
  });
  await cloned(twice, ({ submodules }) => {
    assert.deepEqual(
      submodules.map(({ path, problem }) => [path, problem]),
      [
        ['lib', '.gitmodules gives several addresses for it'],
        ['upper', '.gitmodules gives no address for it'],
      ],
    );
  });
});

test('rejects a .gitmodules that is a link or contains an option, by name', async () => {
  const damaged = async (name: string, change: (git: (...args: string[]) => string) => string): Promise<string> => {
    const { url, folder } = await repositories.add(`owner/${name}`, { fixture: 'static' });
    const git = createGitRunner(folder);
    const commit = git('commit-tree', '-m', 'bad', change(git));
    git('update-ref', 'refs/heads/bad', commit);
    const pod = await makePod({ url, folder, commit }, hosts);
    try {
      const ended = await pod.stage('clone');
      assert.equal(ended.code, 42, ended.log);
      return JSON.stringify(ended.message);
    } finally {
      await pod.remove();
    }
  };
  const tree = (git: (...args: string[]) => string, mode: string): string => {
    const id = git('hash-object', '-w', '.gitmodules.draft');
    writeFileSync(join(git('rev-parse', '--show-toplevel'), 'tree'), rawTree(mode, '.gitmodules', id));
    return git('hash-object', '-t', 'tree', '-w', '--literally', 'tree');
  };
  const linked = await damaged('linked', (git) => {
    writeFileSync(join(git('rev-parse', '--show-toplevel'), '.gitmodules.draft'), 'index.html');
    return tree(git, '120000');
  });
  assert.match(linked, /git\/damaged.*gitmodulesSymlink/);
  const option = await damaged('option', (git) => {
    const text = '[submodule "a"]\n\tpath = lib\n\turl = --upload-pack=touch\n';
    writeFileSync(join(git('rev-parse', '--show-toplevel'), '.gitmodules.draft'), text);
    return tree(git, '100644');
  });
  assert.match(option, /git\/damaged.*gitmodulesUrl/);
});

/** A tree of one entry, as git stores it: it makes none that it would refuse. */
function rawTree(mode: string, name: string, id: string): Buffer {
  return Buffer.concat([Buffer.from(`${mode} ${name}\0`), Buffer.from(id, 'hex')]);
}

test('warns about a missing submodule, unless the build needs it', async () => {
  const modules = [{ path: 'vendor/gone', url: '../gone', commit: '1'.repeat(40) }];
  const idle = await withSubmodules('idle', modules);
  await cloned(idle, async ({ pod }) => {
    const ended = await pod.stage('review');
    assert.equal(ended.code, 0, ended.log);
    const found = reviewResult.parse(ended.message).findings.find(({ rule }) => rule === 'git/submodule');
    assert.deepEqual([found?.severity, found?.file], ['warning', 'vendor/gone']);
  });
  const needed = await withSubmodules('needed', modules, { Dockerfile: 'FROM a\nCOPY vendor/gone /x\n' });
  await cloned(needed, async ({ pod }) => {
    const ended = await pod.stage('review');
    assert.equal(ended.code, 42, ended.log);
    assert.match(JSON.stringify(ended.message), /git\/submodule.*is named in line 2 of Dockerfile/);
  });
});
