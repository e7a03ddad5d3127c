// Says which images of an app may be removed: not what serves or is to serve, and not the newest ones before it.
import type { HistoryEntry } from '../../../crds/hosted-app.ts';
import { numberOfTag } from '../../../crds/names.ts';

/** An image in the registry. */
export interface TaggedImage {
  readonly tag: string;
  readonly digest: string;
}

/** What is known of an app's images. */
export interface ImageRecords {
  /** Digests that its status and its Deployment name. */
  readonly needed: ReadonlySet<string>;
  /** Past pipelines; none of them is in progress. */
  readonly history: readonly Pick<HistoryEntry, 'number' | 'image'>[];
}

/** Every image digest in a text. */
export function digestsIn(text: string): Set<string> {
  return new Set(text.match(/sha256:[0-9a-f]{64}/g) ?? []);
}

/**
 * Digests to remove, each once. `limit` images are kept besides those needed, the newest first. What failed pipelines
 * left behind goes, and what is tagged as no pipeline was to tag it; what a pipeline pushed that is not recorded yet
 * stays.
 */
export function removable(images: readonly TaggedImage[], { needed, history }: ImageRecords, limit: number): string[] {
  const lastRecorded = Math.max(0, ...history.map(({ number }) => number));
  const pending = images.filter(({ tag }) => (numberOfTag(tag) ?? 0) > lastRecorded).map(({ digest }) => digest);
  const before = history
    .toSorted((a, b) => b.number - a.number)
    .flatMap(({ image }) => [...digestsIn(image ?? '')])
    .filter((digest) => !needed.has(digest));
  const kept = new Set([...needed, ...pending, ...[...new Set(before)].slice(0, limit)]);
  return [...new Set(images.map(({ digest }) => digest))].filter((digest) => !kept.has(digest));
}
