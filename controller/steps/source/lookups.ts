// Answers the API, which asks whether a repository can be read, publicly or with its deploy key, and which author keys it has.
import type { RequestListener } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import { deriveDeployKey, findDeployKeyPage, findSshRemote } from '../../../lib/git/deploy-keys.ts';
import type { GitAccess } from '../../../lib/git/git.ts';
import {
  createLookupListener,
  lookupPath,
  type LookupAnswer,
  type LookupQuery,
  type OfferedKey,
} from '../../../lib/git/lookup.ts';
import { readRemoteFile } from '../../../lib/git/remote-file.ts';
import { findAuthorKeyHashes, maximumOwnershipBytes, ownershipFile } from '../../../lib/ownership-file.ts';
import { markPrivate, type Repository } from '../../../lib/repository.ts';
import type { Logger } from '../../../lib/telemetry.ts';
import type { InstallationConfig } from '../../reconcile/installation-config.ts';
import { deployKeyRule, resolveRevision } from './source.ts';

/** Concurrent lookups for submissions; git keeps a server's answer in memory. */
const maximumLookups = 4;
/** Commits whose author keys are kept. */
const maximumKnown = 1_000;

/** Answers the API, which requests the newest commit of a repository before it takes a name for it, and its author keys. */
export function createLookupRoutes(
  { gitHosts, gitAccess }: Pick<InstallationConfig, 'gitHosts' | 'gitAccess'>,
  token: string | undefined,
  log: Logger,
): Record<string, RequestListener> {
  if (token === undefined) return {};
  /** A commit does not change, so its file is fetched once. */
  const known = new Map<string, readonly string[]>();
  const resolve = async (given: Repository, { via, keys }: LookupQuery): Promise<LookupAnswer> => {
    const { repository, revision } = await readRevision(given, via, gitAccess);
    if (!revision.ok) return { ...revision, deployKey: offerDeployKey(repository, gitAccess) };
    if (!keys || repository.package !== undefined) return revision;
    const { commit } = revision;
    const subject = `${repository.url} ${commit}`;
    try {
      const query = { repository, commit, name: ownershipFile, maximumBytes: maximumOwnershipBytes };
      const authorKeys =
        known.get(subject) ?? findAuthorKeyHashes((await readRemoteFile({ ...query, access: gitAccess })) ?? '');
      if (known.size >= maximumKnown) known.clear();
      known.set(subject, authorKeys);
      return { ...revision, authorKeys: [...authorKeys] };
    } catch (error) {
      log.warn({ err: error, repository: repository.url }, 'author keys could not be read');
      return revision;
    }
  };
  return { [lookupPath]: createLookupListener({ token, hosts: gitHosts, limit: maximumLookups, resolve }) };
}

/** What the git server answers, and the repository as it was read last. */
async function readRevision(
  given: Repository,
  via: LookupQuery['via'],
  access: GitAccess,
): Promise<{ readonly repository: Repository; readonly revision: LookupAnswer }> {
  if (via === 'none') return { repository: given, revision: notAsked };
  const repository = markPrivate(given, via === 'private');
  const revision = await resolveRevision({ repository }, access);
  if (revision.ok)
    return { repository, revision: repository.isPrivate === true ? { ...revision, isPrivate: true } : revision };
  const isHidden = revision.rule === 'source/repository-not-found' && offerDeployKey(given, access) !== undefined;
  if (via !== 'either' || !isHidden) return { repository, revision };
  // Where SSH is blocked, an answer about the public repository must not take longer than the API waits.
  const opened = await Promise.race([readRevision(given, 'private', access), delay(openMs, undefined, { ref: false })]);
  if (opened?.revision.ok === true) return opened;
  // To somebody who has given it no key, it is as good as absent.
  if (opened === undefined || opened.revision.rule === deployKeyRule) return { repository, revision };
  return { repository, revision: { ...revision, message: `${revision.message} ${opened.revision.message}` } };
}

/** Limit of the second attempt at a repository that was submitted. */
const openMs = 6_000;

const notAsked: LookupAnswer = {
  ...{ ok: false as const, final: false, rule: 'source/not-asked' },
  ...{ message: 'The git server was not asked.', fix: '' },
};

/** The public half of the deploy key of a repository; undefined if this installation has none for it. */
function offerDeployKey(repository: Repository, { deployKeys }: GitAccess): OfferedKey | undefined {
  if (deployKeys === undefined || findSshRemote(repository, deployKeys.hostKeys) === undefined) return undefined;
  const { publicKey, fingerprint } = deriveDeployKey(repository, deployKeys.secret);
  return { publicKey, fingerprint, page: findDeployKeyPage(repository) };
}
