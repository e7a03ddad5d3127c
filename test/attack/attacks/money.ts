// Attacks on the ledger: money that nobody paid.
import { setTimeout as delay } from 'node:timers/promises';
import { z } from 'zod';
import { judged, notTried, type Attack } from '../attack.ts';
import type { Victim } from '../victim.ts';

const query =
  "select count(*) || ' entries of ' || coalesce(sum(e.amount), 0) from ledger.entry e join ledger.account a on a.id = e.account_id where a.kind = 'author'";

async function shares(victim: Victim): Promise<string> {
  const command = `psql --no-psqlrc -At -U "$POSTGRES_USER" -d "$POSTGRES_DB" -c "${query}"`;
  return (
    await victim.kubectl(['-n', victim.systemNamespace, 'exec', 'moorage-postgres-0', '--', 'sh', '-c', command])
  ).trim();
}

const calls = 5;

const accrual: Attack = {
  name: 'an author calls their own app on the free quota and accrues an unpaid share',
  needs: 'kubectl',
  run: async (victim) => {
    const before = await shares(victim).catch(() => undefined);
    if (before === undefined) return notTried('The ledger is not in the PostgreSQL of the release.');
    const app = (await victim.liveApp()).metadata.name;
    const answers = await Promise.all(Array.from({ length: calls }, () => victim.ask(`/api/projects/${app}/call/`)));
    const passed = answers.filter(({ status }) => status === 200).length;
    if (passed === 0) return notTried(`Calls of ${app} are answered ${answers[0]?.status ?? 'by nothing'}.`);
    await delay(2_000);
    const after = await shares(victim);
    return judged(
      before === after,
      `${passed} calls without a key; what authors are owed: ${before} before, ${after} after.`,
    );
  },
};

/** What routers bill in addition to the reserved tokens, or what makes them bill another price. */
const dearMembers: readonly Readonly<Record<string, unknown>>[] = [
  { tools: [{ type: 'openrouter:web_search' }] },
  { tools: [{ type: 'mcp', server_url: 'litellm_proxy' }] },
  { tools: [{ type: 'function', function: { name: 'a', cache_control: { type: 'ephemeral' } } }] },
  { tool_choice: { type: 'web_search_preview' } },
  { plugins: [{ id: 'web' }] },
  { models: ['zeta-fable-5'] },
  { provider: { order: ['any'] } },
  { web_search_options: {} },
  { service_tier: 'priority' },
  { reasoning: { effort: 'low', max_tokens: 1_000_000 } },
  { cache_control: { type: 'ephemeral' } },
  { n: 8 },
  { max_tokens: 1_000_000_000 },
  { messages: [{ role: 'user', content: 'Hello', cache_control: { type: 'ephemeral' } }] },
  { messages: [{ role: 'user', content: [{ type: 'file', file: { file_data: 'data:,' } }] }] },
];
const times = 4;

const dear: Attack = {
  name: 'tools that the model router runs, and other separately priced fields, are forwarded with the platform key',
  needs: 'address',
  run: async (victim) => {
    const base = { model: 'alpha-v4-flash', max_tokens: 10, messages: [{ role: 'user', content: 'Hello' }] };
    const bodies = Array.from({ length: times }, () => dearMembers).flat();
    const answers = await Promise.all(
      bodies.map(async (members) => ({
        members,
        ...(await victim.ask('/v1/chat/completions', { method: 'POST', json: { ...base, ...members } })),
      })),
    );
    const taken = answers.filter(({ status, body }) => status !== 400 || !body.includes('"errors"'));
    return judged(
      taken.length === 0,
      taken.length === 0
        ? `${answers.length} calls at the same time, each with one of ${dearMembers.length} such members, were refused by its name.`
        : `Not refused by name: ${taken.map(({ members, status }) => `${JSON.stringify(members)} (${status})`).join(', ')}.`,
    );
  },
};

/** What code in the API could do with its connection to the database: printed as JSON. All of it is rolled back. */
const seizing = `import pg from 'pg';
const client = new pg.Client({ connectionString: process.env.DATABASE_URL });
await client.connect();
const allowed = [];
const statements = [
  'alter table ledger.entry disable trigger all', 'alter table ledger.transaction disable trigger all', 'set session_replication_role = replica',
  'update ledger.entry set amount = 0 where false', 'delete from ledger.entry where false', 'update ledger.transaction set at = at where false',
  'delete from ledger.transaction where false', 'truncate receipts.day', 'delete from receipts.day where false', 'delete from receipts.link where false',
  'update revenue.line set amount = amount where false', 'update ledger.account set owner = owner where false', 'update ledger.overrun set lifted_at = now() where false',
  "create or replace function ledger.refuse_change() returns trigger language plpgsql as 'begin return new; end'", 'drop table ledger.entry cascade',
  'create table ledger.mine ()', 'create schema mine', 'set role moorage_migrator', 'select rolpassword from pg_authid',
];
for (const statement of statements) {
  await client.query("begin; set local lock_timeout = '2s'");
  await client.query(statement).then(() => allowed.push(statement), (error) => { if (error.code !== '42501') allowed.push(statement + ' (' + error.message + ')'); });
  await client.query('rollback');
}
const { rows: [tls] } = await client.query('select ssl from pg_stat_ssl where pid = pg_backend_pid()');
await client.end();
console.log(JSON.stringify({ tried: statements.length, allowed, ssl: tls.ssl, named: Object.keys(process.env).filter((name) => /MIGRATOR|ADMIN/.test(name)) }));`;

const seized = z.object({
  tried: z.number(),
  allowed: z.array(z.string()),
  ssl: z.boolean(),
  named: z.array(z.string()),
});

const seizure: Attack = {
  name: "a compromised API disables the ledger's protection, or changes its records",
  needs: 'kubectl',
  run: async (victim) => {
    const inApi = ['-n', victim.systemNamespace, 'exec', 'deploy/moorage-api', '--container', 'api', '--', 'node'];
    const text = await victim.kubectl([...inApi, '--input-type=module', '--eval', seizing]);
    const { tried, allowed, ssl, named } = seized.parse(JSON.parse(text.trim().split('\n').at(-1) ?? ''));
    const found = named.length === 0 ? 'no other address of the database' : named.join(', ');
    return judged(
      allowed.length === 0 && named.length === 0,
      `${allowed.length === 0 ? `All of ${tried} statements were refused` : `Not refused: ${allowed.join('; ')}`}; it found ${found}; its connection is ${ssl ? 'encrypted' : 'not encrypted'}.`,
    );
  },
};

export const moneyAttacks: readonly Attack[] = [dear, accrual, seizure];
