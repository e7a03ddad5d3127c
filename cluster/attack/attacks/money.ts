// Attacks on the ledger: money that nobody paid.
import { setTimeout as delay } from 'node:timers/promises';
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
  name: 'an author calls his own app on the free quota and accrues a share that nobody paid',
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

/** What routers bill beside the tokens that are reserved for, or what makes them bill another price. */
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
  name: 'tools that the model router runs, and other members with a price of their own, are passed on with the platform key',
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

export const moneyAttacks: readonly Attack[] = [dear, accrual];
