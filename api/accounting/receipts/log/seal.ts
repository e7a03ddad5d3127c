// Seals a day: its Merkle root, chained to the day before and signed.
import type { Transaction } from '../../../billing/index.ts';
import { chainNext, chainStart } from '../format/chain.ts';
import { dayDigest, type LedgerDay } from '../format/documents.ts';
import { rootOf, TreeBuilder } from '../format/merkle.ts';
import type { LogState } from './log.ts';
import type { Signer } from './signer.ts';
import { addDay, hashes } from './statements.ts';

interface Sealing {
  readonly day: string;
  readonly state: LogState;
  readonly at: string;
  readonly signer: Signer;
}

/** Hashes read at once: so many are hashed in some 20 ms, and requests are answered in between. */
const step = 5_000;

/** @throws Error when the links of the day are not those of its chain */
export async function sealDay(transaction: Transaction, { day, state, at, signer }: Sealing): Promise<LedgerDay> {
  const head = state.open.get(day)?.head ?? chainStart(day).toString('hex');
  const { count, chain, tiles } = await readLinks(transaction, day);
  if (chain.toString('hex') !== head)
    throw new Error(
      `${day} cannot be sealed: its links are not those of its chain, so somebody changed them. Run npm run verify -- --database`,
    );
  const document = await signer.sign({
    type: 'ledger-day' as const,
    issuer: signer.issuer,
    day,
    sealed_at: at,
    count,
    head,
    root: rootOf(tiles).toString('hex'),
    previous: state.newest === undefined ? null : dayDigest(state.newest),
  });
  await transaction.query(addDay, [day, JSON.stringify(document), Buffer.concat(tiles).toString('hex')]);
  return document;
}

async function readLinks(
  transaction: Transaction,
  day: string,
): Promise<{ count: number; chain: Buffer; tiles: Buffer[] }> {
  const tree = new TreeBuilder();
  let chain = chainStart(day);
  for (let count = 0; ;) {
    const rows = await transaction.query(hashes, [day, count, step]);
    for (const { hash } of rows) {
      tree.add(hash);
      chain = chainNext(chain, hash);
    }
    count += rows.length;
    if (rows.length < step) return { count, chain, tiles: tree.tiles() };
  }
}
