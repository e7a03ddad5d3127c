// The operator's program: what is owed, payouts, refunds, corrections, disputes. Run it where DATABASE_URL is set, such as in
// a pod of the API.
import { readCommandLine, UsageError } from '../../../lib/command-line.ts';
import { type Database, formatUsd, openLedgerDatabase, PriceList } from '../../billing/index.ts';
import { findLineFaults } from '../receipts/index.ts';
import { readRevenueSettings } from './start-revenue.ts';
import { postAppDay } from './statement.ts';
import {
  type Adjustment,
  adjust,
  listDisputes,
  listFrozen,
  listOwed,
  refund,
  answerDispute,
  unfreeze,
} from './corrections.ts';
import { readRecordedPrices } from './prices.ts';

const usage = `usage: node api/accounting/revenue/command.ts COMMAND
  owed                                                        what is owed to each author
  payout  --author HOST/OWNER --amount USD --reference TEXT   record that you paid an author
  refund  --event ID --reason TEXT                            give back what a call of an app was charged
  correct --author HOST/OWNER --amount=[-]USD --reason TEXT [--month YYYY-MM] [--event ID] --id TEXT
                                                              add to what an author earned, or take from it
  disputes                                                    disputes without an answer
  resolve --dispute ID --answer TEXT [--amount=[-]USD]        answer a dispute, with a line of the statement or without
  post    --app NAME --day YYYY-MM-DD                         post what is missing of the share of a day
  frozen                                                      authors whose account changed at their forge
  unfreeze --author HOST/OWNER --account ID                   bind an author to one of the two accounts
  audit                                                       compare every line with the ledger
Amounts are in USD. Sent again with the same reference or id, nothing is posted twice.`;

const options = {
  author: { type: 'string' },
  amount: { type: 'string' },
  reference: { type: 'string' },
  event: { type: 'string' },
  reason: { type: 'string' },
  month: { type: 'string' },
  id: { type: 'string' },
  dispute: { type: 'string' },
  answer: { type: 'string' },
  app: { type: 'string' },
  day: { type: 'string' },
  account: { type: 'string' },
} as const;
type Values = Partial<Record<keyof typeof options, string>>;

function requireValue(values: Values, name: keyof typeof options): string {
  const value = values[name];
  if (value === undefined || value === '') throw new UsageError(`--${name} is missing`);
  return value;
}

/** Each command resolves with the text to print. */
const commands: Readonly<Record<string, (database: Database, values: Values) => Promise<string>>> = {
  owed: async (database) => {
    const rows = await listOwed(database);
    return rows.length === 0
      ? 'nothing is owed'
      : rows.map(({ author, amount }) => `${author}\t${formatUsd(amount)}`).join('\n');
  },
  payout: async (database, values) =>
    describePosting(
      await adjust(database, {
        kind: 'payout',
        author: requireValue(values, 'author'),
        amount: `-${requireValue(values, 'amount')}`,
        id: requireValue(values, 'reference'),
        reason: requireValue(values, 'reference'),
      }),
    ),
  refund: async (database, values) =>
    describePosting(await refund(database, requireValue(values, 'event'), requireValue(values, 'reason'))),
  correct: async (database, values) => {
    const { month, event } = values;
    const adjustment: Adjustment = {
      kind: 'correction',
      author: requireValue(values, 'author'),
      amount: requireValue(values, 'amount'),
      id: requireValue(values, 'id'),
      reason: requireValue(values, 'reason'),
      month,
      event,
    };
    return describePosting(await adjust(database, adjustment));
  },
  disputes: async (database) => {
    const rows = await listDisputes(database);
    return rows.length === 0
      ? 'no dispute is open'
      : rows
          .map(
            ({ id, author, month, line, message }) =>
              `${id}\t${author}\t${month}${line === null ? '' : `\tline ${line}`}\t${message}`,
          )
          .join('\n');
  },
  resolve: async (database, values) =>
    describePosting(
      await answerDispute(database, {
        dispute: requireValue(values, 'dispute'),
        answer: requireValue(values, 'answer'),
        amount: values.amount,
      }),
    ),
  post: async (database, values) => {
    const prices = new PriceList(await readRecordedPrices(database));
    const { promotionBudget: budget } = readRevenueSettings();
    const lines = await postAppDay(database, {
      app: requireValue(values, 'app'),
      day: requireValue(values, 'day'),
      prices,
      budget,
    });
    return lines === 0 ? 'nothing was missing' : `posted ${lines} ${lines === 1 ? 'line' : 'lines'}`;
  },
  frozen: async (database) => {
    const rows = await listFrozen(database);
    return rows.length === 0
      ? 'nobody is frozen'
      : rows
          .map((row) => `${row.author}\tsince ${row.frozen_at.toISOString()}\twas ${row.account}\tis ${row.found}`)
          .join('\n');
  },
  unfreeze: async (database, values) => {
    const [author, account] = [requireValue(values, 'author'), requireValue(values, 'account')];
    await unfreeze(database, author, account);
    return `${author} is ${account}; its shares are posted within the hour`;
  },
  audit: async (database) => {
    const faults = await database.transaction(
      async (transaction) => {
        await transaction.script('set local statement_timeout = 0');
        return findLineFaults(transaction);
      },
      { lasting: true },
    );
    if (faults.length > 0) throw new Error(faults.join('\n'));
    return 'every line is as it was posted';
  },
};

function describePosting(line: string | undefined): string {
  return line === undefined ? 'nothing was posted' : `posted line ${line}`;
}

const { command, values } = readCommandLine(
  { usage, options, positionals: 1 },
  ({ positionals: [name], values: given }) => {
    const command = name === undefined ? undefined : commands[name];
    if (command === undefined)
      throw new UsageError(name === undefined ? 'name a command' : `there is no command ${name}`);
    return { command, values: given };
  },
);
const { DATABASE_URL: url } = process.env;
if (url === undefined) fail('DATABASE_URL is not set: run this in a pod of the API');
const database = await openLedgerDatabase(url);
try {
  process.stdout.write(`${await command(database, values)}\n`);
} catch (error) {
  fail(error instanceof Error ? error.message : String(error));
} finally {
  await database.close();
}

function fail(message: string): never {
  process.stderr.write(`${message}\n`);
  process.exit(1);
}
