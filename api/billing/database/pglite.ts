// PGlite as a driver of the ledger's database: a PostgreSQL inside this process, on one connection.
import { openAsBlob } from 'node:fs';
import { PGlite, type Transaction as Engine } from '@electric-sql/pglite';
import type { Connection, Driver } from './database.ts';
import { toDatabaseFailure } from './failures.ts';

/**
 * Opens the data in a folder or, without one, in memory: empty, or as a snapshot (a file `*.tar` that `dumpDataDir`
 * made) has it. Only one process may have a folder open.
 */
export async function pgliteDriver(path?: string): Promise<Driver> {
  if (path?.endsWith('.tar') === true) return driverOn(await PGlite.create({ loadDataDir: await openAsBlob(path) }));
  return driverOn(path === undefined ? await PGlite.create() : await PGlite.create(path));
}

export function driverOn(engine: PGlite): Driver {
  return {
    connections: 1,
    ...connectionOn(engine),
    transaction: (work) => engine.transaction((transaction) => work(connectionOn(transaction))),
    close: () => engine.close(),
  };
}

function connectionOn(on: PGlite | Engine): Connection {
  const mapped = (error: unknown): never => {
    throw toDatabaseFailure(error);
  };
  // In this process there is no peer that could be silent, so nothing has a time limit.
  return {
    // PGlite has no named statements here; it parses in process, each time.
    rows: async ({ text }, values) => (await on.query(text, [...values]).catch(mapped)).rows,
    script: async (sql) => {
      await on.exec(sql).catch(mapped);
    },
  };
}
