// Who pays for a request: the owner of the API key that it carries, a hosted app by its token, or the free quota of the
// caller's address. And which models they may use.
import { resolveSpec } from '../../crds/effective-settings.ts';
import type { StoredSpec } from '../../crds/hosted-app.ts';
import { parseAppName, isAppToken } from '../../lib/app-tokens.ts';
import { Problem } from '../../lib/problem.ts';
import {
  createAnonymousPayer,
  createAppPayer,
  createKeyPayer,
  type Limits,
  parseMoney,
  type Payer,
} from '../billing/index.ts';
import { createValidationProblem, type RequestContext } from '../http/index.ts';
import { type CallerKeys, keyShape } from './caller-keys.ts';
import type { Model } from './catalog.ts';
import type { ModelSettings } from './config.ts';
import { appTokenRefused, createKeyRefusal, keyRefused, keyRequired, routerUnavailable } from './problems.ts';
import { RouterFailure } from './router/failures.ts';

export interface PayerRules {
  readonly limits: Limits;
  /** Checks keys. @throws Problem (models-unconfigured, ledger-unavailable) while no router is there to check one */
  readonly keys: () => CallerKeys;
}

/** Resolves the payer of a request. @throws Problem (key-refused, router-unavailable, models-unconfigured) */
export type PayerFor = (context: Pick<RequestContext, 'headers' | 'caller'>) => Promise<Payer>;

/** The port that a request for /v1 arrived on. */
export interface Door {
  readonly tokens: AppTokens;
  /**
   * Whether others than hosted apps may call, and hosted apps not. Closed where a request does not come through the
   * gateway, whose word on an address is trusted.
   */
  readonly open: boolean;
}

/** Finds apps and proves who they are. */
export interface AppTokens {
  /** Undefined: this installation issues no tokens. */
  readonly secret: string | undefined;
  readonly find: (name: string) => ModelApp | undefined;
}

/** A hosted app, as far as its model calls are concerned. */
export interface ModelApp {
  readonly name: string;
  readonly uid: string;
  readonly enabled: boolean;
  /** USD a day, as decimal text. */
  readonly dailyBudgetUsd: string;
}

/**
 * Resolves who pays for a request. With a door, by the rules of /v1: on the port for hosted apps an app by its token,
 * elsewhere as OpenAI clients send a key. Without a key, no router is needed. @throws Problem (key-refused,
 * key-checks-limited, app-token-refused, router-unavailable, models-unconfigured, ledger-unavailable, invalid-request)
 */
export async function resolvePayer(
  context: Pick<RequestContext, 'headers' | 'caller'>,
  { limits, keys }: PayerRules,
  door?: Door,
): Promise<Payer> {
  if (door?.open === false) return resolveAppPayer(readToken(readV1Credentials(context.headers)), door.tokens, limits);
  const key = door === undefined ? readKey(context.headers) : readV1Key(context.headers);
  if (key === undefined) {
    const { hash, network, subnet } = context.caller();
    return createAnonymousPayer(hash, limits, subnet === undefined ? undefined : { subnet, site: network });
  }
  return resolveKeyPayer(key, () => context.caller().network, keys(), limits);
}

/** Creates the function that resolves who pays for a request that does not come by a door of /v1. */
export function createPayerResolver(rules: PayerRules): PayerFor {
  return (context) => resolvePayer(context, rules);
}

/** Refuses premium models to a caller without a key. @throws Problem (key-required) */
export function allowModels(
  models: readonly Pick<Model, 'id' | 'tier'>[],
  payer: Payer,
  catalog: { readonly models: readonly Pick<Model, 'id' | 'tier'>[] },
): void {
  const premium = [...new Set(models.filter(({ tier }) => tier === 'premium').map(({ id }) => id))];
  if (payer.kind === 'key' || premium.length === 0) return;
  const free = catalog.models.filter(({ tier }) => tier === 'free').map(({ id }) => id);
  throw new Problem(
    keyRequired,
    `${premium.join(', ')} ${premium.length === 1 ? 'requires' : 'require'} your own API key. Send Authorization: Bearer sk-…, or choose one of: ${free.join(', ')}.`,
    {
      headers: { 'www-authenticate': 'Bearer realm="moorage"' },
      members: {
        models: premium,
        actions: [
          {
            action: 'use-own-key',
            description: 'Send your own API key for the model router.',
            header: 'Authorization: Bearer sk-…',
          },
          { action: 'use-free-model', description: 'Choose a model in the free tier.', models: free },
        ],
      },
    },
  );
}

/** The limits of an installation by its settings. */
export function readLimits({
  router,
  freeQuota,
  dailyCap,
  keyLimit,
}: Pick<ModelSettings, 'router' | 'freeQuota' | 'dailyCap' | 'keyLimit'>): Limits {
  return { router: router?.kind ?? 'none', freeQuota, dailyCap, keyLimit };
}

/** What of a hosted app matters for its model calls. */
export function toModelApp(
  app:
    | {
        readonly metadata: { readonly name: string; readonly uid: string };
        readonly spec: StoredSpec;
      }
    | undefined,
): ModelApp | undefined {
  if (app === undefined) return undefined;
  const { name, uid } = app.metadata;
  const { models, suspend } = resolveSpec(app, undefined);
  return { name, uid, enabled: models.enabled && !suspend, dailyBudgetUsd: models.dailyBudgetUsd };
}

/** The key in the Authorization header; undefined without one. */
function readKey(headers: Headers): string | undefined {
  const authorization = headers.get('authorization');
  if (authorization === null) return undefined;
  const key = readToken(authorization.trim());
  if (key === undefined) throw createKeyRefusal('The Authorization header must have the form `Bearer sk-…`.');
  return key;
}

/** What clients that insist on a key send instead of one. */
export const noKey = 'anonymous';
const isWithoutKey = /^(?:Bearer(?: +anonymous)?)?$/i;

/** The key that an OpenAI client sends; undefined without one. */
function readV1Key(headers: Headers): string | undefined {
  const credentials = readV1Credentials(headers);
  const token = readToken(credentials);
  // A token that has left its app, as in a log, opens nothing on the internet.
  if (token !== undefined && parseAppName(token) !== undefined)
    throw new Problem(
      appTokenRefused,
      'The token of a hosted app works only inside the cluster, at the address in its OPENAI_BASE_URL. Call this address with your own API key for the model router (Bearer sk-…), or without a key.',
      { headers: { 'www-authenticate': 'Bearer realm="moorage /v1", error="invalid_token"' } },
    );
  if (isWithoutKey.test(credentials)) return undefined;
  if (token?.startsWith('sk-') === true) return token;
  throw new Problem(
    keyRefused,
    `The Authorization header is neither an API key for the model router (Bearer sk-…) nor the token of a hosted app. Omit it, or send "Bearer ${noKey}", to use models in the free tier on the free quota.`,
    { headers: { 'www-authenticate': 'Bearer realm="moorage /v1", error="invalid_token"' } },
  );
}

/** The Authorization header, or what it would be for the key in X-Api-Key. @throws Problem (invalid-request) where they differ */
function readV1Credentials(headers: Headers): string {
  const authorization = headers.get('authorization')?.trim() ?? '';
  const key = headers.get('x-api-key')?.trim() ?? '';
  if (key === '' || authorization === `Bearer ${key}`) return authorization;
  if (isWithoutKey.test(authorization)) return `Bearer ${key}`;
  throw createValidationProblem([
    {
      in: 'header',
      field: 'X-Api-Key',
      message: 'is another key than that of the Authorization header',
      fix: 'Send the key in one of the two headers.',
    },
  ]);
}

function readToken(authorization: string): string | undefined {
  return /^Bearer +(\S+)$/i.exec(authorization)?.[1];
}

/** The owner of a key, once the router knows it. */
async function resolveKeyPayer(key: string, network: () => string, keys: CallerKeys, limits: Limits): Promise<Payer> {
  if (!keyShape.test(key))
    throw createKeyRefusal(
      key.startsWith('sk-')
        ? 'API keys for the model router have 1 to 250 letters, digits, "_", "-", "." and ":" after sk-.'
        : 'API keys for the model router begin with sk-.',
    );
  const hash = await keys.identify(key, network()).catch((error: unknown) => {
    if (!(error instanceof RouterFailure)) throw error;
    throw new Problem(
      routerUnavailable,
      `Your API key could not be checked: ${error.message}. Try again in 5 seconds.`,
      {
        headers: { 'retry-after': '5' },
        cause: error,
      },
    );
  });
  if (hash === undefined) throw createKeyRefusal('The model router does not know this API key, or has revoked it.');
  return createKeyPayer(hash, key, limits);
}

/** The app that a token belongs to. */
function resolveAppPayer(token: string | undefined, tokens: AppTokens, limits: Limits): Payer {
  if (token === undefined)
    throw createTokenRefusal('No token was sent. Send Authorization: Bearer with the value of OPENAI_API_KEY.');
  const name = parseAppName(token);
  const app = name === undefined ? undefined : tokens.find(name);
  if (app === undefined || tokens.secret === undefined || !isAppToken(token, app, tokens.secret))
    throw createTokenRefusal('The token does not belong to a hosted app.');
  if (!app.enabled)
    throw createTokenRefusal(
      `Models are not enabled for ${app.name}. The operator of this installation can set spec.models.enabled.`,
    );
  return createAppPayer(app.name, parseMoney(app.dailyBudgetUsd), limits);
}

function createTokenRefusal(detail: string): Problem {
  return new Problem(appTokenRefused, detail, { headers: { 'www-authenticate': 'Bearer realm="moorage /v1"' } });
}
