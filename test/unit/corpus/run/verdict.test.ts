// Whether a page that was opened works.
import assert from 'node:assert/strict';
import { test } from 'vitest';
import type { Page } from '../../../corpus/run/page.ts';
import { judgePage } from '../../../corpus/run/verdict.ts';

const at = 'https://app.apps.localhost';

function pageOf(more: Partial<Page>): Page {
  return { url: `${at}/`, status: 200, text: 'Welcome', elements: 40, requests: [], exceptions: [], ...more };
}

test('a page with its own files works, whatever others answer', () => {
  const requests = [
    { url: `${at}/app.js`, type: 'Script', status: 200 },
    { url: `${at}/api/me`, type: 'Fetch', status: 401 },
    { url: `${at}/favicon.ico`, type: 'Other', status: 404 },
    { url: 'https://cdn.example.org/a.js', type: 'Script', status: 0 },
    { url: 'data:image/png;base64,AA', type: 'Image', status: 0 },
  ];
  const { verdict, faults, elsewhere } = judgePage(pageOf({ requests }));
  assert.deepEqual([verdict, faults, elsewhere], ['live and works', [], ['cdn.example.org']]);
});

test('files without the program behind them are falsely live', () => {
  const requests = [
    { url: `${at}/app.js`, type: 'Script', status: 200 },
    { url: `${at}/api/v1/a`, type: 'Fetch', status: 405 },
    { url: `${at}/api/v1/b`, type: 'XHR', status: 404 },
  ];
  const { verdict, faults } = judgePage(pageOf({ requests }));
  assert.equal(verdict, 'falsely live');
  assert.match(faults[0] ?? '', /^every call of itself fails: \/api\/v1\/a 405, \/api\/v1\/b 404$/);
});

const fatal: readonly (readonly [string, Partial<Page>])[] = [
  ['the page does not answer', { status: 0, text: '' }],
  ['the page answers 502', { status: 502 }],
  ['the page answers 404', { status: 404 }],
  ['the page is empty', { text: ' \n', elements: 2 }],
  [
    'the page is empty: its script failed with "TypeError: x is undefined"',
    { text: '', elements: 2, exceptions: ['TypeError: x is undefined\n    at a.js:1'] },
  ],
  ['the page shows "Traceback (most recent call last)"', { text: 'x Traceback (most recent call last): y' }],
];

test.each(fatal)('%s', (fault, more) => {
  const { verdict, faults } = judgePage(pageOf(more));
  assert.deepEqual([verdict, faults], ['falsely live', [fault]]);
});

test('a picture that fails is a fault, and so is what was declared to work', () => {
  const requests = [{ url: `${at}/a.png`, type: 'Image', status: 404 }];
  assert.deepEqual(judgePage(pageOf({ requests })).verdict, 'live with faults');
  const { verdict, faults } = judgePage(pageOf({}), { works: false, what: '/x does not say "y" (500)' });
  assert.deepEqual([verdict, faults], ['live with faults', ['/x does not say "y" (500)']]);
});
