// Posts what authors accrue, one line per app and day and another for uses that arrived late, and reads the lines of a month
// as a statement: JSON with proofs, or CSV.
import { z } from 'zod';
import { toCsvLine } from '../../../lib/values.ts';
import { type AppIndex, type Authorship, readAuthorship } from '../../apps/index.ts';
import {
  type Database,
  formatMoney,
  type Money,
  negate,
  type OpenLedger,
  type PriceList,
  type PriceVersion,
  sumMoney,
  zero,
} from '../../billing/index.ts';
import { provenLine, type Receipts, signature, sumPostedTo } from '../receipts/index.ts';
import {
  cappedDays,
  closeMonths,
  daysToPost,
  disputes,
  frozenHost,
  type LineRow,
  lines,
  lockPosting,
  losses,
  markPosted,
  noteAccount,
  noteHosted,
  opening,
  postDay,
  readClock,
  statementState,
} from './revenue-queries.ts';

/** The rules for the share that visits accrue. */
export interface AccrualRules {
  readonly prices: PriceList;
  /** What all apps together may accrue for the visits of a day. */
  readonly budget: Money;
}

export interface PostingOptions extends AccrualRules {
  readonly apps: Pick<AppIndex, 'listAll'>;
  /** Days after the end of a month in which its statement can be disputed. */
  readonly disputeDays: number;
}

const minute = 60_000;

/** Keeps posting: notes whose apps are hosted, posts the shares of days that ended, and closes statements. */
export function startPosting(ledger: OpenLedger, options: PostingOptions): void {
  const { database } = ledger;
  const { apps, prices, budget, disputeDays } = options;
  ledger.repeat('note authors', minute, async () => {
    await noteAuthors(database, apps.listAll().map(readAuthorship));
    return 0;
  });
  ledger.repeat('post shares', 60 * minute, async () => {
    await postShares(database, { prices, budget });
    await database.query(closeMonths, [disputeDays, null]);
    return 0;
  });
}

/** Records the authors of the apps. @returns how many changed */
export async function noteAuthors(
  database: Database,
  apps: readonly Omit<Authorship, 'slug'>[],
  now: Date | null = null,
): Promise<number> {
  const fields = apps.map(({ app, author, sharePpm, submitter }) => ({
    app,
    author,
    share_ppm: sharePpm,
    submitter: submitter ?? null,
  }));
  const [row] = await database.query(noteHosted, [JSON.stringify(fields), now]);
  return row?.count ?? 0;
}

/**
 * Binds an author to the account that the forge names. Owner names are given to others once they are free, so a change
 * freezes what the author earns until the operator has decided. @returns what it did
 */
export async function bindAuthor(
  database: Database,
  { author, account }: { author: string; account: string },
  now: Date | null = null,
): Promise<'bound' | 'frozen' | 'known'> {
  const [row] = await database.query(noteAccount, [author, account, now]);
  return row?.outcome ?? 'known';
}

/**
 * Posts what is missing of all ended days, each in its own transaction: if the process is killed, the next run continues
 * there. @returns how many lines
 */
export async function postShares(database: Database, rules: AccrualRules, now: Date | null = null): Promise<number> {
  const [clock] = await database.query(readClock, [now]);
  const days = await database.transaction(
    async (transaction) => {
      await transaction.script("set local statement_timeout = '15min'");
      return transaction.query(daysToPost, [now]);
    },
    { lasting: true },
  );
  let lines = 0;
  for (const { app, day } of days) lines += await postAppDay(database, { app, day, ...rules, now });
  await database.query(markPosted, [clock?.now ?? null, now]);
  return lines;
}

/** Posts what is missing of one day of an app; also of today, as far as it is over. @returns how many lines */
export async function postAppDay(
  database: Database,
  { app, day, prices, budget, now = null }: AccrualRules & { app: string; day: string; now?: Date | null },
): Promise<number> {
  return database.transaction(
    async (transaction) => {
      await transaction.script("set local statement_timeout = '15min'");
      // One at a time, so that no two apps spend the same part of the budget.
      await transaction.query(lockPosting, []);
      const [freeze] = await transaction.query(frozenHost, [app, day]);
      if (freeze !== undefined) return 0;
      const version = findVersion(prices, day);
      const [row] = await transaction.query(postDay, [
        ...[app, day, version.version, ...toCountingTerms(version)],
        ...[version.usesPerApp, formatMoney(budget), now],
      ]);
      return row?.count ?? 0;
    },
    { lasting: true },
  );
}

/** A version is in effect for whole days. */
export function findVersion(prices: PriceList, day: string): PriceVersion {
  return prices.at(new Date(`${day}T00:00:00Z`));
}

/** Builds the parameters that SQL needs to compute what an author accrues. */
export function toCountingTerms(version: PriceVersion): [string, number, number, boolean, boolean] {
  const { use, usesPerVisitor, usesPerNetwork, accrues } = version;
  return [formatMoney(use), usesPerVisitor, usesPerNetwork, accrues.includes('use'), accrues.includes('call')];
}

export interface StatementRequest {
  /** Git host and owner. */
  readonly author: string;
  readonly month: string;
  /** Like https://moorage.localhost. */
  readonly baseUrl: string;
  readonly disputeDays: number;
  readonly buildEventsUrl: (line: string) => string;
  readonly now?: Date | null;
}

/** @throws the driver's error */
export async function readStatement(database: Database, request: StatementRequest): Promise<StatementView> {
  const { author, month, baseUrl, disputeDays, buildEventsUrl, now = null } = request;
  const first = getFirstDay(month);
  return database.transaction(async (transaction) => {
    await transaction.script('set transaction isolation level repeatable read, read only');
    const [clock] = await transaction.query(readClock, [now]);
    const rows = await transaction.query(lines, [author, first]);
    const [before] = await transaction.query(opening, [author, first]);
    const [state] = await transaction.query(statementState, [author, first]);
    const disputed = await transaction.query(disputes, [author, first]);
    const notAccrued = await transaction.query(cappedDays, [author, first]);
    const lost = await transaction.query(losses, [first]);
    if (before === undefined || clock === undefined) throw new Error('the database returned no row');
    return {
      type: 'statement',
      issuer: baseUrl,
      author,
      month,
      state: state?.state ?? 'open',
      disputes_until: new Date(getMonthEnd(month).getTime() + disputeDays * 86_400_000).toISOString(),
      currency: 'USD',
      ...computeSums(before.amount, rows),
      lines: rows.map((row) => toLineView(row, buildEventsUrl)),
      disputes: disputed.map(({ id, line, message, opened_at, resolved_at, resolution }) => ({
        id,
        line,
        message,
        opened_at: opened_at.toISOString(),
        resolved_at: resolved_at?.toISOString() ?? null,
        resolution,
      })),
      capped: notAccrued,
      losses: lost.map(({ gateway, requests, after_at, before_at }) => ({
        gateway,
        requests: Number(requests),
        after_at: after_at.toISOString(),
        before_at: before_at.toISOString(),
      })),
      made_at: clock.now.toISOString(),
    };
  });
}

const usd = z.string().describe('USD, exact to the pico-dollar, as decimal text.');

export const statementLine = z.object({
  id: z.string(),
  kind: z
    .enum(['share', 'late', 'refund', 'dispute', 'correction', 'payout'])
    .describe(
      'share: what a day of an app accrued. late: uses of a day that came after it was posted. refund: a caller got their money back. dispute: what a dispute came to. correction: by the operator. payout: what was paid out.',
    ),
  app: z.string().nullable(),
  day: z.string().nullable().describe('Day of the uses, UTC.'),
  item: z.enum(['use', 'call']).nullable().describe('use: by visitors. call: by agents.'),
  price_version: z.string().nullable().describe('Version of the price list.'),
  uses: z.int().describe('Uses that the line counts.'),
  gross_usd: usd.describe('What these uses are worth by the price list, USD.'),
  share: z.string().nullable().describe("The author's part of it, from 0 to 1."),
  amount_usd: usd.describe('What the author gains by the line, or loses, USD.'),
  events_sha256: z
    .string()
    .nullable()
    .describe('SHA-256 of the ids of all uses of that day, in the order of time, joined by line feeds.'),
  events_url: z.string().nullable().describe('The ids of these uses, as long as single uses are kept.'),
  event: z.string().nullable().describe('The use or the dispute that the line is for.'),
  reason: z.string().nullable(),
  transaction: z.string().describe('Transaction of the ledger that posted it.'),
  posted_at: z.string(),
});

export const statementView = z.looseObject({
  type: z.literal('statement'),
  issuer: z.string().describe('The installation that made it.'),
  author: z.string().describe('Git host and owner.'),
  month: z.string(),
  state: z
    .enum(['open', 'disputed', 'adjusted', 'final'])
    .describe(
      'open: lines may come. disputed: a dispute is open. adjusted: disputes are resolved. final: nothing is added any more; what comes later is in the next month.',
    ),
  disputes_until: z.string().describe('Until then the author can dispute it.'),
  currency: z.literal('USD'),
  opening_usd: usd.describe('What was owed to the author at the beginning of the month.'),
  earned_usd: usd.describe('Shares of the month, late ones included.'),
  corrected_usd: usd.describe('Refunds, disputes and corrections.'),
  paid_usd: usd.describe('What was paid out.'),
  closing_usd: usd.describe('What is owed at the end.'),
  lines: z.array(statementLine),
  disputes: z.array(
    z.object({
      id: z.string(),
      line: z.string().nullable(),
      message: z.string(),
      opened_at: z.string(),
      resolved_at: z.string().nullable(),
      resolution: z.string().nullable(),
    }),
  ),
  capped: z
    .array(
      z.object({
        app: z.string(),
        day: z.string(),
        uses: z.int().describe('Uses by visitors on that day.'),
        accrued: z.int().describe('Those of which a share accrued.'),
        over_visitor: z.int().describe('Above uses_per_visitor of the price list.'),
        over_network: z.int().describe('Above uses_per_network.'),
        over_app: z.int().describe('Above uses_per_app.'),
        over_budget: z.int().describe('Above the promotion budget of the operator of this installation.'),
      }),
    )
    .optional()
    .describe(
      'Days of the month on which not every use by visitors accrued, and why. Absent in statements from before the caps.',
    ),
  losses: z
    .array(z.object({ gateway: z.string(), requests: z.int(), after_at: z.string(), before_at: z.string() }))
    .describe(
      'Requests that a gateway counted in the month and no record of which arrived. Some of them may have been uses.',
    ),
  made_at: z.string(),
});
export type StatementView = z.input<typeof statementView>;

/** The sums of a statement; opening + earned + corrected - paid = closing. */
export function computeSums(
  opening: Money,
  rows: readonly Pick<LineRow, 'kind' | 'amount'>[],
): Pick<StatementView, 'opening_usd' | 'earned_usd' | 'corrected_usd' | 'paid_usd' | 'closing_usd'> {
  const sumKinds = (kinds: readonly LineRow['kind'][]): Money =>
    sumMoney(rows.filter(({ kind }) => kinds.includes(kind)).map(({ amount }) => amount));
  const [earned, corrected, paid] = [
    sumKinds(['share', 'late']),
    sumKinds(['refund', 'dispute', 'correction']),
    negate(sumKinds(['payout'])),
  ];
  return {
    opening_usd: formatMoney(opening),
    earned_usd: formatMoney(earned),
    corrected_usd: formatMoney(corrected),
    paid_usd: formatMoney(paid === 0n ? zero : paid),
    closing_usd: formatMoney(sumMoney([opening, earned, corrected, negate(paid)])),
  };
}

/** `eventsUrl`: where the uses of a line are. */
export function toLineView(row: LineRow, eventsUrl: (line: string) => string): z.input<typeof statementLine> {
  const { id, kind, app, day, item, uses, gross, share_ppm: share, amount, events, event, reason } = row;
  return {
    id,
    kind,
    app,
    day,
    item,
    price_version: row.price_version,
    uses: Number(uses),
    gross_usd: formatMoney(gross),
    share: share === null ? null : String(share / 1_000_000),
    amount_usd: formatMoney(amount),
    events_sha256: events,
    events_url: events === null ? null : eventsUrl(id),
    event,
    reason,
    transaction: row.transaction_id,
    posted_at: row.posted_at.toISOString(),
  };
}

/** As it is answered; unsigned where this installation signs nothing. */
export const provenStatement = statementView.extend({
  lines: statementLine.extend(provenLine.shape).array(),
  signature: signature
    .optional()
    .describe('Over all of it; `npm run verify` checks it. Absent where nothing is signed.'),
});

/** @throws Problem (ledger-unconfigured, ledger-unavailable) */
export async function addProofs(
  statement: StatementView,
  receipts: Receipts,
): Promise<z.input<typeof provenStatement>> {
  const linked = await receipts.readProofs(statement.lines.map(({ transaction }) => transaction));
  const account = { kind: 'author', owner: statement.author, day: null };
  const lines = statement.lines.map((line) => {
    const { leaf = null, proof = null } = linked.get(line.transaction) ?? {};
    return leaf === null
      ? { ...line, account: null, amount: null, leaf, proof }
      : { ...line, account, amount: sumPostedTo(leaf, account) ?? null, leaf, proof };
  });
  return receipts.signer === undefined ? { ...statement, lines } : receipts.sign({ ...statement, lines });
}

const columns = Object.keys(statementLine.shape) as (keyof StatementView['lines'][number])[];

export function formatStatementCsv({ lines }: StatementView): string {
  return [toCsvLine(columns), ...lines.map((line) => toCsvLine(columns.map((column) => line[column])))].join('');
}

export const monthField = z
  .string()
  .regex(/^20\d\d-(0[1-9]|1[0-2])$/, 'must be a month like 2026-11')
  .describe('Month, UTC, like 2026-11.');

/** The first day of a month, `2026-11-01`. */
export function getFirstDay(month: string): string {
  return `${month}-01`;
}

/** When the month after it begins. */
export function getMonthEnd(month: string): Date {
  const [year = 0, number = 1] = month.split('-').map(Number);
  return new Date(Date.UTC(year, number, 1));
}

export function formatMonth(time: Date): string {
  return time.toISOString().slice(0, 7);
}
