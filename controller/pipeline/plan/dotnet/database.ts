// Detects where a .NET app stores its data, from its packages and settings: a database server, or an SQLite file on a
// volume.
import { posix } from 'node:path';
import { readField, readKeys, parseJson, readText } from '../../manifest.ts';
import type { Tree } from '../../tree.ts';
import type { Declaration, DeclaredVariable } from '../platforms/declaration.ts';
import { chooseProject } from './choose.ts';
import { isDotnet, readProjects, type DotnetProject } from './project.ts';

const databases: readonly (readonly [RegExp, string])[] = [
  [/^(?:Npgsql|Marten\b)/i, 'PostgreSQL'],
  [/\.SqlServer$|^Microsoft\.Data\.SqlClient$|^System\.Data\.SqlClient$/i, 'SQL Server'],
  [/^(?:Pomelo\.EntityFrameworkCore\.MySql|MySql)/i, 'MySQL'],
  [/^MongoDB\./i, 'MongoDB'],
  [/Sqlite/i, 'a file of SQLite'],
];

/** Names the database. If several are referenced, the first: the app could use any of them. */
export function findDatabaseName(project: DotnetProject, projects: readonly DotnetProject[]): string | undefined {
  const packages = listPackages(project, projects);
  const databaseNames = databases
    .filter(([pattern]) => packages.some((each) => pattern.test(each)))
    .map(([, name]) => name);
  return databaseNames.length === 0 ? undefined : databaseNames.join(' or ');
}

/** Lists the packages of the project and of the projects that it references. */
function listPackages(project: DotnetProject, projects: readonly DotnetProject[]): string[] {
  const parts = new Set([project]);
  for (const part of parts) for (const each of projects) if (part.references.includes(each.path)) parts.add(each);
  return [...parts].flatMap(({ packages }) => [...packages]);
}

/** A connection string that names a server or a file, with the name of its setting: ConnectionStrings__Default. */
interface Connection {
  readonly variable: string;
  readonly value: string;
}

function readConnections(tree: Tree, { folder }: DotnetProject): Connection[] {
  const settings = ['appsettings.json', 'appsettings.Production.json'].map((name) =>
    parseJson(removeComments(tree.readFile(posix.join(folder, name), 64 * 1024))),
  );
  const names = new Set(settings.flatMap((each) => readKeys(each, 'ConnectionStrings')));
  return [...names].flatMap((name) => {
    const value = settings
      .map((each) => readText(readField(each, 'ConnectionStrings'), name))
      .findLast((each) => each !== undefined);
    return value === undefined ? [] : [{ variable: `ConnectionStrings__${name}`, value }];
  });
}

/** .NET settings files may have comment lines. */
function removeComments(settings: string | undefined): string | undefined {
  return settings?.replace(/^\s{0,40}\/\/.*$/gm, '');
}

const ofPostgres = [
  'Host=${{services.db.host}}',
  'Port=${{services.db.port}}',
  'Database=${{services.db.database}}',
  'Username=${{services.db.user}}',
  'Password=${{services.db.password}}',
].join(';');
const sqlite =
  /^\s{0,9}(?:Data ?Source|Filename)\s{0,9}=\s{0,9}([^;=]{1,200}\.(?:db3?|sqlite3?))\s{0,9}(;[^\n]{0,200})?$/i;

/** Declares a database for Npgsql connection strings, and a volume for SQLite ones whose file the app creates. */
export function declareDotnetDatabase(tree: Tree): Declaration | undefined {
  const projects = isDotnet(tree) ? readProjects(tree) : [];
  const chosen = projects.length === 0 ? undefined : chooseProject(tree, projects);
  if (chosen === undefined || 'problem' in chosen) return undefined;
  const { project } = chosen;
  const file = posix.join(project.folder, 'appsettings.json');
  const connections = readConnections(tree, project);
  const packages = listPackages(project, projects);
  const usesPostgres = packages.some((each) => /^Npgsql|^Marten\b/i.test(each));
  const postgres = connections.filter(
    ({ value }) =>
      usesPostgres &&
      /^\s{0,9}(?:Host|Server|User ?(?:Id|name))\s{0,9}=/i.test(value) &&
      !/Trusted_Connection|Initial Catalog|localdb/i.test(value),
  );
  if (postgres.length > 0)
    return {
      file,
      services: [{ name: 'db', type: 'postgres' }],
      env: postgres.map(({ variable }): DeclaredVariable => ({ name: variable, value: ofPostgres })),
    };
  const files = connections.flatMap(({ variable, value }): DeclaredVariable[] => {
    const [, path, rest = ''] = sqlite.exec(value) ?? [];
    const isOwn = path !== undefined && !tree.has(posix.join(project.folder, path.replaceAll('\\', '/')));
    return isOwn
      ? [{ name: variable, value: `Data Source=/data/${posix.basename(path.replaceAll('\\', '/'))}${rest}` }]
      : [];
  });
  return files.length === 0 ? undefined : { file, env: files, volumes: [{ name: 'data', path: '/data' }] };
}
