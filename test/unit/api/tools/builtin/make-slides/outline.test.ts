// Outlines: plain text, what Markdown says besides bullets, and what is left out.
import assert from 'node:assert/strict';
import { test } from 'vitest';
import { flowSlide } from '../../../../../../api/tools/builtin/make-slides/flow.ts';
import {
  removeUnsupported,
  hasHeadings,
  toMarkdown,
} from '../../../../../../api/tools/builtin/make-slides/prepare-outline.ts';
import { readOutline } from '../../../../../../api/tools/builtin/make-slides/outline.ts';

test.each([
  ['numbers and indents', 'Plan\n1. One\n   - a\n   - b\n2. Two\n   - c', '# Plan|## One|- a|- b|## Two|- c'],
  ['letters below numerals', 'I. One\nA. a\n1. x\nII. Two\nB. b', '## One|- a|  - x|## Two|- b'],
  ['paragraphs', 'Title\n\nOne\na\nb\n\nTwo:\nc', '# Title|## One|- a|- b|## Two|- c'],
  ['slides by name', 'Slide 1: One\n- a\nSlide 2 - Two\n- b', '## One|- a|## Two|- b'],
  ['one list', 'To do:\n- a\n- b', '## To do|- a|- b'],
])('plain text: %s', (_, text, lines) => {
  assert.equal(toMarkdown(text)?.split('\n').filter(Boolean).join('|'), lines);
});

test('ignores headings in code', () => {
  assert.equal(hasHeadings('```\n# x\n```'), false);
  assert.equal(hasHeadings('Title\n==='), true);
  assert.equal(toMarkdown('just words'), undefined);
});

test('warns once about what slides cannot keep, and leaves code unchanged', () => {
  const { text, warnings } = removeUnsupported('`<b>` <b>x</b> <u>y</u> List<String> a < b\n```\n<div> $x_1$\n```');
  assert.equal(text, '`<b>` x y List<String> a < b\n```\n<div> $x_1$\n```');
  assert.deepEqual(warnings, ['HTML tags are left out; their text is kept.']);
  assert.match(removeUnsupported('$x_1$').warnings[0] ?? '', /not typeset/);
});

test('keeps the order of the content under a heading', () => {
  const { deck } = readOutline('# T\n## S\ntext\n\n3. c\n4. d\n\n|a|\n|-:|\n|1|\n\n```js\nx\n```\n![p](abc)');
  const [slide] = deck.slides;
  assert.deepEqual(slide?.layout === 'content' ? slide.columns : [], [
    {
      blocks: [
        {
          kind: 'text',
          lines: [
            { text: 'text', level: 0, isParagraph: true },
            { text: 'c', level: 0, number: 3 },
            { text: 'd', level: 0, number: 4 },
          ],
        },
        { kind: 'table', header: ['a'], rows: [['1']], align: ['right'] },
        { kind: 'code', code: 'x' },
        { kind: 'image', href: 'abc', alt: 'p' },
      ],
    },
  ]);
});

test('keeps two adjacent tables apart when a slide is split', () => {
  const rows = Array.from({ length: 12 }, (_, index) => [String(index)]);
  const table = (name: string): { kind: 'table'; header: string[]; rows: string[][] } => ({
    kind: 'table',
    header: [name],
    rows,
  });
  const pages = flowSlide({ layout: 'content', title: 'T', columns: [{ blocks: [table('a'), table('b')] }] }, () => ({
    width: 12,
    height: 4,
  }));
  const tables = pages.flatMap(([column]) => (column?.blocks ?? []).map(({ block }) => block));
  const rowsOfTable = (name: string): unknown[] =>
    tables.flatMap((block) => (block.kind === 'table' && block.header[0] === name ? block.rows : []));
  assert.deepEqual([rowsOfTable('a'), rowsOfTable('b')], [rows, rows]);
  assert.ok(pages.length > 1);
});
