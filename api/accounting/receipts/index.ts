// What the rest of the API uses of this room: documents that can be checked, and the signed record of the ledger.
export { type ReceiptSettings, readReceiptSettings } from './config.ts';
export { type Proof, proof, provenLine, type ProvenLine } from './format/documents.ts';
export { account as leafAccount, leaf, type Leaf, type LeafAccount, postedTo } from './format/leaf.ts';
export { signature, type Signed } from './format/signature.ts';
export { type Evidence, verifyDocument } from './format/verify-document.ts';
export type { LinkedTransaction } from './log/proofs.ts';
export { receiptsUnconfigured } from './problems.ts';
export type { Receipts } from './receipts.ts';
export { startReceipts, type StartedReceipts } from './start.ts';
export { lineFaults } from './verify/statement-lines.ts';
