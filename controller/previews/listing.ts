// Lists the references of a repository that may get a preview, as its git server names them. What a hook reported is never
// read here: an event that is lost, repeated or late changes nothing.
import { isCommitId, scanReferences } from '../../lib/git/git.ts';
import { formatMergeReference, isChosenBranch, parsePullReference } from '../../crds/previews.ts';
import type { Previews, PreviewReference } from '../../crds/previews.ts';
import type { Repository } from '../../lib/repository.ts';

export interface ListingQuery {
  readonly repository: Repository;
  readonly previews: Previews;
}

/** What the git server listed, or why it did not. */
export type Listing =
  | { readonly ok: true; readonly references: readonly PreviewReference[] }
  | { readonly ok: false; readonly message: string };

/** Of a repository with some hundred thousand references. */
const maximumBytes = 32 * 1024 * 1024;

/** Forges that keep refs/pull/N/head after a pull request is closed, and remove refs/pull/N/merge. */
const mergeReferenceHosts: ReadonlySet<string> = new Set(['github.com']);

/** Lists the references that these settings are about. Never rejects. */
export async function listPreviewReferences(
  { repository, previews }: ListingQuery,
  readSecret?: string,
): Promise<Listing> {
  const hasMergeReferences = mergeReferenceHosts.has(repository.host);
  const patterns = [
    ...(previews.branches.length === 0 ? [] : ['refs/heads/*']),
    ...(previews.pullRequests ? ['refs/pull/*/head', 'refs/merge-requests/*/head'] : []),
    ...(previews.pullRequests && hasMergeReferences ? ['refs/pull/*/merge'] : []),
  ];
  const references: PreviewReference[] = [];
  const open = new Set<string>();
  const accept = (commit: string, name: string): void => {
    if (!isCommitId(commit)) return;
    if (name.endsWith('/merge')) open.add(name);
    const isWanted = parsePullReference(name) !== undefined || isChosenBranch(name, previews.branches);
    if (isWanted && name.length <= maximumNameLength) references.push({ name, commit });
  };
  try {
    await scanReferences(repository, patterns, accept, { readSecret, maximumBytes });
  } catch (error) {
    return { ok: false, message: error instanceof Error ? error.message : String(error) };
  }
  const isOpen = ({ name }: PreviewReference): boolean =>
    !hasMergeReferences || parsePullReference(name) === undefined || open.has(formatMergeReference(name));
  return { ok: true, references: references.filter(isOpen) };
}

/** As spec.previewOf.reference has it. */
const maximumNameLength = 250;
