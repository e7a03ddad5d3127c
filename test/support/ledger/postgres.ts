// Starts a real PostgreSQL of its own for tests: a new cluster in a temporary folder, on a unix socket, with the roles
// that production has.
import { execFileSync, spawn, type ChildProcess } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { chownSync, existsSync, globSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { once } from 'node:events';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Client } from 'pg';
import { ensureAuthority, ensureCertificate } from '../../../localnode/node/control-plane/certificates.ts';
import { prepareDatabase } from '../../../api/billing/database/prepare.ts';
import { runExclusively } from '../exclusively.ts';
import { openLease, postgresLease } from '../servers/lease.ts';

/** Databases on a server that other files use at the same time. */
export interface SharedPostgres {
  /** Makes a database with the newest schema. @returns its URL for the runtime role, as the API has it. */
  createDatabase(name: string): Promise<string>;
  /** For the server itself this has no effect. */
  stop(): Promise<void>;
}

export interface Postgres extends SharedPostgres {
  /** URL of the database `postgres` for a superuser. */
  readonly adminUrl: string;
  /** Makes an empty database. @returns its URL for a superuser. */
  createEmptyDatabase(name: string): Promise<string>;
  /** Ends every backend at once, as a crash of the machine would, and starts again on the same data. */
  crash(): Promise<void>;
  /** Ends it, so that connections are refused, until `start`. */
  end(): Promise<void>;
  start(): Promise<void>;
  /** Stops every process of it where it is (SIGSTOP): connections stay and nothing answers, until `thaw`. */
  freeze(): void;
  thaw(): void;
}

export const runtimeRole = 'moorage_api';
export const migratorRole = 'moorage_migrator';

function withRole(url: string, role: string): string {
  return url.replace(/^postgres:\/\/[^@]*@/, `postgres://${role}@`);
}

/** The same database for a superuser, such as for a test that disables triggers. */
export function toSuperuserUrl(url: string): string {
  return withRole(url, 'postgres');
}

/** The same database for the owner of the schema. */
export function toMigratorUrl(url: string): string {
  return withRole(url, migratorRole);
}

/** The same database for the API. */
export function toRuntimeUrl(url: string): string {
  return withRole(url, runtimeRole);
}

/** Settings that a test may change; durable is what production has. */
export interface PostgresOptions {
  readonly durable?: boolean;
  /** Most connections at the same time; 120 unless given. */
  readonly connections?: number;
  /** Listens on 127.0.0.1 too. */
  readonly port?: number;
  /** Files of a certificate and its key, for TLS on that port. */
  readonly tls?: { readonly certificate: string; readonly key: string };
}

interface Identity {
  readonly uid?: number;
  readonly gid?: number;
}

/** PostgreSQL refuses to run as root, and needs no other user when we are not. */
function identity(): Identity {
  if (process.getuid?.() !== 0) return {};
  const idOf = (flag: string): number => Number(execFileSync('id', [flag, 'postgres'], { encoding: 'utf8' }));
  return { uid: idOf('-u'), gid: idOf('-g') };
}

function programs(): string {
  const find = (): string | undefined =>
    globSync('/usr/lib/postgresql/*/bin')
      .filter((folder) => existsSync(join(folder, 'postgres')) && existsSync(join(folder, 'initdb')))
      .sort()
      .at(-1);
  const found = find();
  if (found !== undefined) return found;
  if (process.getuid?.() !== 0) throw new Error('PostgreSQL is not installed: apt-get install postgresql-15');
  const environment = { ...process.env, DEBIAN_FRONTEND: 'noninteractive' };
  execFileSync('apt-get', ['update', '-q'], { env: environment, stdio: 'ignore' });
  // Not the package's own cluster, which would go on running after the tests.
  execFileSync(
    'sh',
    [
      '-c',
      'mkdir -p /etc/postgresql-common && test -e /etc/postgresql-common/createcluster.conf || echo create_main_cluster=false > /etc/postgresql-common/createcluster.conf',
    ],
    { stdio: 'ignore' },
  );
  execFileSync('apt-get', ['install', '-q', '-y', '--no-install-recommends', 'postgresql-15'], {
    env: environment,
    stdio: 'ignore',
  });
  const installed = find();
  if (installed === undefined)
    throw new Error('postgresql-15 is installed, but its programs are not in /usr/lib/postgresql/15/bin');
  return installed;
}

/** Over the unix socket, which has the port in its name. */
function formatUrl(folder: string, database: string, port = 5432): string {
  return `postgres://postgres@/${database}?host=${encodeURIComponent(folder)}&port=${port}`;
}

async function ready(folder: string, server: ChildProcess, port?: number): Promise<void> {
  for (;;) {
    if (server.exitCode !== null) throw new Error(`postgres ended with ${server.exitCode}`);
    const client = new Client({ connectionString: formatUrl(folder, 'postgres', port) });
    try {
      await client.connect();
      await client.end();
      return;
    } catch {
      await sleep(50);
    }
  }
}

/** By the number of the parent in /proc/N/stat, which follows the name in parentheses and the state. */
function listChildren(parent: number): number[] {
  return globSync('/proc/[0-9]*/stat').flatMap((file) => {
    try {
      const fields = readFileSync(file, 'utf8').split(') ').at(-1)?.split(' ') ?? [];
      return Number(fields[1]) === parent ? [Number(file.split('/')[2])] : [];
    } catch {
      return [];
    }
  });
}

async function serve(bin: string, folder: string, as: Identity, options: PostgresOptions): Promise<ChildProcess> {
  const settings = [
    `listen_addresses=${options.port === undefined ? '' : '127.0.0.1'}`,
    ...(options.port === undefined ? [] : [`port=${options.port}`]),
    ...(options.tls === undefined
      ? []
      : ['ssl=on', `ssl_cert_file=${options.tls.certificate}`, `ssl_key_file=${options.tls.key}`]),
    `unix_socket_directories=${folder}`,
    `max_connections=${options.connections ?? 120}`,
    'shared_buffers=64MB',
    'log_min_messages=panic',
    ...(options.durable === false ? ['fsync=off', 'synchronous_commit=off'] : []),
  ];
  const server = spawn(
    join(bin, 'postgres'),
    ['-D', join(folder, 'data'), ...settings.flatMap((setting) => ['-c', setting])],
    { ...as, cwd: folder, stdio: ['ignore', 'ignore', 'inherit'] },
  );
  await ready(folder, server, options.port);
  return server;
}

/**
 * Makes an authority and a certificate for a server on loopback, which PostgreSQL may read.
 *
 * @param commonName of the authority
 */
export async function makeCertificate(
  folder: string,
  commonName: string,
): Promise<NonNullable<PostgresOptions['tls']>> {
  await runExclusively(programs);
  const authority = await ensureAuthority(folder, { name: 'ca', commonName });
  const tls = await ensureCertificate(folder, authority, {
    name: 'database',
    commonName: 'database',
    addresses: ['127.0.0.1'],
    usage: ['serverAuth'],
  });
  const { uid, gid } = identity();
  if (uid !== undefined && gid !== undefined)
    for (const file of [folder, tls.certificate, tls.key]) chownSync(file, uid, gid);
  return tls;
}

/**
 * The PostgreSQL that all files of a run share, or one for this process where nothing is shared. A file that ends,
 * freezes or configures its server, or needs it to be durable, starts one of its own.
 */
export async function sharePostgres(): Promise<SharedPostgres> {
  const lease = await openLease();
  if (lease === undefined) return startPostgres({ durable: false });
  const { adminUrl, template } = await lease.request({ want: 'postgres' }, postgresLease);
  lease.end();
  return {
    async createDatabase(name) {
      const own = `${name}-${randomBytes(4).toString('hex')}`;
      const client = new Client({ connectionString: adminUrl });
      await client.connect();
      try {
        const names = [own, template].map((one) => client.escapeIdentifier(one));
        await client.query(`create database ${names.join(' template ')}`);
      } finally {
        await client.end();
      }
      const url = adminUrl.replace('/postgres?', `/${own}?`);
      // Rights and settings of the database itself are not copied.
      await prepareDatabase({ runtimeUrl: toRuntimeUrl(url), migratorUrl: toMigratorUrl(url), adminUrl: url });
      return toRuntimeUrl(url);
    },
    stop: () => Promise.resolve(),
  };
}

/** What pg_dump prints of the schema of a database, without the tables of days. */
export function dumpSchema(url: string): string {
  const options = [
    '--schema-only',
    '--no-owner',
    '--no-privileges',
    '--exclude-table',
    'ledger.usage_2*',
    '--dbname',
    url,
  ];
  const text = execFileSync(join(programs(), 'pg_dump'), options, { encoding: 'utf8', maxBuffer: 16 * 1_048_576 });
  // Newer releases protect psql by a key that is random in each dump.
  return text.replaceAll(/^\\(?:un)?restrict .*$/gm, '');
}

/** Starts PostgreSQL, installing it first where the machine has none. Stop it at the end. */
export async function startPostgres(options: PostgresOptions = {}): Promise<Postgres> {
  const bin = await runExclusively(programs);
  const as = identity();
  const folder = mkdtempSync(join(tmpdir(), 'moorage-postgres-'));
  if (as.uid !== undefined && as.gid !== undefined) chownSync(folder, as.uid, as.gid);
  execFileSync(
    join(bin, 'initdb'),
    ['-D', join(folder, 'data'), '-U', 'postgres', '--auth=trust', '--no-sync', '--encoding=UTF8', '--locale=C'],
    { ...as, cwd: folder, stdio: 'ignore' },
  );
  let server = await serve(bin, folder, as, options);
  const end = async (signal: NodeJS.Signals): Promise<void> => {
    if (server.exitCode !== null || server.signalCode !== null) return;
    const ended = once(server, 'exit');
    server.kill(signal);
    await ended;
  };
  // Its own processes only: each backend is a child of the one that was started here, which may start another while they are
  // listed.
  const signal = (name: 'SIGSTOP' | 'SIGCONT'): void => {
    const { pid } = server;
    if (pid === undefined) return;
    const signaled = new Set<number>();
    for (let left = [pid]; left.length > 0; left = listChildren(pid).filter((id) => !signaled.has(id)))
      for (const id of left) {
        signaled.add(id);
        try {
          process.kill(id, name);
        } catch (error) {
          // It has ended since it was listed.
          if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
        }
      }
  };
  const atExit = (): void => void server.kill('SIGQUIT');
  process.once('exit', atExit);
  const createEmptyDatabase = async (name: string): Promise<string> => {
    const client = new Client({ connectionString: formatUrl(folder, 'postgres', options.port) });
    await client.connect();
    await client.query(`create database ${client.escapeIdentifier(name)}`);
    await client.end();
    return formatUrl(folder, name, options.port);
  };
  return {
    adminUrl: formatUrl(folder, 'postgres', options.port),
    createEmptyDatabase,
    createDatabase: async (name) => {
      const adminUrl = await createEmptyDatabase(name);
      const runtimeUrl = toRuntimeUrl(adminUrl);
      await prepareDatabase({ runtimeUrl, migratorUrl: toMigratorUrl(adminUrl), adminUrl });
      return runtimeUrl;
    },
    crash: async () => {
      await end('SIGQUIT');
      server = await serve(bin, folder, as, options);
    },
    end: () => end('SIGINT'),
    start: async () => {
      server = await serve(bin, folder, as, options);
    },
    freeze: () => {
      signal('SIGSTOP');
    },
    thaw: () => {
      signal('SIGCONT');
    },
    stop: async () => {
      process.off('exit', atExit);
      await end('SIGINT');
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
