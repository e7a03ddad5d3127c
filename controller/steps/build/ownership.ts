// Records that the author has spoken in the repository: only who can push to it can put a contact or a token there.
import { openContact } from '../../../lib/ownership-file.ts';
import { acceptedRepository } from '../../../lib/repository.ts';
import { timestamp } from '../../objects/timestamp.ts';
import type { Draft } from '../../reconcile/outcome.ts';
import type { Snapshot } from '../../reconcile/snapshot.ts';
import type { ReviewReport } from './verdict.ts';

type Repository = Pick<Snapshot, 'app' | 'config' | 'now'>;

/** By the newest reviewed commit of the default branch. That the author has spoken once is kept. */
export function recordOwnership(
  snapshot: Repository,
  draft: Draft,
  review: Pick<ReviewReport, 'settings' | 'ownership' | 'authorKeys'>,
): void {
  // A branch, tag or commit that somebody chose may be anybody's, such as that of a pull request.
  if (snapshot.app.spec.source.revision !== undefined) return;
  recordKeys(draft, review);
  recordContact(snapshot, draft, review);
}

function recordContact(snapshot: Repository, draft: Draft, review: Pick<ReviewReport, 'settings' | 'ownership'>): void {
  const contact = provenContact(snapshot, review.ownership ?? []);
  const since = draft.ownership?.since;
  const isSaid = contact !== undefined || review.settings?.author?.contact !== undefined;
  if (since === undefined && !isSaid) return;
  draft.ownership = { since: since ?? timestamp(snapshot.now), ...(contact === undefined ? {} : { contact }) };
}

/** Taken out of the repository, a key is worth nothing any more. */
function recordKeys(draft: Draft, { authorKeys }: Pick<ReviewReport, 'authorKeys'>): void {
  if (authorKeys === undefined) delete draft.authorKeys;
  else draft.authorKeys = [...authorKeys];
}

/** Of the first token that is ours and for this repository. */
function provenContact({ app, config }: Repository, tokens: readonly string[]): string | undefined {
  const { ownershipSecret: secret } = config;
  if (secret === undefined) return undefined;
  const { url } = acceptedRepository(app.spec.source.repo);
  return tokens.flatMap((token) => openContact(token, url, secret) ?? [])[0];
}
