// Decides who may read the statements of an author: holders of a key whose hash is in one of the repositories.
import {
  hashAuthorKey,
  isAuthorKey,
  formatAuthorKeyLine,
  createAuthorKey,
  hashUnboundAuthorKey,
  ownershipFile,
} from '../../../lib/ownership-file.ts';
import { Problem } from '../../../lib/problem.ts';
import { type AppIndex, type Authorship, readAuthorship } from '../../apps/index.ts';
import type { Database } from '../../billing/index.ts';
import { frozenAuthors } from './revenue-queries.ts';
import { authorFrozen, authorKeyRequired, unknownAuthor } from '../problems.ts';

export interface Author {
  /** Git host and owner. */
  readonly author: string;
  readonly handle: string;
  readonly apps: readonly Authorship[];
}

/** The author with this handle, of the host that is named or the only one. @throws Problem (unknown-author) */
export function findAuthor(apps: Pick<AppIndex, 'listAll'>, handle: string, host: string | undefined): Author {
  const authorHandle = handle.toLowerCase();
  const authorships = apps
    .listAll()
    .map(readAuthorship)
    .filter(({ author }) => author.slice(author.indexOf('/') + 1) === authorHandle);
  const hosts = [...new Set(authorships.map(({ author }) => author.slice(0, author.indexOf('/'))))];
  const chosen = host?.toLowerCase() ?? hosts[0];
  const authorApps = authorships.filter(({ author }) => author === `${String(chosen)}/${authorHandle}`);
  if (authorApps.length === 0)
    throw new Problem(
      unknownAuthor,
      `No app from a repository of ${handle} is hosted here${host === undefined ? '' : ` from ${host}`}. The handle is the owner of the repository, such as octo of github.com/octo/hello.`,
    );
  if (host === undefined && hosts.length > 1)
    throw new Problem(
      unknownAuthor,
      `${handle} has repositories on ${hosts.join(' and ')}. Add host=${hosts[0] ?? ''} to say which one you mean.`,
    );
  return { author: `${String(chosen)}/${authorHandle}`, handle: authorHandle, apps: authorApps };
}

/** Refuses to show what an author earned whose account changed. @throws Problem (author-frozen), the driver's error */
export async function assertNotFrozen(database: Database, { author, handle }: Author): Promise<void> {
  const [freeze] = await database.query(frozenAuthors, [author]);
  if (freeze === undefined) return;
  throw new Problem(
    authorFrozen,
    `The account behind ${handle} changed at the git forge. Statements, shares and payouts of ${author} are frozen since ${freeze.frozen_at.toISOString()}. Contact the operator of this installation.`,
  );
}

/** Refuses a request without a key of the author. @throws Problem (author-key-required) */
export function assertAuthorKey(headers: Headers, { handle, apps }: Author): void {
  const authorization = headers.get('authorization');
  if (authorization === null) throw createRefusal(handle, 'This is only for the author.');
  const key = /^Bearer +(\S+)$/i.exec(authorization.trim())?.[1] ?? '';
  if (!isAuthorKey(key)) throw createRefusal(handle, 'The Authorization header must have the form `Bearer mak-…`.');
  // Hashes are compared, so how long that takes says nothing of the key.
  if (apps.some(({ keys, repository }) => keys.includes(hashAuthorKey(key, repository)))) return;
  const earlier = apps.find(({ keys }) => keys.includes(hashUnboundAuthorKey(key)));
  if (earlier !== undefined)
    throw createRefusal(
      handle,
      `The line of this key in ${ownershipFile} of ${earlier.repository} is of an earlier form that names no repository, so that a fork or a template would carry it into repositories of others. Your key stays valid: replace that line by \`${formatAuthorKeyLine(key, earlier.repository)}\`, push, and wait for the review to end.`,
    );
  throw createRefusal(
    handle,
    `No reviewed commit of a repository of ${handle} has the line of this key in ${ownershipFile}. If you have just pushed it, wait for the review to end.`,
  );
}

/** The line of a key for one repository. */
interface RepositoryLine {
  readonly repository: string;
  readonly line: string;
}

/** A new key and what to do with it. Each repository has a line of its own; one is enough. */
export function issueKey({ handle, apps }: Author): {
  key: string;
  file: string;
  line: string;
  lines: RepositoryLine[];
  message: string;
} {
  const key = createAuthorKey();
  const repositories = [...new Set(apps.map(({ repository }) => repository))];
  const lines = repositories.map((repository) => ({ repository, line: formatAuthorKeyLine(key, repository) }));
  const [first] = lines;
  return {
    key,
    file: ownershipFile,
    line: first?.line ?? '',
    lines,
    message: `Commit the line to ${ownershipFile} at the top of the default branch of ${first?.repository ?? handle}${lines.length > 1 ? ', or another one of `lines` to its repository' : ''}, and keep the key: it is not stored. Once the commit was reviewed, the key opens your statements.`,
  };
}

function createRefusal(handle: string, why: string): Problem {
  return new Problem(
    authorKeyRequired,
    `${why} POST /api/authors/${encodeURIComponent(handle)}/keys gives you a key and says where to commit its line.`,
    { headers: { 'www-authenticate': 'Bearer realm="moorage author"' } },
  );
}
