// Pages: together they are the list, whatever its length and that of a page, also when items come and go in between.
import assert from 'node:assert/strict';
import fc from 'fast-check';
import { test } from 'vitest';
import { compareKeys, createNextLink, createPage, type SortKey } from '../../../../api/catalog/paging.ts';
import { Problem } from '../../../../lib/problem.ts';

const key = ({ n, name }: { n: number; name: string }): SortKey => [n, name];
const items = fc
  .uniqueArray(fc.record({ n: fc.integer({ min: -3, max: 3 }), name: fc.string({ maxLength: 5 }) }), {
    selector: (item) => JSON.stringify(key(item)),
    maxLength: 40,
  })
  .map((list) => list.toSorted((a, b) => compareKeys(key(a), key(b))));

test('all pages together are the list, in its order', () => {
  fc.assert(
    fc.property(items, fc.integer({ min: 1, max: 7 }), (list, limit) => {
      const read: (typeof list)[number][] = [];
      let cursor: string | undefined;
      do {
        const page = createPage(list, key, { limit, cursor, order: 'n' });
        assert.ok(page.items.length <= limit);
        assert.equal(page.total, list.length);
        read.push(...page.items);
        cursor = page.next;
      } while (cursor !== undefined);
      assert.deepEqual(read, list);
    }),
  );
});

test('an item that goes is missed by nobody, and none comes twice', () => {
  const list = ['a', 'b', 'c', 'd', 'e'].map((name) => ({ n: 0, name }));
  const { next } = createPage(list, key, { limit: 2, cursor: undefined, order: 'n' });
  const left = list.filter(({ name }) => name !== 'b' && name !== 'a');
  assert.deepEqual(
    createPage(left, key, { limit: 2, cursor: next, order: 'n' }).items.map(({ name }) => name),
    ['c', 'd'],
  );
});

test('a cursor of another order, or none at all, is refused by name', () => {
  const list = [
    { n: 1, name: 'a' },
    { n: 2, name: 'b' },
  ];
  const { next = '' } = createPage(list, key, { limit: 1, cursor: undefined, order: 'n' });
  for (const [cursor, order] of [
    [next, 'm'],
    ['', 'n'],
    ['bm90IEpTT04', 'n'],
    ['e30', 'n'],
    [Buffer.from('["n"]').toString('base64url'), 'n'],
  ] as const)
    assert.throws(
      () => createPage(list, key, { limit: 1, cursor, order }),
      (error) => error instanceof Problem && error.errors[0]?.field === 'cursor',
      `${cursor} ${order}`,
    );
});

test('the next link has all parameters, escaped', () => {
  const { url, headers } = createNextLink(
    'https://moorage.test/api/projects',
    { q: 'a&b <c>', state: undefined, limit: 2 },
    'x',
  );
  assert.equal(url, 'https://moorage.test/api/projects?q=a%26b+%3Cc%3E&limit=2&cursor=x');
  assert.deepEqual(headers, { link: `<${url}>; rel="next"` });
  assert.deepEqual(createNextLink('https://moorage.test', {}, undefined), { url: null, headers: {} });
});
