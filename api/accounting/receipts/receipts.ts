// What other rooms use to make documents that can be checked: signatures, and proofs of transactions.
import { Problem } from '../../../lib/problem.ts';
import type { LedgerHandle } from '../../billing/index.ts';
import type { ReceiptSettings } from './config.ts';
import type { Signed } from './format/signature.ts';
import { type LinkedTransaction, proofsOf } from './log/proofs.ts';
import { Signer } from './log/signer.ts';
import { receiptsUnconfigured } from './problems.ts';

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
  async proofsOf(transactions: readonly string[]): Promise<Map<string, LinkedTransaction>> {
    return proofsOf(this.#options.ledger.get().database, transactions);
  }
}
