// The names of an app: which ones an author can choose, which ones lead to it, and for how long nobody else gets them.
import assert from 'node:assert/strict';
import { test } from 'vitest';
import {
  findSlugFault,
  listFormerSlugs,
  listTakenSlugs,
  type NamedApp,
  readSlug,
  redirectDays,
  renameTo,
} from '../../../crds/slugs.ts';

const start = new Date('2026-11-01T00:00:00Z');
const addDays = (days: number): Date => new Date(start.getTime() + days * 86_400_000);
const first: NamedApp = { metadata: { name: 'hello' }, spec: {} };

function rename(app: NamedApp, slug: string, at: Date): NamedApp {
  return { ...app, spec: { control: renameTo(app, slug, at) } };
}

test.each([
  ['Shop', /lower-case/],
  ['1shop', /start with a letter/],
  ['shop-', /lower-case/],
  ['a'.repeat(41), /at most 40/],
  ['shop--pr-1', /reserved/],
  ['admin', /reserved/],
  ['www7', /reserved/],
  ['chat-ui-1', /catalog/],
  ['shop-0123abcd', /hexadecimal/],
  ['', /lower-case/],
])('no author can choose %j', (slug, fault) => {
  assert.match(findSlugFault(slug) ?? '', fault);
});

test('an author can choose an ordinary name', () => {
  for (const slug of ['shop', 'my-app-2', 'a', 'shop-0123abc', 'a'.repeat(40)])
    assert.equal(findSlugFault(slug), undefined);
});

test('a renamed app is led to by its former names until they end, and keeps its first name for itself', () => {
  const shop = rename(first, 'shop', start);
  const store = rename(shop, 'store', addDays(10));
  assert.deepEqual([readSlug(first), readSlug(shop), readSlug(store)], ['hello', 'shop', 'store']);
  assert.deepEqual(listFormerSlugs(store, addDays(20)), ['hello', 'shop']);
  assert.deepEqual(listFormerSlugs(store, addDays(redirectDays + 1)), ['shop']);
  // A name stays taken for a moment after its end.
  const end = addDays(redirectDays + 10);
  assert.deepEqual(listFormerSlugs(store, end), []);
  assert.deepEqual(listTakenSlugs(store, end), ['hello', 'store', 'shop']);
  assert.deepEqual(listTakenSlugs(store, addDays(redirectDays + 11)), ['hello', 'store']);
});

test('a way back to a former name leaves one name each, and the first one needs no field', () => {
  const back = rename(rename(first, 'shop', start), 'hello', addDays(1));
  assert.deepEqual(back.spec.control, {
    slug: undefined,
    formerSlugs: [{ name: 'shop', until: addDays(redirectDays + 1).toISOString() }],
  });
  assert.deepEqual(listTakenSlugs(back, addDays(2)), ['hello', 'shop']);
});
