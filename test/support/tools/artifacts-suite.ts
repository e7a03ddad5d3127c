// What is promised of files that tools have made, on whatever database: to be run on PGlite and on PostgreSQL.
import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, test } from 'vitest';
import type { Database } from '../../../api/billing/database/database.ts';
import { ArtifactStore, type ArtifactStoreOptions } from '../../../api/tools/engine/artifacts.ts';

const png = (...bytes: number[]): { bytes: Uint8Array; mediaType: string; fileName: string } => ({
  bytes: Uint8Array.from(bytes),
  mediaType: 'image/png',
  fileName: 'a.png',
});

export function artifactSuite(engine: string, open: () => Promise<Database>): void {
  describe(`files on ${engine}`, () => {
    let database: Database;
    beforeAll(async () => {
      database = await open();
    });
    afterAll(() => database.close());
    const store = (options: Partial<ArtifactStoreOptions> = {}): ArtifactStore =>
      new ArtifactStore({ database: () => database, ...options });
    const keep = async (artifacts: ArtifactStore, owner: string, file = png(1)): Promise<string> =>
      (await artifacts.keep(owner, file))?.id ?? assert.fail('not kept');
    const there = async (artifacts: ArtifactStore, ids: readonly string[]): Promise<boolean[]> =>
      Promise.all(ids.map(async (id) => (await artifacts.get(id)) !== undefined));

    test('a file comes back as it was, under an id of 128 random bits', async () => {
      const artifacts = store();
      const file = png(0, 255, 10, 13, 0);
      const ids = await Promise.all(Array.from({ length: 20 }, () => keep(artifacts, 'same', file)));
      assert.equal(new Set(ids).size, 20);
      assert.ok(ids.every((id) => Buffer.from(id, 'base64url').length === 16));
      const { bytes, ...rest } = (await artifacts.get(ids[0] ?? '')) ?? assert.fail();
      assert.deepEqual([[...bytes], rest], [[0, 255, 10, 13, 0], { mediaType: 'image/png', fileName: 'a.png' }]);
    });

    test('what is not an id of a file is not looked for', async () => {
      assert.deepEqual(await there(store(), ['', 'x', 'A'.repeat(22), "' or 1=1 --0123456789x", '\u0000'.repeat(22)]), [
        false,
        false,
        false,
        false,
        false,
      ]);
    });

    test('an expired file is not answered, and swept away', async () => {
      const artifacts = store({ keepMs: 30 });
      const id = await keep(artifacts, 'expires');
      await sleep(60);
      assert.deepEqual(await there(artifacts, [id]), [false]);
      assert.equal(await artifacts.sweep(), 1);
      assert.equal(await artifacts.sweep(), 0);
    });

    test('of one caller so many files and bytes are kept: the oldest go, those of others stay', async () => {
      const few = store({ maxFiles: 3 });
      const other = await keep(few, 'other');
      const ids: string[] = [];
      for (let nth = 0; nth < 5; nth += 1) ids.push(await keep(few, 'many'));
      assert.deepEqual(await there(few, ids), [false, false, true, true, true]);
      const small = store({ maxBytes: { one: 4, owner: 8, all: 1_000 } });
      const heavy: string[] = [];
      for (let nth = 0; nth < 3; nth += 1) heavy.push(await keep(small, 'heavy', png(1, 2, 3, 4)));
      assert.deepEqual(await there(small, heavy), [false, true, true]);
      assert.equal(await small.keep('heavy', png(1, 2, 3, 4, 5)), undefined);
      assert.deepEqual(await there(small, [other]), [true]);
    });

    test('of all callers together so many bytes are kept, without waiting for the chore', async () => {
      await store({ maxBytes: { one: 1, owner: 1, all: 0 } }).sweep();
      const artifacts = store({ maxBytes: { one: 10, owner: 10, all: 40 } });
      const ids: string[] = [];
      for (let nth = 0; nth < 8; nth += 1)
        ids.push(await keep(artifacts, `caller ${nth}`, png(...Array<number>(10).fill(7))));
      const left = await there(artifacts, ids);
      assert.deepEqual(left.slice(-4), [true, true, true, true]);
      assert.ok(left.filter((one) => one).length <= 5, String(left));
    });
  });
}
