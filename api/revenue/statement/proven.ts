// A statement that can be checked: each line with its transaction and, once its day is sealed, the proof, and all of it signed.
import type { z } from 'zod';
import { provenLine, type Receipts, signature } from '../../receipts/index.ts';
import { statementLine, statementView, type StatementView } from './view.ts';

/** As it is answered; unsigned where this installation signs nothing. */
export const provenStatement = statementView.extend({
  lines: statementLine.extend(provenLine.shape).array(),
  signature: signature
    .optional()
    .describe('Over all of it; `npm run verify` checks it. Absent where nothing is signed.'),
});

/** @throws Problem (ledger-unconfigured, ledger-unavailable) */
export async function proven(statement: StatementView, receipts: Receipts): Promise<z.input<typeof provenStatement>> {
  const linked = await receipts.proofsOf(statement.lines.map(({ transaction }) => transaction));
  const account = { kind: 'author', owner: statement.author, day: null };
  const lines = statement.lines.map((line) => {
    const { leaf = null, proof = null } = linked.get(line.transaction) ?? {};
    // What the author gains is credited.
    return leaf === null
      ? { ...line, account: null, amount: null, leaf, proof }
      : { ...line, account, amount: negated(line.amount_usd), leaf, proof };
  });
  return receipts.signer === undefined ? { ...statement, lines } : receipts.sign({ ...statement, lines });
}

/** Decimal text of the opposite amount. */
function negated(amount: string): string {
  if (amount === '0') return amount;
  return amount.startsWith('-') ? amount.slice(1) : `-${amount}`;
}
