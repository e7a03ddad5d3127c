// Chores repeat until stopped; failures and migrations with wrong names are reported plainly.
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'vitest';
import {
  DatabaseUnavailable,
  isTransient,
  toDatabaseFailure,
  openDatabase,
} from '../../../../api/billing/database/database.ts';
import { readMigrations } from '../../../../api/billing/database/migrate.ts';
import { repeat } from '../../../../api/billing/open-ledger.ts';

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
      onError: (error) => failures.push(error),
    },
    stop.signal,
  );
  assert.equal(runs, 4);
  assert.deepEqual(failures, [results[2]]);
});

/** As the server reports an error, and as a library or the system does. */
const reported = (code: string): Error => Object.assign(new Error('x'), { code, severity: 'FATAL' });
const coded = (code: string): Error => Object.assign(new Error('x'), { code, syscall: 'connect' });

test('only failures after which another try can help are tried again', () => {
  const again = (error: unknown, harmless: 'any' | 'rolled back'): boolean =>
    isTransient(toDatabaseFailure(error), harmless);
  for (const code of ['40001', '40P01']) assert.ok(again(reported(code), 'rolled back'));
  for (const error of [reported('57P01'), coded('ECONNRESET'), new Error('Connection terminated unexpectedly')]) {
    assert.ok(again(error, 'any'));
    assert.ok(!again(error, 'rolled back'));
  }
  for (const error of [reported('23505'), reported('22P02'), new TypeError('other'), 'text', undefined])
    assert.ok(!again(error, 'any'));
  assert.ok(!again(new Error('Query read timeout'), 'any'), 'another try would take as long again');
});

for (const { error, reason } of [
  ...['57P01', '57P02', '08006', '25P03'].map((code) => ({ error: reported(code), reason: 'lost' })),
  ...['57P03', '25006', '28P01', '28000', '3D000', '53100', '53200', '53300', '58030'].map((code) => ({
    error: reported(code),
    reason: 'refused',
  })),
  { error: reported('57014'), reason: 'timeout' },
  ...['ECONNRESET', 'EPIPE'].map((code) => ({ error: coded(code), reason: 'lost' })),
  ...['ECONNREFUSED', 'ENOENT', 'ENOTFOUND', 'EAI_AGAIN', 'EHOSTUNREACH'].map((code) => ({
    error: coded(code),
    reason: 'refused',
  })),
  ...['CERT_HAS_EXPIRED', 'SELF_SIGNED_CERT_IN_CHAIN', 'ERR_TLS_CERT_ALTNAME_INVALID'].map((code) => ({
    error: coded(code),
    reason: 'refused',
  })),
  { error: new Error('The server does not support SSL connections'), reason: 'refused' },
  { error: new Error('Connection terminated unexpectedly'), reason: 'lost' },
  { error: new Error('timeout exceeded when trying to connect'), reason: 'timeout' },
  { error: new Error('Query read timeout'), reason: 'timeout' },
])
  test(`${'code' in error ? String(error.code) : error.message} means that the database is unavailable (${reason})`, () => {
    const failure = toDatabaseFailure(error);
    assert.ok(failure instanceof DatabaseUnavailable);
    assert.deepEqual(
      [failure.type.slug, failure.type.status, failure.headers, failure.reason, failure.cause],
      ['ledger-unavailable', 503, { 'retry-after': '5' }, reason, error],
    );
  });

test('a fault of a statement stays what it is', () => {
  for (const error of [reported('23505'), reported('42601'), reported('P0001'), new TypeError('no values'), 'text'])
    assert.equal(toDatabaseFailure(error), error);
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
