// The accounts that signed in: what a session holds of one, and whether it owns an app. Nothing about an account is stored.
import { createHash } from 'node:crypto';
import { z } from 'zod';
import { derivePurposeKey, openText, sealText } from '../../../lib/sealed-text.ts';
import { type App, readRepository } from '../hosted-apps.ts';
import type { SignInProvider } from './config.ts';
import { canPush } from './forge.ts';

const account = z.strictObject({
  /** Id of the provider. */
  provider: z.string(),
  /** Name of the account at the forge. */
  login: z.string(),
  /** The account's token, with which the forge is asked. */
  token: z.string(),
  /** Milliseconds since 1970. */
  expires: z.int(),
});
export type Account = z.output<typeof account>;

const prefix = 'mas-';
/** For how long an answer of the forge counts when something is read. Changes ask again. */
const rememberMs = 60_000;
const maximumRemembered = 1_000;

export class Accounts {
  readonly #providers: ReadonlyMap<string, SignInProvider>;
  readonly #sealKey: Buffer;
  readonly #now: () => number;
  readonly #remembered = new Map<string, { readonly until: number; readonly answer: Promise<boolean> }>();

  /** @param secret of the installation; a key for this purpose alone is derived from it */
  constructor(providers: readonly SignInProvider[], secret: string, now: () => number = Date.now) {
    this.#providers = new Map(providers.map((provider) => [provider.id, provider]));
    this.#sealKey = derivePurposeKey(secret, 'moorage signed-in account 1');
    this.#now = now;
  }

  /** Seals an account, as a session carries it. */
  seal(signedIn: Account): string {
    return `${prefix}${sealText(JSON.stringify(signedIn), { key: this.#sealKey })}`;
  }

  /** Opens a sealed account; undefined for anything else, and once it has expired. */
  open(text: string): Account | undefined {
    const opened = text.startsWith(prefix) ? openText(text.slice(prefix.length), { key: this.#sealKey }) : undefined;
    if (opened === undefined) return undefined;
    const found = account.parse(JSON.parse(opened));
    return found.expires > this.#now() && this.#providers.has(found.provider) ? found : undefined;
  }

  /** As the audit log names it. */
  formatActor({ provider, login }: Account): string {
    return `account:${this.#providers.get(provider)?.host ?? provider}/${login}`;
  }

  /**
   * Whether the account can push to the repository of an app, as the forge says.
   *
   * @param isChange asks the forge in any case
   * @throws Problem (forge-unreachable)
   */
  async ownsApp(signedIn: Account, app: App, isChange: boolean): Promise<boolean> {
    const provider = this.#providers.get(signedIn.provider);
    if (provider === undefined) return false;
    const repository = readRepository(app);
    const hash = createHash('sha256').update(signedIn.token).digest('base64url');
    const key = `${provider.id} ${hash} ${repository.url}`;
    const known = this.#remembered.get(key);
    if (!isChange && known !== undefined && known.until > this.#now()) return known.answer;
    const answer = canPush(provider, repository, signedIn.token);
    this.#remember(key, answer);
    return answer;
  }

  #remember(key: string, answer: Promise<boolean>): void {
    this.#remembered.delete(key);
    const [oldest] = this.#remembered.keys();
    if (this.#remembered.size >= maximumRemembered && oldest !== undefined) this.#remembered.delete(oldest);
    this.#remembered.set(key, { until: this.#now() + rememberMs, answer });
    // A failure is not remembered.
    answer.catch(() => this.#remembered.delete(key));
  }
}
