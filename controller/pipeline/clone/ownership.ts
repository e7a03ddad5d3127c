// What the ownership file of a checked-out tree holds: tokens for the operator to open, and hashes of the author's keys.
import { keyHashesIn } from '../../../lib/author-key.ts';
import { maximumOwnershipBytes, ownershipFile, tokensIn } from '../../../lib/ownership-token.ts';
import { fileText } from '../tree.ts';

/** Nothing where the file is missing, or is no regular file. */
export function ownershipOf(source: string): { ownership?: string[]; authorKeys?: string[] } {
  const text = fileText(source, ownershipFile, maximumOwnershipBytes) ?? '';
  const [ownership, authorKeys] = [tokensIn(text), keyHashesIn(text)];
  return {
    ...(ownership.length === 0 ? {} : { ownership }),
    ...(authorKeys.length === 0 ? {} : { authorKeys }),
  };
}
