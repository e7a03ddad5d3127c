// Declares the databases that a Ruby app needs and the folder that must persist, from its gems and config/database.yml.
import { askedSecret } from '../../../../crds/values.ts';
import type { Tree } from '../../tree.ts';
import { type Bundle, readBundle } from '../ruby/bundle.ts';
import { findDatabase, type Database, type DatabaseField } from '../ruby/database.ts';
import { findSecretNames, storage, hasLocalUploads } from '../ruby/rails.ts';
import { findStart } from '../ruby/start.ts';
import type { Declaration, DeclaredVariable, DeclaredVolume } from './declaration.ts';

type Service = NonNullable<Declaration['services']>[number];

/** The names that Heroku add-ons get too. */
const servers: Readonly<Record<'postgresql' | 'mysql2' | 'trilogy', Service>> = {
  postgresql: { name: 'db', type: 'postgres' },
  mysql2: { name: 'mysql', type: 'mysql' },
  trilogy: { name: 'mysql', type: 'mysql' },
};
const redis: Service = { name: 'redis', type: 'redis' };
const mongo: Service = { name: 'mongo', type: 'mongo' };
/** Variables that a service sets by itself. */
const usual = /^(?:DATABASE_URL|(?:POSTGRES|MYSQL)_\w{1,30}|PG[A-Z]{4,10})$/;

export function readGemfile(tree: Tree): Declaration | undefined {
  if (!tree.has('Gemfile')) return undefined;
  const bundle = readBundle(tree);
  const start = findStart(tree, bundle);
  if (start === undefined) return undefined;
  const database = findDatabase(tree, bundle);
  const server = findServer(database);
  return {
    file: database?.file ?? 'Gemfile',
    services: [...(server === undefined ? [] : [server]), ...listStores(bundle)],
    env: [
      ...(database === undefined || server === undefined ? [] : listVariables(database, server.name)),
      ...findSecretNames(tree).map((name) => ({ name, value: askedSecret })),
    ],
    volumes: start.isRails ? listVolumes(tree, database) : [],
  };
}

function listStores(bundle: Bundle): Service[] {
  return [
    ...(bundle.has('redis', 'sidekiq', 'resque', 'kredis') ? [redis] : []),
    ...(bundle.has('mongoid', 'mongo') ? [mongo] : []),
  ];
}

function findServer(database: Database | undefined): Service | undefined {
  return database === undefined || database.adapter === 'sqlite3' ? undefined : servers[database.adapter];
}

function listVariables(database: Database, service: string): DeclaredVariable[] {
  const formatReference = (field: DatabaseField): string => `\${{services.${service}.${field}}}`;
  const formatAddress = (name: string): string =>
    `${database.adapter}://${formatReference('user')}:${formatReference('password')}@${formatReference('host')}:${formatReference('port')}/${name}`;
  const url = formatAddress(formatReference('database'));
  return [
    // Rails maps the service's own URL scheme to a different gem.
    ...(database.adapter === 'postgresql' ? [] : [{ name: 'DATABASE_URL', value: url }]),
    ...database.variables
      .filter(({ name }) => !usual.test(name))
      .map(({ name, field }) => ({ name, value: field === 'url' ? url : formatReference(field) })),
    ...database.others.map((name) => ({
      name: `${name.toUpperCase()}_DATABASE_URL`,
      value: formatAddress(`app_${name}`),
    })),
  ];
}

/** An author's Dockerfile may use a different working folder than a plan. */
function listVolumes(tree: Tree, database: Database | undefined): DeclaredVolume[] {
  if (database?.adapter !== 'sqlite3' && !hasLocalUploads(tree)) return [];
  const folder = [
    ...(tree.readFile('Dockerfile', 64 * 1024) ?? '').matchAll(/^WORKDIR\s{1,9}["']?(\/[\w./-]{1,100})/gim),
  ].at(-1)?.[1];
  return [{ name: 'storage', path: folder === undefined ? storage : `${folder.replace(/\/+$/, '')}/storage` }];
}
