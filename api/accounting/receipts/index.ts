// What the rest of the API uses of this room: documents that can be checked, and the signed record of the ledger.
export { type ReceiptSettings, readReceiptSettings } from './config.ts';
export {
  account as leafAccount,
  leaf,
  type Leaf,
  type LeafAccount,
  type Proof,
  proof,
  provenLine,
  type ProvenLine,
  sumPostedTo,
} from './format/documents.ts';
export { signature, type Signed } from './format/signature.ts';
export { type Evidence, verifyDocument } from './format/verify-document.ts';
export { receiptsUnconfigured } from '../problems.ts';
export type { LinkedTransaction, Receipts } from './receipts.ts';
export { startReceipts, type StartedReceipts } from './start-receipts.ts';
export { findLineFaults } from './verify/verify-queries.ts';
