// Gives variables of sample files, whose value is the address of a database on the developer's machine or is left to fill in, the
// address of the service that the app has here.
import { posix } from 'node:path';
import type { ServiceType } from '../../../../crds/backing-services.ts';
import type { Finding } from '../../../../crds/hosted-app.ts';
import type { Tree } from '../../tree.ts';
import { parseEnv } from './compose/read.ts';
import { createWarning, type Declaration, type DeclaredVariable } from './declaration.ts';

const samples = ['.env.example', '.env.sample', '.env.template', '.env.dist', 'env.example', '.env'];

/** What the app has, and what is set already. */
export interface DatabaseOptions {
  /** Folders of the app, relative to the tree. */
  readonly folders: readonly string[];
  readonly services: readonly { readonly name: string; readonly type: ServiceType }[];
  readonly isSet: (variable: string) => boolean;
}

interface Sample extends DeclaredVariable {
  readonly file: string;
}

/** Links the variables that lead to a database. A warning names each one for which the app has no service. */
export function linkDatabases(tree: Tree, { folders, services, isSet }: DatabaseOptions): Declaration {
  const variables = [...new Set(folders)]
    .flatMap((folder) => readSamples(tree, folder))
    .filter(({ name }) => !isSet(name));
  const linked = new Map<string, DeclaredVariable>();
  const missing = new Map<string, Finding>();
  for (const variable of variables) {
    const types = findTypes(variable);
    const [service, ...more] = services.filter(({ type }) => types.includes(type));
    if (service !== undefined && more.length === 0)
      linked.set(variable.name, { name: variable.name, value: formatAddress(variable.value, service) });
    else if (service === undefined && variable.value !== '' && types[0] !== undefined)
      missing.set(variable.name, reportMissing(variable, types[0]));
  }
  return {
    file: variables.find(({ name }) => linked.has(name))?.file ?? '',
    env: [...linked.values()],
    findings: [...missing].filter(([name]) => !linked.has(name)).map(([, finding]) => finding),
  };
}

function readSamples(tree: Tree, folder: string): Sample[] {
  return samples
    .map((name) => posix.join(folder, name))
    .flatMap((file) =>
      [...parseEnv(tree.readFile(file, 64 * 1024) ?? '')].map(([name, value]) => ({ name, value, file })),
    );
}

const local = /^([a-z]+)(?:\+\w+)?:\/\/(?:[^@/\s]*@)?(?:localhost|127\.0\.0\.1)(?=[:/?]|$)/;
const schemes: Readonly<Record<string, ServiceType>> = {
  ...{ postgres: 'postgres', postgresql: 'postgres', mysql: 'mysql', mariadb: 'mysql' },
  ...{ mongodb: 'mongo', redis: 'redis', rediss: 'redis' },
};
const addressName = /^(?:(\w+)_)?(?:URI|URL|DSN|CONNECTION_STRING)$/;
const names: readonly (readonly [RegExp, readonly ServiceType[]])[] = [
  [/^MONGO(?:DB|OSE)?(?:_DB)?$/, ['mongo']],
  [/^(?:POSTGRES(?:QL)?|PG)(?:_DB|_DATABASE)?$/, ['postgres']],
  [/^(?:MYSQL|MARIADB)(?:_DB|_DATABASE)?$/, ['mysql']],
  [/^REDIS$/, ['redis']],
  [/^(?:DATABASE|DB)$/, ['postgres', 'mysql', 'mongo']],
];

/** Lists the types of service that a variable can lead to; none if it leads to no database, or to one elsewhere. */
function findTypes({ name, value }: DeclaredVariable): readonly ServiceType[] {
  const type = schemes[local.exec(value)?.[1] ?? ''];
  if (type !== undefined) return [type];
  const prefix = addressName.exec(name)?.[1] ?? '';
  return value === '' ? (names.find(([pattern]) => pattern.test(prefix))?.[1] ?? []) : [];
}

/** Drivers such as asyncpg are named in the scheme, and options come after the name of the database. */
function formatAddress(value: string, { name, type }: { readonly name: string; readonly type: ServiceType }): string {
  const scheme = /^[a-z]+\+\w+(?=:\/\/)/.exec(value)?.[0];
  const options = /\?\S+$/.exec(value)?.[0] ?? '';
  const isPlain = (scheme === undefined && options === '') || type === 'redis' || type === 'mongo';
  const field = (part: string): string => `\${{services.${name}.${part}}}`;
  return isPlain
    ? field('url')
    : `${scheme ?? (type === 'mysql' ? 'mysql' : 'postgresql')}://${field('user')}:${field('password')}@${field('host')}:${field('port')}/${field('database')}${options}`;
}

function reportMissing({ name, file }: Sample, type: ServiceType): Finding {
  return createWarning(
    'platform/no-database',
    file,
    `${name} is not set: its value names a database on the developer's machine, and the app has no service of the type ${type}.`,
    `If the app needs it, add services: [{name: db, type: ${type}}] to moorage.yaml. Otherwise set ${name} there (run.env), or leave it unset.`,
  );
}
