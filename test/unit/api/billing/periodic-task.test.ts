// Chores repeat until stopped; failures and migrations with wrong names are reported plainly.
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'vitest';
import { isTransient } from '../../../../api/billing/database/failures.ts';
import { readMigrations } from '../../../../api/billing/database/migrate.ts';
import { openDatabase } from '../../../../api/billing/database/open.ts';
import { repeat } from '../../../../api/billing/periodic-task.ts';

test('a task with work left runs again at once, a failed one is reported and retried later, and the signal ends it', async () => {
  const stop = new AbortController();
  const failures: unknown[] = [];
  const results = [3, 1, new Error('database is away'), 0];
  let runs = 0;
  await repeat(
    {
      everyMs: 1,
      run: () => {
        const result = results[runs];
        runs += 1;
        if (runs === results.length) stop.abort();
        return result instanceof Error ? Promise.reject(result) : Promise.resolve(result ?? 0);
      },
      failed: (error) => failures.push(error),
    },
    stop.signal,
  );
  assert.equal(runs, 4);
  assert.deepEqual(failures, [results[2]]);
});

test('only failures after which another try can help are tried again', () => {
  const failure = (code: string): Error => Object.assign(new Error('x'), { code });
  for (const code of ['40001', '40P01']) assert.ok(isTransient(failure(code), 'rolled back'));
  for (const code of ['57P01', 'ECONNRESET']) {
    assert.ok(isTransient(failure(code), 'any'));
    assert.ok(!isTransient(failure(code), 'rolled back'));
  }
  assert.ok(isTransient(new Error('Connection terminated unexpectedly'), 'any'));
  for (const error of [failure('23505'), failure('22P02'), new Error('other'), 'text', undefined])
    assert.ok(!isTransient(error, 'any'));
});

test('migration files must be numbered, once each', () => {
  const folder = mkdtempSync(join(tmpdir(), 'moorage-migrations-'));
  try {
    writeFileSync(join(folder, '001-a.sql'), 'select 1');
    assert.deepEqual(
      readMigrations(folder).map(({ name }) => name),
      ['001-a.sql'],
    );
    writeFileSync(join(folder, '001-b.sql'), '');
    assert.throws(() => readMigrations(folder), /001-b\.sql: the number 001 is taken/);
    rmSync(join(folder, '001-b.sql'));
    writeFileSync(join(folder, 'notes.txt'), '');
    assert.throws(() => readMigrations(folder), /notes\.txt: name it like 001-/);
  } finally {
    rmSync(folder, { recursive: true });
  }
});

test('a database URL of another kind is refused with the kinds there are', async () => {
  await assert.rejects(openDatabase('mysql://x'), /must begin with postgres:\/\/ .* or pglite:/);
});
