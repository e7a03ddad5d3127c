// Proofs that transactions are in sealed days.
import type { Database } from '../../../billing/index.ts';
import type { Proof } from '../format/documents.ts';
import type { Leaf } from '../format/leaf.ts';
import { pathTo, tileSize } from '../format/merkle.ts';
import { hashes, linksOf, tilesOf } from './statements.ts';

/** A transaction as it was linked; without a proof while its day is not sealed. */
export interface LinkedTransaction {
  readonly leaf: Leaf;
  readonly proof: Proof | undefined;
}

/** By number of the transaction; those that are not linked yet are missing. */
export async function proofsOf(
  database: Pick<Database, 'query'>,
  transactions: readonly string[],
): Promise<Map<string, LinkedTransaction>> {
  const links = await database.query(linksOf, [[...new Set(transactions)]]);
  const days = [...new Set(links.filter(({ sealed }) => sealed).map(({ day }) => day))];
  const rows = days.length === 0 ? [] : await database.query(tilesOf, [days]);
  const tiles = new Map(rows.map((row) => [row.day, split(row.tiles)]));
  const found = new Map<string, LinkedTransaction>();
  const leaves = new Map<string, Buffer[]>();
  for (const { leaf, day, position } of links) {
    const ofDay = tiles.get(day);
    const tile = Math.floor(position / tileSize);
    const key = `${day} ${tile}`;
    let below = leaves.get(key);
    if (ofDay !== undefined && below === undefined) {
      below = (await database.query(hashes, [day, tile * tileSize, tileSize])).map(({ hash }) => hash);
      leaves.set(key, below);
    }
    const path =
      ofDay === undefined || below === undefined
        ? undefined
        : [...pathTo(position % tileSize, below), ...pathTo(tile, ofDay)];
    found.set(leaf.id, {
      leaf,
      proof: path === undefined ? undefined : { day, position, path: path.map((hash) => hash.toString('hex')) },
    });
  }
  return found;
}

function split(bytes: Buffer): Buffer[] {
  return Array.from({ length: bytes.length / 32 }, (_, index) => bytes.subarray(index * 32, index * 32 + 32));
}
