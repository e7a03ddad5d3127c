// Writes schema.sql, the current schema in one file for readers: `npm run generate`. The migrations remain its only source.
import { writeFile } from 'node:fs/promises';
import { pathToFileURL } from 'node:url';
import { z } from 'zod';
import { readCommandLine } from '../../../lib/command-line.ts';
import { type Database, migrationsFolder, openLedgerDatabase, type Statement } from './database.ts';
import { readMigrations, type Migration } from './migrate.ts';

export const schemaFile = new URL('schema.sql', import.meta.url);

const header = `-- The current database schema, generated from the migrations by \`npm run generate\`. To change it, add a migration.
-- Definitions are as PostgreSQL prints them. Comments above them come from the migrations, which PostgreSQL does not keep.
-- Not included: rows that migrations insert, the table of each day (ledger.make_day) and the rights of roles (roles.ts).
`;

/** What a schema consists of, in the order of the file. Indexes and triggers follow their table. */
const kinds = ['type', 'table', 'view', 'function'] as const;

export interface SchemaObject {
  readonly kind: 'schema' | (typeof kinds)[number] | 'index' | 'trigger';
  readonly schema: string;
  /** With its schema. A function's ends with "()"; an index or a trigger has the name of its table before its own. */
  readonly name: string;
  readonly sql: string;
}

/**
 * Renders the objects of a migrated database: by schema its types, tables with their indexes and triggers, views and
 * functions, each in the order of creation, so that new objects are added at the end.
 */
export async function renderSchema(database: Database, migrations: readonly Migration[]): Promise<string> {
  const comments = readComments(migrations);
  const objects = await readObjects(database, comments);
  const parts = objects
    .filter(({ kind }) => kind === 'schema')
    .flatMap(({ schema, sql }) => {
      const members = objects.filter((object) => object.schema === schema);
      const sections = kinds.flatMap((kind) => members.filter((object) => object.kind === kind));
      return [
        `-- ${'='.repeat(20)} ${schema} ${'='.repeat(20)}\n\n${sql}`,
        ...sections.map((object) =>
          [object, ...members.filter(({ name }) => name.startsWith(`${object.name} `))]
            .map(({ name, sql: definition }) => `${formatComment(comments.get(name))}${definition}`)
            .join('\n'),
        ),
      ];
    });
  return `${[header.trimEnd(), ...parts].join('\n\n')}\n`;
}

/**
 * Reads every object of a migrated database, by kind and in the order of creation. They can be created in this order where
 * `check_function_bodies` is off.
 */
export async function readObjects(
  database: Database,
  comments: ReadonlyMap<string, readonly string[]> = new Map(),
): Promise<SchemaObject[]> {
  return database.transaction(async (transaction) => {
    // Without a search path PostgreSQL prints each name with its schema.
    await transaction.script('set local search_path = pg_catalog');
    const columns = await transaction.query(columnLines, []);
    const objects = await transaction.query(objectDefinitions, []);
    return objects.map((object) => {
      if (object.kind !== 'table') return object;
      const lines = columns
        .filter(({ table }) => table === object.name)
        .map(({ column, line }, index, all) => {
          const comma = index < all.length - 1 ? ',' : '';
          return `${formatComment(comments.get(`${object.name}.${column}`), '  ')}  ${line}${comma}`;
        });
      return { ...object, sql: object.sql.replace('()', () => `(\n${lines.join('\n')}\n)`) };
    });
  });
}

function formatComment(lines: readonly string[] = [], indent = ''): string {
  return lines.map((line) => `${indent}${line}\n`).join('');
}

/**
 * Reads the comments above definitions in the migrations, by the name of the object, or of the table and the column. A
 * definition that replaces another one without a comment keeps that of the other; one that begins with "As before"
 * follows it.
 */
function readComments(migrations: readonly Migration[]): Map<string, string[]> {
  const comments = new Map<string, string[]>();
  for (const { sql } of migrations) {
    let block: string[] = [];
    let table: string | undefined;
    for (const line of sql.replaceAll(/\$\$[^]*?\$\$/g, '').split('\n')) {
      if (line.trimStart().startsWith('--')) {
        block.push(line.trim());
        continue;
      }
      if (!line.startsWith(' ')) table = /^create table (?:if not exists )?([\w.]+) \($/.exec(line)?.[1];
      const name = readColumnName(table, line) ?? readObjectName(line);
      if (name !== undefined && block.length > 0) {
        const earlier = block[0]?.startsWith('-- As before') === true ? comments.get(name) : undefined;
        comments.set(name, [...(earlier ?? []), ...block]);
      }
      block = [];
    }
  }
  return comments;
}

/** The name that the comments have for the column or the constraint that a line of a `create table` begins to define. */
function readColumnName(table: string | undefined, line: string): string | undefined {
  const name = /^ {2}(?:constraint )?(?!check|unique|foreign)(\w+) /.exec(line)?.[1];
  if (table === undefined || name === undefined) return undefined;
  return formatName(table, name === 'primary' ? `${table.replace(/^.*\./, '')}_pkey` : name);
}

/** The same for a line outside a `create table`. */
function readObjectName(line: string): string | undefined {
  const [, kind, object] =
    /^create (?:or replace )?(function|type|view|table) (?:if not exists )?([\w.]+)/.exec(line) ?? [];
  if (object !== undefined) return `${formatName(object)}${kind === 'function' ? '()' : ''}`;
  const [, altered, part] = /^alter table ([\w.]+) add (?:column|constraint) (\w+)/.exec(line) ?? [];
  if (altered !== undefined) return formatName(altered, part);
  const [, name = '', table] =
    /^create (?:unique index|index|constraint trigger|trigger) (?:if not exists )?(\w+) .*?\bon ([\w.]+)/.exec(line) ??
    [];
  return table === undefined ? undefined : `${formatName(table)} ${name}`;
}

function formatName(object: string, part?: string): string {
  const qualified = object.includes('.') ? object : `public.${object}`;
  return part === undefined ? qualified : `${qualified}.${part}`;
}

/** Leaves out PostgreSQL's own objects, and the tables of days, which come and go. */
const namespaces = `select oid, nspname from pg_namespace where nspname !~ '^pg_' and nspname <> 'information_schema'`;
const dayTable = `'^usage_\\d{8}$'`;

/**
 * Columns of tables, then constraints. In PostgreSQL 18 and later, NOT NULL is a constraint too. NOT VALID is about the rows that a
 * database had before, not about its schema.
 */
const columnLines: Statement<{ table: string; column: string; line: string }> = {
  name: 'schema-columns',
  text: `select c.oid::regclass::text as table, part.column, part.line
    from pg_class c cross join lateral (
      select 1 as rank, attnum::bigint as position, attname as column, concat_ws(' ', quote_ident(attname), format_type(atttypid, atttypmod),
        case when attcollation <> 0 and attcollation <> (select typcollation from pg_type where oid = atttypid)
          then 'COLLATE ' || attcollation::regcollation end,
        case when attidentity = 'a' then 'GENERATED ALWAYS AS IDENTITY' when attidentity = 'd' then 'GENERATED BY DEFAULT AS IDENTITY' end,
        case when attgenerated = '' then 'DEFAULT ' || pg_get_expr(adbin, adrelid) else 'GENERATED ALWAYS AS (' || pg_get_expr(adbin, adrelid) || ') STORED' end,
        case when attnotnull then 'NOT NULL' end) as line
        from pg_attribute a left join pg_attrdef on adrelid = attrelid and adnum = attnum
        where attrelid = c.oid and attnum > 0 and not attisdropped
      union all
      select 2, oid, conname, format('CONSTRAINT %I %s', conname, replace(pg_get_constraintdef(oid, true), ' NOT VALID', ''))
        from pg_constraint where conrelid = c.oid and contype not in ('n', 't')
    ) part
    where relkind in ('r', 'p') and not relispartition and relnamespace in (select oid from (${namespaces}) n)
    order by c.oid, part.rank, part.position`,
  row: z.object({ table: z.string(), column: z.string(), line: z.string() }),
};

const objectDefinitions: Statement<SchemaObject> = {
  name: 'schema-objects',
  text: `with namespace as (
      ${namespaces}
    ), relation as (
      select c.*, nspname, c.oid::regclass::text as name from pg_class c join namespace n on n.oid = relnamespace where relname !~ ${dayTable}
    ), object as (
      select 1 as rank, oid, 'schema' as kind, nspname as schema, nspname::text as name,
        case when nspname = 'public' then '-- Exists in every database.' else format('CREATE SCHEMA %I;', nspname) end as sql
        from namespace
      union all
      select 2, oid, 'type', nspname, name, format(E'CREATE TYPE %s AS (\\n  %s\\n);', name, (
        select string_agg(format('%I %s', attname, format_type(atttypid, atttypmod)), E',\\n  ' order by attnum)
          from pg_attribute where attrelid = relation.oid and attnum > 0 and not attisdropped))
        from relation where relkind = 'c'
      union all
      select 3, oid, 'table', nspname, name, concat('CREATE TABLE ', name, coalesce((
          select ' PARTITION OF ' || inhparent::regclass || ' ' || pg_get_expr(relpartbound, relation.oid) from pg_inherits where inhrelid = relation.oid), ' ()'),
          case when relkind = 'p' then ' PARTITION BY ' || pg_get_partkeydef(oid) end, ' WITH (' || array_to_string(reloptions, ', ') || ')', ';',
          (select string_agg(format(E'\\nALTER TABLE %s ALTER COLUMN %I SET STORAGE EXTERNAL;', name, attname), '' order by attnum)
            from pg_attribute join pg_type t on t.oid = atttypid where attrelid = relation.oid and attstorage = 'e' and typstorage <> 'e'))
        from relation where relkind in ('r', 'p')
      union all
      select 6, i.oid, 'index', t.nspname, t.name || ' ' || i.relname, replace(pg_get_indexdef(i.oid), ' ON ONLY ', ' ON ') || ';'
        from relation i join pg_index on indexrelid = i.oid join relation t on t.oid = indrelid
        where not i.relispartition and not exists (select from pg_constraint where conindid = i.oid and contype in ('p', 'u', 'x'))
      union all
      select 7, t.oid, 'trigger', nspname, name || ' ' || tgname, pg_get_triggerdef(t.oid, true) || ';'
        from pg_trigger t join relation on relation.oid = tgrelid where not tgisinternal and tgparentid = 0
      union all
      select 5, oid, 'view', nspname, name, format(E'CREATE VIEW %s AS\\n%s', name, pg_get_viewdef(oid, true)) from relation where relkind = 'v'
      union all
      select 4, p.oid, 'function', nspname, p.oid::regproc || '()', rtrim(pg_get_functiondef(p.oid), E'\\n') || ';' from pg_proc p join namespace n on n.oid = pronamespace
    ) select kind, schema, name, sql from object order by rank, oid`,
  row: z.object({
    kind: z.enum(['schema', 'type', 'table', 'view', 'function', 'index', 'trigger']),
    schema: z.string(),
    name: z.string(),
    sql: z.string(),
  }),
};

if (process.argv[1] !== undefined && import.meta.url === pathToFileURL(process.argv[1]).href) {
  readCommandLine({ usage: 'usage: npm run generate', options: {} }, () => undefined);
  const database = await openLedgerDatabase('pglite:');
  await writeFile(schemaFile, await renderSchema(database, readMigrations(migrationsFolder)));
  await database.close();
}
