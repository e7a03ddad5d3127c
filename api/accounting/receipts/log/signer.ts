// What the record of the ledger is signed with, and what earlier signatures of it are checked with.
import type { KeyObject } from 'node:crypto';
import type { KeySet } from '../format/keys.ts';
import { type Signed, signatureFault, signDocument } from '../format/signature.ts';

export class Signer {
  readonly issuer: string;
  readonly #key: KeyObject;
  readonly #keys: KeySet;

  /** `issuer`: address of the installation, which stands in each document. */
  constructor(issuer: string, key: KeyObject, keys: KeySet) {
    this.issuer = issuer;
    this.#key = key;
    this.#keys = keys;
  }

  sign<Document extends object>(document: Document): Promise<Signed<Document>> {
    return signDocument(document, this.#key);
  }

  /** @throws Error when a document of the record was not signed by one of our keys */
  async check(what: string, document: unknown): Promise<void> {
    const fault = await signatureFault(document, this.#keys);
    if (fault !== undefined)
      throw new Error(
        `${what} cannot be continued: ${fault}. If the key was replaced, add its public key to MOORAGE_RECEIPT_PUBLIC_KEYS; if not, the database was changed: run npm run verify -- --database`,
      );
  }
}
