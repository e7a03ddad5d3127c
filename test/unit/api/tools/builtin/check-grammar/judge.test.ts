// Which matches count, and which are put into the text.
import assert from 'node:assert/strict';
import { test } from 'vitest';
import {
  judgeMatches,
  applyCorrections,
  type Match,
  findMeantWord,
  findProtectedRanges,
} from '../../../../../../api/tools/builtin/check-grammar/judge.ts';

interface FoundWord {
  readonly word: string;
  readonly suggestions: readonly string[];
  readonly kind?: string;
  readonly message?: string;
}

function matchIn(text: string, { word, suggestions, kind = 'Spelling', message }: FoundWord): Match {
  return {
    offset: text.indexOf(word),
    length: word.length,
    text: word,
    message: message ?? `Did you mean to spell \`${word}\` this way?`,
    kind,
    suggestions: [...suggestions],
  };
}

function after(text: string, found: FoundWord, language = 'en'): { count: number; text: string } {
  const { matches, applied } = judgeMatches(text, language, [matchIn(text, found)]);
  return { count: matches.length, text: applyCorrections(text, applied) };
}

test('leaves code, addresses and names alone', () => {
  const cases: [string, FoundWord, string?][] = [
    ['Run `npm instal` first.', { word: 'instal', suggestions: ['install'] }],
    ['See https://example.com/startd for it.', { word: 'startd', suggestions: ['started'] }],
    ['Mail jane@exampel.org now.', { word: 'exampel', suggestions: ['example'] }],
    ['The function getUserById returns it.', { word: 'getUserById', suggestions: ['x'] }],
    ['Set recieved_at to now.', { word: 'recieved', suggestions: ['received'] }],
    ['Edit config/settigns.yaml today.', { word: 'settigns', suggestions: ['settings'] }],
    ['Use --dry-runn here.', { word: 'runn', suggestions: ['run'] }],
    ['Call the API of ESA.', { word: 'ESA', suggestions: ['Era'] }],
    ['We met Siobhan there.', { word: 'Siobhan', suggestions: ['Siphon'] }],
    ['Zoë asked us in.', { word: 'Zoë', suggestions: ['Zoe'] }],
    ['Amelie Poulain sings.', { word: 'Amelie', suggestions: ['Amelia'] }],
    ['They left Saigon.', { word: 'Saigon', suggestions: ['Ho Chi Minh City'], kind: 'WordChoice' }],
    [
      'Acme Corp. resigned.',
      {
        word: 'resigned',
        suggestions: ['Resigned'],
        kind: 'Capitalization',
        message: 'This sentence does not start with a capital letter',
      },
    ],
    ['Hier lebt Pierre.', { word: 'Pierre', suggestions: ['Pierres'], kind: 'misspelling' }, 'fr'],
  ];
  for (const [text, found, language] of cases) assert.deepEqual(after(text, found, language), { count: 0, text }, text);
});

test('applies what a slip explains, and reports the rest', () => {
  const cases: [string, FoundWord, string, string?][] = [
    ['It was wierd.', { word: 'wierd', suggestions: ['wield', 'weird'] }, 'It was weird.'],
    ['Wich one?', { word: 'Wich', suggestions: ['Wish', 'Which'] }, 'Which one?'],
    ['He isnt here.', { word: 'isnt', suggestions: ['inst', "isn't"] }, "He isn't here."],
    [
      'Some advices.',
      { word: 'advices', suggestions: ['adv ices'], kind: 'Typo', message: 'missing space' },
      'Some advices.',
    ],
    [
      'I saw teh store.',
      { word: 'teh', suggestions: ['the'], kind: 'Typo', message: 'the article' },
      'I saw the store.',
    ],
    [
      'It is an test.',
      { word: 'an', suggestions: ['a'], kind: 'Miscellaneous', message: 'Incorrect indefinite article.' },
      'It is a test.',
    ],
    [
      'Very hungry now.',
      { word: 'Very hungry', suggestions: ['Starving'], kind: 'Enhancement', message: 'vivid' },
      'Very hungry now.',
    ],
    [
      'Das ist ein Feler.',
      { word: 'Feler', suggestions: ['Fehler', 'Felder'], kind: 'misspelling' },
      'Das ist ein Fehler.',
      'de',
    ],
    [
      'Los niño comen.',
      { word: 'Los niño', suggestions: ['El niño', 'Los niños'], kind: 'grammar', message: 'agreement' },
      'Los niños comen.',
      'es',
    ],
    [
      'Las casa son.',
      { word: 'Las casa', suggestions: ['La casa', 'Las casas'], kind: 'grammar', message: 'agreement' },
      'Las casa son.',
      'es',
    ],
  ];
  for (const [text, found, expected, language] of cases)
    assert.deepEqual(after(text, found, language), { count: 1, text: expected }, text);
});

test('puts the intended word first among the suggestions', () => {
  const text = 'It was wierd.';
  const [match] = judgeMatches(text, 'en', [
    matchIn(text, { word: 'wierd', suggestions: ['wield', 'weird', 'wild'] }),
  ]).matches;
  assert.deepEqual(match?.suggestions, ['weird', 'wield', 'wild']);
});

test('accepts as a slip two swapped letters, one not doubled, a missing apostrophe or capital, or one letter', () => {
  const exactly = { ordered: false };
  assert.equal(findMeantWord('langauge', ['language', 'languages'], exactly), 'language');
  assert.equal(findMeantWord('recomend', ['rehomed', 'recommend'], exactly), 'recommend');
  assert.equal(findMeantWord('paris', ["par's", 'Paris', 'pairs'], exactly), 'Paris');
  assert.equal(findMeantWord('furnitures', ["furniture's", 'furniture'], exactly), 'furniture');
  assert.equal(findMeantWord('untill', ['distill'], exactly), undefined);
  assert.equal(findMeantWord('vamo', ['amo', 'vano', 'vamos'], { ordered: true }), 'vamos');
  assert.equal(findMeantWord('ermano', ['hermano', 'emano'], { ordered: true }), 'hermano');
  assert.equal(findMeantWord('dijistes', ['dijiste', 'dijisteis'], { ordered: true }), 'dijiste');
  assert.equal(findMeantWord('vamo', ['amo', 'vano'], { ordered: true }), undefined);
  assert.equal(findMeantWord('Straße', ['Strafe', 'Strasse'], exactly), 'Strasse');
  assert.equal(findMeantWord('closd', ['close', 'clod'], exactly), undefined);
  assert.equal(findMeantWord('closd', ['close', 'clod'], { ordered: true }), 'close');
});

// Patterns end on any text, however long and odd.

test('stays fast on texts designed to be slow', () => {
  for (const part of [
    'a',
    '<a',
    '`',
    '{',
    'a.',
    'a_',
    '-',
    '/a',
    'a/',
    'A',
    '1',
    '@a',
    '```',
    '${',
    'aA',
    'www.',
    'a://',
  ]) {
    // A pattern that backtracks without end would outlast the time limit of this test.
    const text = part.repeat(20_000 / part.length);
    assert.ok(findProtectedRanges(text).every(([from, to]) => from < to && to <= text.length));
  }
});

test('detects tokens that are not words', () => {
  const text = 'Use `x y`, node.js, $HOME, fooBar(), --flag, #12, @me and v2.1 but not these words.';
  const found = findProtectedRanges(text).map(([from, to]) => text.slice(from, to));
  for (const each of ['`x y`', 'node.js', '$HOME', 'fooBar', '--flag', '#12', '@me', 'v2.1'])
    assert.ok(found.includes(each), `${each} in ${found.join(' ')}`);
  assert.ok(!found.some((each) => /but|not|these|words/.test(each)), found.join(' '));
});
