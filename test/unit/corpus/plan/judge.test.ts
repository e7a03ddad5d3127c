// The rule by which plans are judged.
import assert from 'node:assert/strict';
import { test } from 'vitest';
import type { Entry, Expectation } from '../../../corpus/corpus.ts';
import { contains, judge } from '../../../corpus/plan/judge.ts';
import { refusal, type Planned } from '../../../corpus/plan/planned.ts';

function buildEntry(expected: Expectation, more: Partial<Entry> = {}): Entry {
  return { repo: 'a/b', commit: '0'.repeat(40), stack: 'any', year: 2026, hasDockerfile: false, expected, ...more };
}

function plannedOf(more: Partial<Planned>): Planned {
  return {
    planner: 'p',
    refused: false,
    why: 'because',
    strategy: 'python',
    folder: '.',
    start: '',
    build: '',
    ...more,
  };
}

const streamlit: Expectation = { strategy: 'python', start: ['streamlit run*app.py'] };
const memos: Expectation = { strategy: 'go', start: [], must: ['cmd/memos', 'vite build'] };
const below: Expectation = { strategy: 'python', start: ['main.py'], folder: 'app' };
const named: Expectation = { strategy: 'python', start: ['app/app.py', 'app.app:'] };
const site: Expectation = { strategy: 'static', serves: 'excalidraw-app/build' };
const both: Expectation = { strategy: 'parts', parts: ['vote', 'result'] };
const none: Expectation = { refuse: 'a library' };

const cases: readonly (readonly [string, Expectation, Partial<Planned>, string])[] = [
  ['the expected file', streamlit, { start: 'exec streamlit run --server.port 1 app.py' }, 'right'],
  ['another file', streamlit, { start: 'streamlit run pages/other.py' }, 'wrong'],
  ['the same words on two lines', streamlit, { start: 'streamlit run other.py\npython app.py' }, 'wrong'],
  ['half an app', memos, { strategy: 'static', folder: 'web', serves: 'dist', build: 'vite build' }, 'wrong'],
  ['the program without its page', memos, { strategy: 'go', build: 'go build ./cmd/memos' }, 'wrong'],
  ['program and page', memos, { strategy: 'go', build: 'vite build\ngo build -o x ./cmd/memos' }, 'right'],
  ['the folder', below, { folder: 'app', start: 'python main.py' }, 'right'],
  ['the folder by a command', below, { start: 'cd app && python main.py' }, 'right'],
  ['the wrong folder', below, { start: 'python main.py' }, 'wrong'],
  ['a file named from its folder', named, { folder: 'app', start: 'python app.py' }, 'right'],
  ['a module named from its folder', named, { folder: 'app', start: 'gunicorn app:server' }, 'right'],
  ['Bun is a Node', { strategy: 'bun', start: [] }, { strategy: 'node' }, 'right'],
  ['another language', { strategy: 'ruby', start: [] }, { strategy: 'node' }, 'wrong'],
  ['served folder', site, { strategy: 'static', folder: 'excalidraw-app', serves: 'build/' }, 'right'],
  ['another served folder', site, { strategy: 'static', serves: '.' }, 'wrong'],
  ['both parts', both, { strategy: 'compose', build: 'docker build vote\ndocker build result' }, 'right'],
  ['one part', both, { folder: 'vote', start: 'python app.py' }, 'wrong'],
  ['a plan where none is expected', none, { start: 'python x.py' }, 'wrong'],
  ["the author's Dockerfile", memos, { strategy: 'dockerfile', dockerfile: 'Dockerfile' }, 'right'],
];

test.each(cases)('%s', (_what, expected, planned, verdict) => {
  assert.equal(judge(buildEntry(expected), plannedOf(planned)).verdict, verdict);
});

test('a refusal is right where one is expected, also beside a plan; else it is a refusal with its words', () => {
  const refused = refusal('p', 'no start');
  assert.equal(judge(buildEntry(none), refused).verdict, 'right');
  assert.equal(judge(buildEntry(both, { also: [{ refuse: 'two parts' }] }), refused).verdict, 'right');
  assert.deepEqual(judge(buildEntry(streamlit), refused), { verdict: 'refused', reason: 'no start' });
});

test('what is wrong is said of every expectation', () => {
  const { reason } = judge(buildEntry(none, { also: [streamlit] }), plannedOf({ start: 'python x.py', folder: 'web' }));
  assert.equal(reason, 'expected a refusal: a library; or expected streamlit run*app.py, got python x.py in web');
});

test("a person's word on a planner goes before the rule, of one version or of all", () => {
  const judged = { 'p@1': { verdict: 'right' as const, reason: 'works by chance' } };
  const entry = buildEntry(streamlit, { judged });
  assert.equal(judge(entry, plannedOf({}), '1').verdict, 'right');
  assert.equal(judge(entry, plannedOf({}), '2').verdict, 'wrong');
});

test('* stands for anything between, in one line and in this order', () => {
  assert.ok(contains('a\nmarimo run --port 1 main.py', 'marimo*run*main.py'));
  assert.ok(!contains('main.py marimo run', 'marimo*run*main.py'));
});
