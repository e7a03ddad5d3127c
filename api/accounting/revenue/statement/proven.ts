// A statement that can be checked: each line with its transaction and, once its day is sealed, the proof, and all of it signed.
import type { z } from 'zod';
import { postedTo, provenLine, type Receipts, signature } from '../../receipts/index.ts';
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
    return leaf === null
      ? { ...line, account: null, amount: null, leaf, proof }
      : { ...line, account, amount: postedTo(leaf, account) ?? null, leaf, proof };
  });
  return receipts.signer === undefined ? { ...statement, lines } : receipts.sign({ ...statement, lines });
}
