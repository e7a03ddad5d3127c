// The contact of an app's author, and who vouches for it. What a submitter claimed counts only until the author speaks.
import { ownershipFile } from '../lib/ownership-file.ts';
import { manifestFile } from './app-manifest.ts';
import { readSettings, resolveSpec } from './effective-settings.ts';
import type { StoredHostedApp } from './hosted-app.ts';

export const contactSources = ['HostedApp', manifestFile, ownershipFile, 'submission'] as const;

export interface AuthorContact {
  readonly contact: string;
  readonly from: (typeof contactSources)[number];
  /** False for what only a submitter claimed, who may be anybody. */
  readonly verified: boolean;
}

/** The contact that holds; undefined where there is none. */
export function authorContact({ spec, status }: Pick<StoredHostedApp, 'spec' | 'status'>): AuthorContact | undefined {
  const { ownership } = status ?? {};
  const { author, submission } = resolveSpec({ spec }, undefined);
  const given = [
    ['HostedApp', author.contact],
    [manifestFile, readSettings(status?.settings?.values)?.author?.contact],
    [ownershipFile, ownership?.contact],
    // Once the author has spoken, it stays so, even if they remove their contact.
    ['submission', ownership === undefined ? submission.contact : undefined],
  ] as const;
  for (const [from, contact] of given)
    if (contact !== undefined) return { contact, from, verified: from !== 'submission' };
  return undefined;
}
