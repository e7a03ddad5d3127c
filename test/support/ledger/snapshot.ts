// A snapshot of an empty, migrated PGlite: loading it takes a fraction of what initdb and the migrations do.
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { PGlite } from '@electric-sql/pglite';
import { migrate, readMigrations } from '../../../api/billing/database/migrate.ts';
import { Database, migrationsFolder, createPgliteDriver } from '../../../api/billing/database/database.ts';

const root = join(import.meta.dirname, '../../..');
const cache = join(root, 'node_modules/.cache/moorage');
const engine = readFileSync(join(root, 'node_modules/@electric-sql/pglite/package.json'), 'utf8');
const migrations = readMigrations(migrationsFolder);
/** Of what an instance would fill and unpack for nothing: 128 MB of buffers, and databases to copy. */
const slim = [
  `alter system set shared_buffers = '8MB'`,
  ...['template0', 'template1'].flatMap((name) => [
    `alter database ${name} is_template false`,
    `drop database ${name}`,
  ]),
];
const key = createHash('sha256')
  .update(JSON.stringify([engine, migrations, slim, trimLog.toString()]))
  .digest('hex')
  .slice(0, 16);
const snapshot = join(cache, `ledger-${key}.tar`);

/** URL of a database in memory that has the newest schema. Tests of the migrations themselves use `pglite:`. */
export const migratedDatabase = `pglite:${snapshot}`;

/** Before the tests: makes the snapshot, once for these migrations and this version of PGlite, in place of older ones. */
export default async function setup(): Promise<void> {
  if (existsSync(snapshot)) return;
  const pglite = await PGlite.create();
  await migrate(new Database(createPgliteDriver(pglite)), migrations);
  for (const statement of slim) await pglite.exec(statement);
  await trimLog(pglite);
  const dump = await pglite.dumpDataDir('none');
  await pglite.close();
  mkdirSync(cache, { recursive: true });
  for (const name of readdirSync(cache)) if (/^ledger-\w+\.tar$/.test(name)) rmSync(join(cache, name));
  const draft = `${snapshot}.${process.pid}`;
  writeFileSync(draft, Buffer.from(await dump.arrayBuffer()));
  renameSync(draft, snapshot);
}

interface DatabaseFiles {
  readdir(path: string): string[];
  unlink(path: string): void;
  truncate(path: string, bytes: number): void;
  readFile(path: string): Uint8Array;
}

/** Removes what the write-ahead log has from before, and the zeros behind its end: 16 MB that each instance would copy. */
async function trimLog(pglite: PGlite): Promise<void> {
  await pglite.exec('select pg_switch_wal()');
  await pglite.exec('checkpoint');
  const { rows } = await pglite.query<{ current: string }>('select pg_walfile_name(pg_current_wal_lsn()) as current');
  // Its types refer to those of Emscripten, which are not installed.
  const files = pglite.Module.FS as unknown as DatabaseFiles;
  const folder = '/pglite/data/pg_wal';
  for (const name of files.readdir(folder)) {
    const segment = `${folder}/${name}`;
    if (!/^[0-9A-F]{24}$/.test(name)) continue;
    if (name !== rows[0]?.current) files.unlink(segment);
    else files.truncate(segment, roundUp(files.readFile(segment).findLastIndex((byte) => byte !== 0) + 1));
  }
}

/** To whole pages of the log. */
function roundUp(bytes: number): number {
  return Math.ceil(bytes / 8_192) * 8_192;
}
