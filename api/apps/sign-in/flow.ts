// Signs an author in at a forge: the authorization code flow with PKCE, state and nonce, by OpenID Connect or, at GitHub, OAuth.
import { createHash } from 'node:crypto';
import * as client from 'openid-client';
import { z } from 'zod';
import { Problem } from '../../../lib/problem.ts';
import type { Logger } from '../../../lib/telemetry.ts';
import { type OpenLedger, prefixStatements } from '../../billing/index.ts';
import { defineEndpoint, type Endpoint } from '../../http/index.ts';
import { signInRefused, signInUnavailable, signInUnconfigured, unknownProvider } from '../problems.ts';
import type { Accounts } from './accounts.ts';
import type { SignInProvider } from './config.ts';
import { fetchAccount } from './forge.ts';

/** A sign-in in progress. The browser that began it carries it, sealed; no other browser can end it. */
export const signInAttempt = z.strictObject({
  provider: z.string(),
  /** The app that the author comes from. */
  slug: z.string(),
  state: z.string(),
  nonce: z.string(),
  verifier: z.string(),
});
export type SignInAttempt = z.output<typeof signInAttempt>;

export interface SignInOptions {
  readonly providers: readonly SignInProvider[];
  readonly accounts: Accounts;
  readonly baseUrl: string;
  /** @throws Problem (ledger-unconfigured, ledger-unavailable) while there is none */
  readonly database: () => OpenLedger['database'];
  readonly log: Logger;
}

/** A session does not outlast the token of its account. */
const lifetimeSeconds = 3_600;
/** A provider answers within this time. */
const limitSeconds = 10;
/** A cookie has room for 4096 bytes, and what is sealed twice grows by four thirds each time. */
const maximumTokenLength = 1_800;

const defineStatement = prefixStatements('sign-in');
const statements = {
  use: defineStatement(
    'use',
    `insert into author.sign_in_state (hash, expires_at) values ($1, now() + interval '1 hour')
      on conflict do nothing returning hash`,
    z.object({ hash: z.string() }),
  ),
  clean: defineStatement('clean', 'delete from author.sign_in_state where expires_at < now()', z.unknown()),
} as const;

export class SignIn {
  readonly #options: SignInOptions;
  readonly #configurations = new Map<string, Promise<client.Configuration>>();

  constructor(options: SignInOptions) {
    this.#options = options;
  }

  get providers(): readonly SignInProvider[] {
    return this.#options.providers;
  }

  /**
   * Begins a sign-in. The attempt belongs into the browser that asked for it.
   *
   * @throws Problem (unknown-provider, sign-in-unavailable)
   */
  async begin(id: string, slug: string): Promise<{ readonly url: string; readonly attempt: SignInAttempt }> {
    const provider = this.#findProvider(id);
    const configuration = await this.#configure(provider);
    const attempt = {
      ...{ provider: id, slug, state: client.randomState(), nonce: client.randomNonce() },
      verifier: client.randomPKCECodeVerifier(),
    };
    const url = client.buildAuthorizationUrl(configuration, {
      redirect_uri: this.#formatRedirect(id),
      code_challenge: await client.calculatePKCECodeChallenge(attempt.verifier),
      code_challenge_method: 'S256',
      state: attempt.state,
      ...(provider.scopes === '' ? {} : { scope: provider.scopes }),
      ...(hasIdentityTokens(provider) ? { nonce: attempt.nonce } : {}),
    });
    return { url: url.href, attempt };
  }

  /**
   * Ends a sign-in with what the provider sent the browser back with. Returns the account, sealed.
   *
   * @param answer the query of the redirect
   * @param attempt of this browser; undefined if it has none
   * @throws Problem (unknown-provider, sign-in-refused, sign-in-unavailable, forge-unreachable, ledger-unconfigured,
   * ledger-unavailable)
   */
  async complete(id: string, answer: URLSearchParams, attempt: SignInAttempt | undefined): Promise<string> {
    const provider = this.#findProvider(id);
    if (attempt?.provider !== id)
      throw refuse(provider, 'This browser has not begun this sign-in, or it took more than ten minutes.');
    await this.#useState(provider, attempt.state);
    const configuration = await this.#configure(provider);
    const redirect = new URL(this.#formatRedirect(id));
    redirect.search = answer.toString();
    const { access_token: token, expiresIn } = await this.#exchange(configuration, redirect, provider, attempt);
    if (token.length > maximumTokenLength)
      throw refuse(
        provider,
        'Its token is too long for a session. The operator of this installation can ask for fewer scopes.',
      );
    const login = await fetchAccount(provider, token);
    if (login === undefined)
      throw refuse(provider, 'Its API does not accept the token, so it is unknown which account signed in.');
    const seconds = Math.min(lifetimeSeconds, expiresIn ?? lifetimeSeconds);
    return this.#options.accounts.seal({ provider: id, login, token, expires: Date.now() + seconds * 1000 });
  }

  async #exchange(
    configuration: client.Configuration,
    redirect: URL,
    provider: SignInProvider,
    { state, nonce, verifier }: SignInAttempt,
  ): Promise<{ readonly access_token: string; readonly expiresIn: number | undefined }> {
    const openId = hasIdentityTokens(provider) ? { expectedNonce: nonce, idTokenExpected: true } : {};
    const checks = { expectedState: state, pkceCodeVerifier: verifier, ...openId };
    try {
      const tokens = await client.authorizationCodeGrant(configuration, redirect, checks);
      return { access_token: tokens.access_token, expiresIn: tokens.expiresIn() };
    } catch (error) {
      // What a provider writes is not shown: anyone can send a browser here with a text of theirs.
      const code = error instanceof Error && 'code' in error ? String(error.code) : 'unknown';
      this.#options.log.info({ provider: provider.id, code }, 'a sign-in was refused');
      throw refuse(provider, 'Its answer was refused, or it refused to sign you in.');
    }
  }

  /** Each sign-in ends once, at whichever replica. */
  async #useState(provider: SignInProvider, state: string): Promise<void> {
    const database = this.#options.database();
    await database.query(statements.clean, []);
    const hash = createHash('sha256').update(state).digest('hex');
    if ((await database.query(statements.use, [hash])).length === 0)
      throw refuse(provider, 'This sign-in has ended already.');
  }

  #findProvider(id: string): SignInProvider {
    const found = this.#options.providers.find((provider) => provider.id === id);
    if (found !== undefined) return found;
    const known = this.#options.providers.map((provider) => provider.id).join(', ');
    throw new Problem(unknownProvider, `This installation has no sign-in provider of this name. It has: ${known}.`);
  }

  #formatRedirect(id: string): string {
    return `${this.#options.baseUrl}/sign-in/${id}/callback`;
  }

  /** What is known of a provider, fetched once; again after a failure. @throws Problem (sign-in-unavailable) */
  async #configure(provider: SignInProvider): Promise<client.Configuration> {
    const known = this.#configurations.get(provider.id) ?? createConfiguration(provider);
    this.#configurations.set(provider.id, known);
    try {
      return await known;
    } catch (error) {
      this.#configurations.delete(provider.id);
      this.#options.log.warn({ provider: provider.id, err: error }, 'a sign-in provider cannot be reached');
      throw new Problem(
        signInUnavailable,
        `${provider.label} cannot be reached. Try again in a minute, or sign in with an author key.`,
        { headers: { 'retry-after': '60' } },
      );
    }
  }
}

/** The settings accept plain http on this machine alone, where a provider is tried out. */
// oxlint-disable-next-line typescript/no-deprecated -- the library marks it so that it stands out
const allowPlainHttp = client.allowInsecureRequests;

/** GitHub has OAuth without identity tokens. Its API says which account a token belongs to. */
function hasIdentityTokens({ forge }: SignInProvider): boolean {
  return forge !== 'github';
}

async function createConfiguration(provider: SignInProvider): Promise<client.Configuration> {
  const { issuer, clientId, clientSecret } = provider;
  // Signatures of identity tokens are checked too, although they come from the provider itself.
  const execute = [client.enableNonRepudiationChecks, ...(issuer.protocol === 'http:' ? [allowPlainHttp] : [])];
  if (hasIdentityTokens(provider)) {
    const options = { execute, timeout: limitSeconds };
    return client.discovery(issuer, clientId, undefined, client.ClientSecretPost(clientSecret), options);
  }
  const base = `${issuer.origin}/login/oauth`;
  const metadata = {
    issuer: base,
    authorization_endpoint: `${base}/authorize`,
    token_endpoint: `${base}/access_token`,
  };
  const authentication = client.ClientSecretPost(clientSecret);
  const configuration = new client.Configuration(metadata, clientId, undefined, authentication);
  // oxlint-disable-next-line typescript/no-deprecated -- as above
  if (issuer.protocol === 'http:') allowPlainHttp(configuration);
  configuration.timeout = limitSeconds;
  return configuration;
}

function refuse({ label }: SignInProvider, why: string): Problem {
  return new Problem(signInRefused, `You are not signed in with ${label}. ${why} Nothing was changed; start again.`);
}

// The endpoint that lists the forges.

const signInView = z.object({
  providers: z.array(
    z.object({
      id: z.string(),
      label: z.string(),
      host: z.string().describe('Git host whose repositories its accounts can own.'),
      url: z.string().describe('Where a browser signs in; add `?app=` and the name of an app.'),
    }),
  ),
});

export function createSignInEndpoints(providers: readonly SignInProvider[], baseUrl: string): Endpoint[] {
  return [
    defineEndpoint({
      method: 'GET',
      path: '/api/sign-in',
      operation: 'listSignInProviders',
      tag: 'apps',
      summary: 'List the forges with whose accounts authors sign in',
      description:
        'An account owns an app if the forge says that it can push to the repository. It is for browsers; programs send an author key or a token.',
      output: signInView,
      outputDescription: 'The providers.',
      problems: [signInUnconfigured],
      head: 'as GET',
      handler: async () => {
        if (providers.length === 0)
          throw new Problem(
            signInUnconfigured,
            'This installation has no sign-in providers: use an author key. Its operator can set signIn.providersSecret of the chart.',
          );
        const listed = providers.map(({ id, label, host }) => ({ id, label, host, url: `${baseUrl}/sign-in/${id}` }));
        return Promise.resolve({ providers: listed });
      },
    }),
  ];
}
