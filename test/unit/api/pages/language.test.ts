// The language of a page, and how numbers are written in it.
import assert from 'node:assert/strict';
import { test } from 'vitest';
import { formats, chooseLanguage, texts } from '../../../../api/pages/language.ts';

test('chooses the language by the address, then the browser, then English', () => {
  const cases: readonly (readonly [unknown, string | null, string, boolean])[] = [
    ['zh', 'en', 'zh', true],
    ['en', 'zh', 'en', true],
    [undefined, 'zh-CN,zh;q=0.9,en;q=0.8', 'zh', false],
    [undefined, 'zh-TW', 'zh', false],
    [undefined, 'en-US,en;q=0.9,zh;q=0.8', 'en', false],
    [undefined, 'de-DE,de;q=0.9', 'en', false],
    [undefined, null, 'en', false],
    ['xx', 'zh', 'zh', false],
    [['zh', 'en'], 'en', 'en', false],
  ];
  for (const [named, accepted, language, isNamed] of cases)
    assert.deepEqual(chooseLanguage(named, accepted), { language, isNamed }, JSON.stringify([named, accepted]));
});

test('keeps the significant digits of small amounts', () => {
  const { money, percent, duration, compact } = formats.en;
  assert.deepEqual([0, 0.0000123, 0.00124, 0.5, 1, 12.3456, 1234.5].map(money), [
    '$0.00',
    '$0.0000123',
    '$0.00124',
    '$0.50',
    '$1.00',
    '$12.35',
    '$1,234.50',
  ]);
  assert.deepEqual(
    [percent(0.875), percent(1), duration(840), duration(1_234), compact(45_678)],
    ['87.5%', '100%', '840 ms', '1.2 sec', '45.7K'],
  );
  assert.equal(formats.zh.compact(45_678), '4.6万');
});

test('shows a time as a time element, and an invalid time as text', () => {
  assert.equal(
    formats.en.date('2026-05-01T10:00:00Z').toString(),
    '<time datetime="2026-05-01T10:00:00.000Z">May 1, 2026</time>',
  );
  assert.equal(formats.en.date('<soon>').toString(), '<span>&lt;soon&gt;</span>');
});

/** Every text of a language with its path; texts with a part left open are filled with a mark. */
function flat(value: unknown, path = ''): [string, string][] {
  if (typeof value === 'string') return [[path, value]];
  if (typeof value === 'function') return [[path, (value as (...parts: string[]) => string)('{a}', '{b}', '{c}')]];
  return Object.entries(value as object).flatMap(([key, one]) => flat(one, `${path}.${key}`));
}

test('fills in the same parts in both languages, and leaves no Chinese text untranslated', () => {
  const [en, zh] = [new Map(flat(texts.en)), new Map(flat(texts.zh))];
  assert.deepEqual([...zh.keys()], [...en.keys()]);
  for (const [path, text] of en) {
    const parts = [...text.matchAll(/\{[abc]\}/g)].map(([part]) => part).sort();
    assert.deepEqual([...(zh.get(path) ?? '').matchAll(/\{[abc]\}/g)].map(([part]) => part).sort(), parts, path);
  }
  const same = [...en].filter(([path, text]) => zh.get(path) === text).map(([path]) => path);
  assert.deepEqual(same, ['.site.name', '.site.openapi', '.site.llms', '.bench.p95', '.rank.n']);
});
