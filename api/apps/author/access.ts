// Decides who may see and change the private side of an app: holders of an author key whose hash its repository carries, and of
// tokens that were made with one, and accounts that can push at their forge. Before each change, the newest commit of the default
// branch is read again, so that removing the line revokes the key and its tokens immediately, or the forge is asked again.
import { readSlug } from '../../../crds/slugs.ts';
import type { LookupAnswer } from '../../../lib/git/lookup.ts';
import {
  formatAuthorKeyLine,
  hashAuthorKey,
  isAuthorToken,
  isAuthorKey,
  ownershipFile,
} from '../../../lib/ownership-file.ts';
import { Problem } from '../../../lib/problem.ts';
import type { Repository } from '../../../lib/repository.ts';
import { type CallContext, FailureCounter } from '../../http/index.ts';
import { type App, type AppIndex, formatKeyRepository, getApp, readRepository } from '../hosted-apps.ts';
import {
  appKeyRequired,
  appPrivate,
  beingRemoved,
  missingScope,
  notAuthor,
  repositoryUnreachable,
  tooManyWrongKeys,
} from '../problems.ts';
import type { Account, Accounts } from '../sign-in/accounts.ts';
import type { Actor, AuditLog } from './audit.ts';
import { type AuthorOperation, permissions, type Scope, scopes } from './scopes.ts';
import type { TokenStore } from './tokens.ts';

export interface AuthorAccessOptions {
  readonly apps: Pick<AppIndex, 'get' | 'listAll'>;
  /** Reads the author keys of the newest commit. */
  readonly lookUpKeys: (repository: Repository) => Promise<LookupAnswer>;
  readonly tokens: Pick<TokenStore, 'find' | 'recordUse'>;
  readonly accounts: Pick<Accounts, 'open' | 'ownsApp' | 'formatActor'>;
  readonly audit: AuditLog;
}

/** An app, and who is using it. */
export interface AuthorizedApp {
  readonly app: App;
  readonly actor: Actor;
  /** What they may do: the scopes of a token, or everything. */
  readonly scopes: readonly (Scope | 'owner' | 'key')[];
  /** Hash of the author key that was sent, or with which the token was made; undefined for an account. */
  readonly keyHash?: string;
}

/** What an action is recorded as. */
export interface ActionName {
  /** The endpoint, which decides what a token needs. */
  readonly operation: AuthorOperation;
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
   * Identifies who reads the private side of an app: its author, or a holder of a token with the scope of the operation.
   *
   * @throws Problem (unknown-app, app-key-required, app-private, missing-scope, too-many-wrong-keys, ledger-unconfigured,
   * ledger-unavailable)
   */
  async identify(slug: string, context: CallContext, operation: AuthorOperation): Promise<AuthorizedApp> {
    const app = getApp(this.#options.apps, slug);
    const holder = await this.#findHolder(app, context, false);
    if (typeof holder === 'string')
      throw this.#refuse(
        context,
        appPrivate,
        `Nothing is shown at this address without a key of the author of ${slug}. ${holder === '' ? 'If you have just pushed the line of your key, wait for its review to end.' : holder}`,
      );
    assertScope(holder, operation, slug);
    return { app, ...holder };
  }

  /**
   * Lets the author of an app, or a holder of a token, change something: verifies the key against the newest commit, and
   * records the action.
   *
   * @throws Problem (unknown-app, app-key-required, not-author, missing-scope, too-many-wrong-keys, repository-unreachable,
   * being-removed, ledger-unconfigured, ledger-unavailable), and what `work` throws
   */
  async act<Result>(
    slug: string,
    context: CallContext,
    { operation, action, detail = {} }: ActionName,
    work: (authorized: AuthorizedApp) => Promise<Result>,
  ): Promise<Result> {
    const app = getApp(this.#options.apps, slug);
    const holder = await this.#findHolder(app, context, true);
    const missing = `The newest commit of ${readRepository(app).url} has no line of this key in ${ownershipFile}.`;
    // Nothing is fetched for a key that no reviewed commit has: anybody can send one.
    if (typeof holder === 'string') throw this.#refuse(context, notAuthor, holder === '' ? missing : holder);
    assertScope(holder, operation, slug);
    // The forge was asked about an account just now.
    if (holder.keyHash !== undefined && !(await this.#isCurrent(app, holder.keyHash)))
      throw this.#refuse(context, notAuthor, missing);
    if (app.metadata.deletionTimestamp !== undefined)
      throw new Problem(beingRemoved, `${slug} is being deleted, and cannot be changed any more.`);
    const record = { app: app.metadata.uid, slug, actor: holder.actor, action, detail, request: context.id };
    return this.#options.audit.record(record, () => work({ app, ...holder }));
  }

  /**
   * Finds who sent a request. Returns why there is nobody who may do anything with the app, empty if there is nothing more
   * to say than that the key is wrong.
   */
  async #findHolder(app: App, context: CallContext, isChange: boolean): Promise<Holder | string> {
    const authorization = context.headers.get('authorization');
    const slug = readSlug(app);
    if (authorization === null)
      throw new Problem(
        appKeyRequired,
        `This is only for the author of ${slug}. POST /api/apps/${slug}/keys gives you a key and says where to commit its line; then send it as \`Authorization: Bearer mak-…\`.`,
        { headers: { 'www-authenticate': 'Bearer realm="moorage author"' } },
      );
    const text = /^Bearer +(\S+)$/i.exec(authorization.trim())?.[1] ?? '';
    const account = this.#options.accounts.open(text);
    const holder =
      account !== undefined
        ? await this.#findAccountHolder(app, account, context, isChange)
        : isAuthorToken(text)
          ? await this.#findTokenHolder(app, text)
          : findKeyHolder(app, text);
    // A stranger in the author's network must not keep the author out. A key of 256 bits cannot be guessed either way.
    if (typeof holder === 'string') this.assertWithinLimit(context);
    return holder;
  }

  async #findTokenHolder(app: App, text: string): Promise<Holder | string> {
    const token = await this.#options.tokens.find(text);
    // What another app's token is says nothing to who asks about this one.
    if (token?.app !== app.metadata.uid) return 'The token is not one of this app.';
    if (token.revoked_at !== null) return `The token was revoked at ${token.revoked_at.toISOString()}.`;
    if (token.expires_at.getTime() <= Date.now()) return `The token expired at ${token.expires_at.toISOString()}.`;
    if (!listKeys(app).includes(token.author_key))
      return `The token has ended: the line of the key with which it was made is no longer in ${ownershipFile}.`;
    await this.#options.tokens.recordUse(token);
    const actor = { id: `token:${token.id}`, name: token.name };
    return { actor, scopes: token.scopes, keyHash: token.author_key };
  }

  async #findAccountHolder(
    app: App,
    account: Account,
    context: CallContext,
    isChange: boolean,
  ): Promise<Holder | string> {
    const { accounts } = this.#options;
    const id = accounts.formatActor(account);
    // The forge is asked only so often for an account that owns nothing here.
    this.assertWithinLimit(context, id);
    if (await accounts.ownsApp(account, app, isChange)) return { actor: { id }, scopes: [...scopes, 'owner'] };
    this.countWrongKey(context, id);
    return `Your account ${account.login} cannot push to ${readRepository(app).url}, as its forge says, or the forge does not have this repository.`;
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

type Holder = Omit<AuthorizedApp, 'app'>;

function findKeyHolder(app: App, key: string): Holder | string {
  const hash = isAuthorKey(key) ? hashAuthorKey(key, formatKeyRepository(app)) : '';
  if (!listKeys(app).includes(hash)) return '';
  return { actor: { id: hash.slice(0, 12) }, scopes: [...scopes, 'owner', 'key'], keyHash: hash };
}

/** @throws Problem (missing-scope) */
function assertScope({ scopes: allowed }: Holder, operation: AuthorOperation, slug: string): void {
  const needed = permissions[operation];
  if (allowed.includes(needed)) return;
  const has = `You may ${allowed.join(', ')}.`;
  throw new Problem(
    missingScope,
    needed === 'owner' || needed === 'key'
      ? `No token may do this: send an author key. ${has}`
      : `The token needs the scope ${needed}. ${has} The author can make another one with POST /api/apps/${slug}/tokens.`,
    { members: { scope: needed } },
  );
}

/** The line that opens an app to the holder of a key. */
export function formatAppKeyLine(app: App, key: string): string {
  return formatAuthorKeyLine(key, formatKeyRepository(app));
}
