// Pages written by hand name what is there: every relative link leads to a file, and to a heading in it.
import assert from 'node:assert/strict';
import { existsSync, globSync, readFileSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { test } from 'vitest';

const root = join(import.meta.dirname, '..', '..', '..');
const pages = globSync(['*.md', 'docs/**/*.md'], { cwd: root, exclude: ['docs/measured/**'] }).sort();

/** As GitHub makes it of a heading. */
function anchor(heading: string): string {
  return heading
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N}\s_-]/gu, '')
    .replaceAll(' ', '-');
}

function anchorsOf(file: string): Set<string> {
  return new Set(
    [...readFileSync(file, 'utf8').matchAll(/^#+ (.*)$/gm)].map(([, heading = '']) => anchor(heading.trim())),
  );
}

function wrongLinks(page: string): string[] {
  const text = readFileSync(join(root, page), 'utf8').replaceAll(/^```[\s\S]*?^```/gm, '');
  return [...text.matchAll(/\]\(([^)\s]+)\)/g)]
    .map(([, target = '']) => target)
    .filter((target) => !/^[a-z]+:/.test(target))
    .filter((target) => {
      const [path = '', heading] = target.split('#');
      const file = path === '' ? join(root, page) : join(root, dirname(page), path);
      if (!existsSync(file)) return true;
      return heading !== undefined && statSync(file).isFile() && !anchorsOf(file).has(heading);
    });
}

for (const page of pages) {
  test(`every link of ${page} leads somewhere`, () => {
    assert.deepEqual(wrongLinks(page), []);
  });
}

test('every npm script that the pages name is there', () => {
  const { scripts } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as {
    scripts: Record<string, string>;
  };
  const named = pages.flatMap((page) =>
    [...readFileSync(join(root, page), 'utf8').matchAll(/npm run ([a-z:-]+[a-z])/g)].map(([, name = '']) => name),
  );
  assert.deepEqual([...new Set(named)].filter((name) => scripts[name] === undefined).sort(), []);
});

const sourceFolders = ['activator', 'api', 'cli', 'controller', 'crds', 'lib', 'localnode', 'test'];

/** Paths from the root in the code, as one string or as arguments of `join`, like join(root, 'cli', 'main.ts'). */
function findNamedFiles(source: string): string[] {
  const lists = [...source.matchAll(/\bjoin\(\s*(?:\w+\.)*root,\s*((?:'[^'\n]+'(?:,\s*)?)+)\)/g)].map(
    ([, list]) => list,
  );
  const joined = lists.map((list = '') => [...list.matchAll(/'([^']+)'/g)].map(([, part]) => part).join('/'));
  const whole = [...source.matchAll(/(?<=')\w+\/[\w./-]+(?=')/g)].map(([path]) => path);
  return [...joined, ...whole].filter(
    (path) => sourceFolders.includes(path.split('/')[0] ?? '') && /\.(?:ts|sh|json|css)$/.test(path),
  );
}

test('every file of this project that the code starts, copies or reads by its path is there', () => {
  const sources = globSync(`{${sourceFolders.join(',')}}/**/*.ts`, { cwd: root, exclude: ['test/**'] });
  const named = sources.flatMap((file) => findNamedFiles(readFileSync(join(root, file), 'utf8')));
  assert.ok(named.includes('localnode/git-server/server.ts'), named.join(', '));
  assert.deepEqual([...new Set(named)].filter((path) => !existsSync(join(root, path))).sort(), []);
});
