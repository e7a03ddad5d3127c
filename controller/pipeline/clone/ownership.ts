// The ownership tokens in a checked-out tree, for the operator to open.
import { maximumOwnershipBytes, ownershipFile, tokensIn } from '../../../lib/ownership-token.ts';
import { fileText } from '../tree.ts';

/** None where the file is missing, or is no regular file. */
export function ownershipTokens(source: string): string[] {
  return tokensIn(fileText(source, ownershipFile, maximumOwnershipBytes) ?? '');
}
