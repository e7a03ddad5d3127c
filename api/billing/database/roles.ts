// The database roles: a migrator that owns the schema, and the runtime role of the API, which can read and add but never
// change the schema or what is booked, signed or published.
import { escapeIdentifier, escapeLiteral } from 'pg';
import { z } from 'zod';
import type { Queryable, Statement, Transaction } from './database.ts';

export interface RoleLogin {
  readonly name: string;
  readonly password: string | undefined;
}

/**
 * Creates the two roles or sets their passwords, and gives the migrator every object that another role owns in this
 * database, such as one that an earlier version created as a superuser. Requires a superuser. Running it again changes
 * nothing else.
 */
export async function createRoles(
  transaction: Transaction,
  roles: { readonly migrator: RoleLogin; readonly runtime: RoleLogin },
): Promise<void> {
  // All databases of a server share its roles. If two are set up at the same time, PostgreSQL refuses one of two changes of a role.
  await transaction.script('lock table pg_catalog.pg_authid in share row exclusive mode');
  // A change of owner waits for every reader of a table, and all others wait behind it: an audit may read for minutes.
  await transaction.script("set local lock_timeout = '2s'");
  for (const role of [roles.migrator, roles.runtime]) await transaction.script(createRole(role));
  await transaction.script(setUpDatabase(roles.migrator.name, roles.runtime.name));
}

function createRole({ name, password }: RoleLogin): string {
  const role = escapeIdentifier(name);
  return `
    do $$ begin
      if not exists (select from pg_roles where rolname = ${escapeLiteral(name)}) then create role ${role}; end if;
    end $$;
    alter role ${role} with login nosuperuser nocreatedb nocreaterole noreplication nobypassrls
      ${password === undefined ? '' : `password ${escapeLiteral(password)}`};`;
}

function setUpDatabase(migrator: string, runtime: string): string {
  return `
    do $$
    declare
      v_migrator constant name := ${escapeLiteral(migrator)};
      v_runtime constant name := ${escapeLiteral(runtime)};
      r record;
    begin
      execute format('revoke create, temporary on database %I from public', current_database());
      execute format('grant connect, create, temporary on database %I to %I', current_database(), v_migrator);
      execute format('grant connect on database %I to %I', current_database(), v_runtime);
      revoke create on schema public from public;
      execute format('grant usage, create on schema public to %I', v_migrator);
      for r in
        with ours as (
          select oid, nspname, nspowner from pg_namespace where nspname !~ '^pg_' and nspname <> 'information_schema'
        ), of_extension as (
          select classid, objid from pg_depend where deptype = 'e'
        )
        select format('schema %I', nspname) as object from ours
          where nspname <> 'public' and nspowner <> v_migrator::regrole and (2615, oid) not in (select * from of_extension)
        union all
        -- A sequence of a column, like an index, has the owner of its table.
        select format('%s %s', case relkind when 'v' then 'view' when 'm' then 'materialized view' when 'S' then 'sequence' else 'table' end, c.oid::regclass)
          from pg_class c join ours n on n.oid = relnamespace
          where relkind in ('r', 'p', 'v', 'm', 'S') and relowner <> v_migrator::regrole
            and (1259, c.oid) not in (select * from of_extension)
            and not exists (select from pg_depend d where d.classid = 1259 and d.objid = c.oid and relkind = 'S' and d.deptype in ('a', 'i'))
        union all
        select format('routine %s', p.oid::regprocedure) from pg_proc p join ours n on n.oid = pronamespace
          where proowner <> v_migrator::regrole and (1255, p.oid) not in (select * from of_extension)
        union all
        select format('type %s', t.oid::regtype) from pg_type t join ours n on n.oid = typnamespace left join pg_class c on c.oid = typrelid
          where typowner <> v_migrator::regrole and (typtype in ('e', 'd') or c.relkind = 'c') and (1247, t.oid) not in (select * from of_extension)
      loop
        execute format('alter %s owner to %I', r.object, v_migrator);
      end loop;
    end $$;`;
}

/**
 * Tables in which the runtime role adds rows and changes none: only the operator lifts a stop after an overrun. A table with a trigger that calls `refuse_change` is one
 * of them without being listed.
 */
const insertOnly = ['ledger.overrun', 'bench.visit'];
/** Rows are locked, which requires the right to update some column. This one is always generated. */
const lockedColumns: Readonly<Record<string, string>> = { 'ledger.account': 'id' };
const readOnly = ['moorage_migration'];

/**
 * Gives the runtime role its rights on every object of the schema, and takes all others from it and from PUBLIC. Run it
 * as the migrator after the migrations. @throws Error when either role is not fit for its part
 */
export async function grantRuntimeRights(transaction: Transaction, runtimeRole: string): Promise<void> {
  const [found] = await transaction.query(rolesFound, [runtimeRole]);
  if (found === undefined)
    throw new Error(
      `the role ${runtimeRole} of DATABASE_URL does not exist: create it with LOGIN and a password, and start again`,
    );
  if (found.can_own)
    throw new Error(
      `the role ${runtimeRole} of DATABASE_URL is a superuser or a member of ${found.owner}, so nothing could be kept from it: give the API another role`,
    );
  const names = (list: readonly string[]): string =>
    `array[${list.map((name) => escapeLiteral(name)).join(', ')}]::regclass[]`;
  await transaction.script(`
    do $$
    declare
      v_runtime constant name := ${escapeLiteral(runtimeRole)};
      v_owner constant oid := (select nspowner from pg_namespace where nspname = 'ledger');
      r record;
    begin
      for r in select nspname from pg_namespace where nspowner = v_owner and nspname !~ '^pg_' and nspname not in ('information_schema', 'public') loop
        execute format('revoke all on schema %1$I from public, %2$I', r.nspname, v_runtime);
        execute format('grant usage on schema %1$I to %2$I', r.nspname, v_runtime);
        execute format('revoke execute on all routines in schema %1$I from public', r.nspname);
        execute format('grant execute on all routines in schema %1$I to %2$I', r.nspname, v_runtime);
      end loop;
      for r in
        select c.oid::regclass as name, case
            when relkind = 'v' or c.oid = any (${names(readOnly)}) then 'select'
            when c.oid = any (${names([...insertOnly, ...Object.keys(lockedColumns)])}) or exists (
              select from pg_trigger t join pg_proc p on p.oid = t.tgfoid where t.tgrelid = c.oid and p.proname = 'refuse_change') then 'select, insert'
            else 'select, insert, update, delete' end as rights
        from pg_class c join pg_namespace n on n.oid = relnamespace
        -- Rows of a partition are reached through its table, so it has no rights of its own.
        where relkind in ('r', 'p', 'v') and not relispartition and relowner = v_owner and nspname !~ '^pg_' and nspname <> 'information_schema'
      loop
        execute format('revoke all on table %s from public, %I', r.name, v_runtime);
        execute format('grant %s on table %s to %I', r.rights, r.name, v_runtime);
      end loop;
    end $$;
    ${Object.entries(lockedColumns)
      .map(([table, column]) => `grant update (${column}) on ${table} to ${escapeIdentifier(runtimeRole)};`)
      .join('\n')}`);
}

const rolesFound: Statement<{ owner: string; can_own: boolean }> = {
  name: 'roles-found',
  text: `select nspowner::regrole::text as owner, pg_has_role(r.oid, nspowner, 'member') as can_own
    from pg_roles r, pg_namespace where rolname = $1 and nspname = 'ledger'`,
  row: z.object({ owner: z.string(), can_own: z.boolean() }),
};

const ownership: Statement<{ role: string; owns: boolean }> = {
  name: 'roles-ownership',
  text: `select current_user::text as role, pg_has_role(relowner, 'member') as owns from pg_class where oid = 'ledger.entry'::regclass`,
  row: z.object({ role: z.string(), owns: z.boolean() }),
};

/** The role of this connection where it owns the ledger's tables, and so could disable what protects them. */
export async function findOwningRole(database: Queryable): Promise<string | undefined> {
  const [found] = await database.query(ownership, []);
  return found?.owns === true ? found.role : undefined;
}
