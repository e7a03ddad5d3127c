// Decides who may see and change the private side of an app: holders of an author key whose hash its repository carries. Before
// each change, the newest commit of the default branch is read again, so that removing the line revokes the key immediately.
import type { LookupAnswer } from '../../../lib/git/lookup.ts';
import { formatAuthorKeyLine, hashAuthorKey, isAuthorKey, ownershipFile } from '../../../lib/ownership-file.ts';
import { Problem } from '../../../lib/problem.ts';
import type { Repository } from '../../../lib/repository.ts';
import { type CallContext, FailureCounter } from '../../http/index.ts';
import { type App, type AppIndex, formatKeyRepository, getApp, readRepository } from '../hosted-apps.ts';
import {
  appKeyRequired,
  appPrivate,
  beingRemoved,
  notAuthor,
  repositoryUnreachable,
  tooManyWrongKeys,
} from '../problems.ts';
import type { AuditLog } from './audit.ts';

export interface AuthorAccessOptions {
  readonly apps: Pick<AppIndex, 'get' | 'listAll'>;
  /** Reads the author keys of the newest commit. */
  readonly lookUpKeys: (repository: Repository) => Promise<LookupAnswer>;
  readonly audit: AuditLog;
}

/** An app and the author who is using it. */
export interface AuthorizedApp {
  readonly app: App;
  /** Identifies the author's key in the audit log: the first digits of its hash. */
  readonly actor: string;
}

/** What an action is recorded as. */
export interface ActionName {
  /** Like `restart` or `set-secret`. */
  readonly action: string;
  /** What is changed, without secret values. */
  readonly detail?: Readonly<Record<string, unknown>>;
}

/** Per network and minute. */
const maximumWrongKeys = 10;

export class AuthorAccess {
  readonly #options: AuthorAccessOptions;
  /** Wrong keys by network, and by network and scope. */
  readonly #failures: FailureCounter;

  constructor(options: AuthorAccessOptions) {
    this.#options = options;
    this.#failures = new FailureCounter({ maximum: maximumWrongKeys, windowMs: 60_000 });
  }

  /**
   * Identifies the author of an app who reads its private side.
   *
   * @throws Problem (unknown-app, app-key-required, app-private, too-many-wrong-keys)
   */
  identify(slug: string, context: CallContext): AuthorizedApp {
    const { app, hash } = this.#readKey(slug, context);
    if (hash === undefined || !listKeys(app).includes(hash))
      throw this.#refuse(
        context,
        appPrivate,
        `Nothing is shown at this address without a key of the author of ${slug}. If you have just pushed the line of your key, wait for its review to end.`,
      );
    return { app, actor: formatActor(hash) };
  }

  /**
   * Lets the author of an app change something: verifies the key against the newest commit, and records the action.
   *
   * @throws Problem (unknown-app, app-key-required, not-author, too-many-wrong-keys, repository-unreachable, being-removed,
   * ledger-unconfigured, ledger-unavailable), and what `work` throws
   */
  async act<Result>(
    slug: string,
    context: CallContext,
    { action, detail = {} }: ActionName,
    work: (authorized: AuthorizedApp) => Promise<Result>,
  ): Promise<Result> {
    const { app, hash } = this.#readKey(slug, context);
    // Nothing is fetched for a key that no reviewed commit has: anybody can send one.
    if (hash === undefined || !listKeys(app).includes(hash) || !(await this.#isCurrent(app, hash)))
      throw this.#refuse(
        context,
        notAuthor,
        `The newest commit of ${readRepository(app).url} has no line of this key in ${ownershipFile}.`,
      );
    if (app.metadata.deletionTimestamp !== undefined)
      throw new Problem(beingRemoved, `${slug} is being deleted, and cannot be changed any more.`);
    const authorized = { app, actor: formatActor(hash) };
    const record = { app: app.metadata.uid, slug, actor: authorized.actor, action, detail, request: context.id };
    return this.#options.audit.record(record, () => work(authorized));
  }

  /** The app, and the hash of the key in the request; undefined for what is no author key. */
  #readKey(slug: string, context: CallContext): { app: App; hash: string | undefined } {
    const app = getApp(this.#options.apps, slug);
    const authorization = context.headers.get('authorization');
    if (authorization === null)
      throw new Problem(
        appKeyRequired,
        `This is only for the author of ${slug}. POST /api/apps/${slug}/keys gives you a key and says where to commit its line; then send it as \`Authorization: Bearer mak-…\`.`,
        { headers: { 'www-authenticate': 'Bearer realm="moorage author"' } },
      );
    const key = /^Bearer +(\S+)$/i.exec(authorization.trim())?.[1] ?? '';
    const hash = isAuthorKey(key) ? hashAuthorKey(key, formatKeyRepository(app)) : undefined;
    // A stranger in the author's network must not keep the author out. A key of 256 bits cannot be guessed either way.
    if (hash === undefined || !listKeys(app).includes(hash)) this.assertWithinLimit(context);
    return { app, hash };
  }

  async #isCurrent(app: App, hash: string): Promise<boolean> {
    const repository = readRepository(app);
    const answer = await this.#options.lookUpKeys(repository).catch(() => undefined);
    const keys = answer?.ok === true ? (answer.authorKeys ?? listPackageKeys(app, answer.commit)) : undefined;
    if (keys !== undefined) return keys.includes(hash);
    if (answer?.ok === false && answer.final) return false;
    throw new Problem(
      repositoryUnreachable,
      `${repository.url} could not be read, so it is unknown whether your key is still valid. Nothing was changed. Try again in a minute.`,
      { headers: { 'retry-after': '60' } },
    );
  }

  /**
   * Throws too-many-wrong-keys if the network of a request has sent too many wrong keys within a minute.
   *
   * @param scope counts these keys apart from others: forges send the hooks of all apps from the same networks
   */
  assertWithinLimit(context: CallContext, scope = ''): void {
    const waitMs = this.#failures.findWaitMs(formatCounter(context, scope));
    if (waitMs === undefined) return;
    const seconds = Math.max(1, Math.ceil(waitMs / 1000));
    throw new Problem(
      tooManyWrongKeys,
      `${maximumWrongKeys} wrong keys came from your network within a minute. Try again in ${seconds} seconds.`,
      { headers: { 'retry-after': String(seconds) } },
    );
  }

  /** Counts a wrong key. @param scope as in {@link assertWithinLimit} */
  countWrongKey(context: CallContext, scope = ''): void {
    this.#failures.count(formatCounter(context, scope));
  }

  #refuse(context: CallContext, type: typeof notAuthor, detail: string): Problem {
    this.countWrongKey(context);
    return new Problem(type, detail);
  }
}

function formatCounter(context: CallContext, scope: string): string {
  return `${context.caller().network} ${scope}`;
}

/** The key hashes of the newest reviewed commit. */
function listKeys(app: App): readonly string[] {
  return app.status?.authorKeys ?? [];
}

/** A package has no file to read on its own: its keys are those of its newest version, once that was reviewed. */
function listPackageKeys(app: App, newest: string): readonly string[] | undefined {
  const isReviewed = readRepository(app).package !== undefined && app.status?.source?.commit === newest;
  return isReviewed ? listKeys(app) : undefined;
}

function formatActor(hash: string): string {
  return hash.slice(0, 12);
}

/** The line that opens an app to the holder of a key. */
export function formatAppKeyLine(app: App, key: string): string {
  return formatAuthorKeyLine(key, formatKeyRepository(app));
}
