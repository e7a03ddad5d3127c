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

export const moneyAttacks: readonly Attack[] = [accrual];
