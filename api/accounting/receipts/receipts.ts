// Signs documents for other rooms, and proves that transactions are in the sealed ledger.
import { Problem } from '../../../lib/problem.ts';
import type { Database, LedgerHandle } from '../../billing/index.ts';
import type { ReceiptSettings } from './config.ts';
import type { Leaf, Proof } from './format/documents.ts';
import { computePath, tileSize } from './format/hashes.ts';
import type { Signed } from './format/signature.ts';
import { hashes, linksByTransaction, tilesByDay } from './ledger-log-queries.ts';
import { Signer } from './ledger-log.ts';
import { receiptsUnconfigured } from '../problems.ts';

export interface ReceiptsOptions {
  readonly settings: ReceiptSettings;
  readonly ledger: Pick<LedgerHandle, 'get'>;
  /** Address of this installation, like https://moorage.localhost. */
  readonly baseUrl: string;
}

export class Receipts {
  readonly signer: Signer | undefined;
  readonly #options: ReceiptsOptions;

  constructor(options: ReceiptsOptions) {
    const { settings, baseUrl } = options;
    this.#options = options;
    this.signer = settings.key === undefined ? undefined : new Signer(baseUrl, settings.key, settings.keys);
  }

  get keys(): ReceiptSettings['keys'] {
    return this.#options.settings.keys;
  }

  /** @throws Problem (receipts-unconfigured) where there is no key */
  assertSigns(): Signer {
    if (this.signer !== undefined) return this.signer;
    throw new Problem(
      receiptsUnconfigured,
      'Nothing is signed here. The operator of this installation can set MOORAGE_RECEIPT_KEY to an Ed25519 key, such as one made by openssl genpkey -algorithm ed25519.',
    );
  }

  /**
   * The document with its issuer and a signature over all of it. Lines of it that name a transaction can be checked if
   * they have the shape of `provenLine`. @throws Problem (receipts-unconfigured)
   */
  async sign<Document extends object>(document: Document): Promise<Signed<Document & { readonly issuer: string }>> {
    const signer = this.assertSigns();
    return signer.sign({ ...document, issuer: signer.issuer });
  }

  /**
   * Transactions as they are in the record, by number; with a proof where their day is sealed. Those that are not linked
   * yet (some seconds) are missing. @throws Problem (ledger-unconfigured, ledger-unavailable)
   */
  async readProofs(transactions: readonly string[]): Promise<Map<string, LinkedTransaction>> {
    return readProofs(this.#options.ledger.get().database, transactions);
  }
}

/** A transaction as it was linked; without a proof while its day is not sealed. */
export interface LinkedTransaction {
  readonly leaf: Leaf;
  readonly proof: Proof | undefined;
}

/** By number of the transaction; those that are not linked yet are missing. */
export async function readProofs(
  database: Pick<Database, 'query'>,
  transactions: readonly string[],
): Promise<Map<string, LinkedTransaction>> {
  const links = await database.query(linksByTransaction, [[...new Set(transactions)]]);
  const days = [...new Set(links.filter(({ sealed }) => sealed).map(({ day }) => day))];
  const rows = days.length === 0 ? [] : await database.query(tilesByDay, [days]);
  const tiles = new Map(rows.map((row) => [row.day, splitHashes(row.tiles)]));
  const proofs = new Map<string, LinkedTransaction>();
  const leaves = new Map<string, Buffer[]>();
  for (const { leaf, day, position } of links) {
    const dayTiles = tiles.get(day);
    const tile = Math.floor(position / tileSize);
    const key = `${day} ${tile}`;
    let tileLeaves = leaves.get(key);
    if (dayTiles !== undefined && tileLeaves === undefined) {
      tileLeaves = (await database.query(hashes, [day, tile * tileSize, tileSize])).map(({ hash }) => hash);
      leaves.set(key, tileLeaves);
    }
    const path =
      dayTiles === undefined || tileLeaves === undefined
        ? undefined
        : [...computePath(position % tileSize, tileLeaves), ...computePath(tile, dayTiles)];
    proofs.set(leaf.id, {
      leaf,
      proof: path === undefined ? undefined : { day, position, path: path.map((hash) => hash.toString('hex')) },
    });
  }
  return proofs;
}

function splitHashes(bytes: Buffer): Buffer[] {
  return Array.from({ length: bytes.length / 32 }, (_, index) => bytes.subarray(index * 32, index * 32 + 32));
}
