// What memory promises, on any database.
import assert from 'node:assert/strict';
import { createHash, randomUUID } from 'node:crypto';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, test } from 'vitest';
import { z } from 'zod';
import type { Database } from '../../../api/billing/database/database.ts';
import { createMemoryTool, MemoryStore } from '../../../api/tools/builtin/memory/memory.ts';
import type { Tool, ToolContext } from '../../../api/tools/tool.ts';
import { call, isProblem, createServices } from './call.ts';

export function memorySuite(engine: string, open: () => Promise<Database>): void {
  describe(`memory on ${engine}`, () => {
    let database: Database;
    let tool: Tool;
    beforeAll(async () => {
      database = await open();
      tool = createMemoryTool(createServices({ database: () => database }));
    });
    afterAll(() => database.close());
    const memory = async (
      who: Partial<ToolContext>,
      input: Record<string, unknown>,
    ): Promise<Record<string, unknown>> => (await call(tool, input, who)).result;
    const someone = (keyed = true, session?: string): Partial<ToolContext> => ({ owner: randomUUID(), keyed, session });

    test('sets, gets, lists and deletes', async () => {
      const who = someone();
      assert.deepEqual(await memory(who, { action: 'get', key: 'b' }), {
        action: 'get',
        key: 'b',
        found: false,
        value: null,
        updated_at: null,
        expires_at: null,
        keys: null,
      });
      const set = await memory(who, { action: 'set', key: 'b', value: 'one' });
      assert.equal(set.expires_at, null);
      await memory(who, { action: 'set', key: 'b', value: 'two \u{1F600}' });
      await memory(who, { action: 'set', key: 'a', value: '' });
      const got = await memory(who, { action: 'get', key: 'b' });
      assert.deepEqual([got.found, got.value], [true, 'two \u{1F600}']);
      assert.match(String(got.updated_at), /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
      const { keys } = await memory(who, { action: 'list' });
      assert.deepEqual(
        (keys as { key: string; bytes: number }[]).map(({ key, bytes }) => [key, bytes]),
        [
          ['a', 0],
          ['b', 8],
        ],
      );
      assert.equal(((await memory(who, { action: 'list', prefix: 'b' })).keys as unknown[]).length, 1);
      assert.equal(((await memory(who, { action: 'list', key: '%' })).keys as unknown[]).length, 0);
      assert.equal((await memory(who, { action: 'delete', key: 'b' })).found, true);
      assert.equal((await memory(who, { action: 'delete', key: 'b' })).found, false);
      assert.equal((await memory(who, { action: 'get', key: 'b' })).found, false);
    });

    test('gives back any text as it was', async () => {
      const who = someone();
      await fc.assert(
        fc.asyncProperty(
          fc.string({ unit: 'binary', minLength: 1, maxLength: 50 }),
          fc.string({ unit: 'binary', maxLength: 200 }),
          async (key, value) => {
            fc.pre(!`${key}${value}`.includes('\0'));
            await memory(who, { action: 'set', key, value });
            assert.equal((await memory(who, { action: 'get', key })).value, value);
            await memory(who, { action: 'delete', key });
          },
        ),
        { numRuns: 40 },
      );
    });

    test('gives back any JSON value as it was, and knows text from JSON', async () => {
      const who = someone();
      const keep = async (value: unknown): Promise<unknown> => {
        assert.equal((await memory(who, { action: 'set', key: 'k', value })).action, 'set');
        const { found, value: kept } = await memory(who, { action: 'get', key: 'k' });
        assert.equal(found, true);
        return kept;
      };
      for (const value of [
        { name: 'Ada', tags: ['a', 'b'], nested: { ok: true, none: null } },
        [],
        0,
        -1.5e-7,
        false,
        null,
        '{"a":1}',
        'null',
        '"',
        ['\0', '\ud800', '\u2028'],
        JSON.parse('{"__proto__":{"x":1}}') as unknown,
      ])
        assert.deepStrictEqual(await keep(value), value, JSON.stringify(value));
      await fc.assert(
        fc.asyncProperty(fc.jsonValue({ maxDepth: 4 }), async (value) => {
          assert.deepStrictEqual(await keep(value), JSON.parse(JSON.stringify(value)));
        }),
        { numRuns: 40 },
      );
      assert.deepEqual(await keep({ a: 1 }), { a: 1 });
      const { keys } = await memory(who, { action: 'list' });
      assert.deepEqual(
        (keys as { bytes: number }[]).map(({ bytes }) => bytes),
        ['{"a":1}'.length],
      );
    });

    test('a replica of the version before writes text over JSON', async () => {
      const who = someone();
      await memory(who, { action: 'set', key: 'k', value: [1] });
      await database.query(
        {
          name: 'old-remember',
          text: 'select tools.remember($1, $2, $3, $4, $5, $6, $7, $8) as answer',
          row: z.unknown(),
        },
        [`key:${who.owner ?? ''}`, '', 'k', '[2]', null, 10, 1_000, null],
      );
      assert.equal((await memory(who, { action: 'get', key: 'k' })).value, '[2]');
    });

    test('keeps callers, sessions, and those with and without a key apart [spec tools.memory]', async () => {
      const [owner, secret] = [randomUUID(), randomUUID()];
      const spaces: Partial<ToolContext>[] = [
        { owner, keyed: true },
        { owner, keyed: true, session: 'x' },
        { owner, keyed: true, session: secret },
        { owner, keyed: false, session: secret },
        { owner, keyed: false, session: randomUUID() },
        someone(true, 'x'),
        someone(false, randomUUID()),
      ];
      for (const [index, space] of spaces.entries())
        await memory(space, { action: 'set', key: 'k', value: `of ${index}` });
      for (const [index, space] of spaces.entries())
        assert.equal((await memory(space, { action: 'get', key: 'k' })).value, `of ${index}`);
    });

    test('without a key, only a session name that nobody guesses opens a space, from any network', async () => {
      for (const action of ['get', 'list', 'delete'])
        await assert.rejects(
          memory(someone(false), { action, key: 'k' }),
          isProblem('invalid-request', /"s" is missing.*session name/),
        );
      for (const session of ['demo', 'a'.repeat(40), 'session-000000000000000001'])
        await assert.rejects(
          memory(someone(false, session), { action: 'set', key: 'k', value: 'v' }),
          isProblem('invalid-request', /"s" is too easy to guess/),
        );
      const me = someone(false);
      const { session } = await memory(me, { action: 'set', key: 'k', value: 'v' });
      assert.match(String(session), /^[A-Za-z0-9][A-Za-z0-9._-]{21,63}$/);
      const from = async (who: Partial<ToolContext>): Promise<unknown> =>
        (await memory(who, { action: 'get', key: 'k' })).value;
      assert.equal(await from({ ...me, session: String(session) }), 'v');
      assert.equal(await from(someone(false, String(session))), 'v');
      assert.equal(await from({ ...me, session: randomUUID() }), null);
      assert.equal(await from({ ...me, keyed: true, session: String(session) }), null);
    });

    test('without a key forgets after a day', async () => {
      const who = someone(false, randomUUID());
      const { expires_at } = await memory(who, { action: 'set', key: 'k', value: 'v' });
      assert.ok(Math.abs(Date.parse(String(expires_at)) - Date.now() - 86_400_000) < 600_000, String(expires_at));
      const later = new MemoryStore(database, () => new Date(Date.parse(String(expires_at)) + 1));
      const hash = createHash('sha256').update(String(who.session)).digest('hex');
      const space = { owner: `secret:${hash}`, session: '' };
      assert.equal(await later.get(space, 'k'), undefined);
      assert.deepEqual(await later.list(space, ''), []);
      assert.equal(await later.remove(space, 'k'), false);
      await later.set({ owner: randomUUID(), session: '' }, 'k', 'v', { entries: 1, bytes: 10, ttlMs: null });
      assert.equal(
        await new MemoryStore(database).get(space, 'k'),
        undefined,
        'the expired one is removed by the next writer',
      );
    });

    test('says what is missing or wrong', async () => {
      const who = someone();
      await assert.rejects(memory(who, { action: 'get' }), isProblem('invalid-request', /"key" is missing/));
      await assert.rejects(
        memory(who, { action: 'set', key: 'k' }),
        isProblem('invalid-request', /"value" is missing/),
      );
      await assert.rejects(memory(who, { action: 'set', key: 'k', value: 'a\0b' }), /U\+0000/);
      await assert.rejects(memory(who, { action: 'set', key: '\ud800', value: 'x' }), /surrogate/);
      await assert.rejects(memory(who, { action: 'set', key: 'k', value: 'x'.repeat(32_001) }), /32000/);
      await assert.rejects(memory(who, { action: 'set', key: 'k', value: ['x'.repeat(32_000)] }), /32000 .* as JSON/);
      const deep = JSON.parse(`${'['.repeat(66)}${']'.repeat(66)}`) as unknown;
      await assert.rejects(memory(who, { action: 'set', key: 'k', value: deep }), /64 levels/);
      await assert.rejects(memory(who, { action: 'drop', key: 'k' }), /action/);
      const nasty = "'; drop table tools.memory; --";
      await memory(who, { action: 'set', key: nasty, value: nasty });
      assert.equal((await memory(who, { action: 'get', key: nasty })).value, nasty);
    });

    test('holds no more than allowed, whoever writes at once', async () => {
      const who = someone(false, randomUUID());
      const outcomes = await Promise.allSettled(
        Array.from({ length: 120 }, (_, index) => memory(who, { action: 'set', key: `k${index}`, value: 'v' })),
      );
      assert.equal(outcomes.filter(({ status }) => status === 'fulfilled').length, 100);
      for (const outcome of outcomes)
        if (outcome.status === 'rejected') isProblem('tool-limit', /limit is 100 entries and 256 KB/)(outcome.reason);
      const big = someone(false, randomUUID());
      for (let index = 0; index < 8; index += 1)
        await memory(big, { action: 'set', key: `k${index}`, value: 'v'.repeat(32_000) });
      await assert.rejects(
        memory(big, { action: 'set', key: 'k8', value: 'v'.repeat(32_000) }),
        isProblem('tool-limit', /256 KB/),
      );
      await memory(big, { action: 'set', key: 'k7', value: 'v'.repeat(32_000) });
    });

    test('holds no more than allowed for one network, however many sessions it has', async () => {
      const network = someone(false);
      const set = (): Promise<unknown> => memory(network, { action: 'set', key: 'k', value: 'v'.repeat(32_000) });
      const outcomes = await Promise.allSettled(Array.from({ length: 70 }, set));
      assert.equal(outcomes.filter(({ status }) => status === 'fulfilled').length, 65);
      await assert.rejects(set(), isProblem('tool-limit', /1000 entries and 2048 KB for all callers without a key/));
      await memory(someone(false), { action: 'set', key: 'k', value: 'v' });
    });
  });
}
