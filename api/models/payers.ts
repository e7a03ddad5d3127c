// Who pays for a request: the owner of the API key that it carries, a hosted app by its token, or the free quota of the caller's
// address. No router is needed as long as no key is sent.
import { Problem } from '../../lib/problem.ts';
import { type RequestContext, type Caller, createValidationProblem } from '../http/index.ts';
import type { ModelSettings } from './config.ts';
import {
  type Limits,
  type Payer,
  anonymousPayer,
  keyPayer,
  appPayer,
  type Money,
  parseMoney,
} from '../billing/index.ts';
import { modelsUnconfigured, refusedKey, keyRefused, routerUnavailable, appTokenRefused } from './problems.ts';
import type { ModelServices } from './model-endpoint.ts';
import { keyShape, type CallerKeys } from './caller-keys.ts';
import { RouterFailure } from './router/responses.ts';
import { parseAppName, isAppToken } from '../../lib/app-tokens.ts';
import { resolveSpec } from '../../crds/effective-settings.ts';
import type { StoredSpec } from '../../crds/hosted-app.ts';

interface PayersOptions {
  readonly limits: Limits;
  /** Whether a router is configured: only it can check a key. */
  readonly routerSet: boolean;
  /** @throws Problem (models-unconfigured, ledger-unavailable) */
  readonly services: () => Pick<ModelServices, 'keys' | 'limits'>;
}

export type PayerFor = (context: Pick<RequestContext, 'headers' | 'caller'>) => Promise<Payer>;

/** As the settings of models say. */
export function payersOf(
  settings: Pick<ModelSettings, 'router' | 'freeQuota' | 'dailyCap' | 'keyLimit'>,
  services: PayersOptions['services'],
): PayerFor {
  return payers({ limits: limitsOf(settings), routerSet: settings.router !== undefined, services });
}

export function limitsOf({
  router,
  freeQuota,
  dailyCap,
  keyLimit,
}: Pick<ModelSettings, 'router' | 'freeQuota' | 'dailyCap' | 'keyLimit'>): Limits {
  return { router: router?.kind ?? 'none', freeQuota, dailyCap, keyLimit };
}

/** @throws Problem (key-refused, router-unavailable, models-unconfigured) */
function payers({ limits, routerSet, services }: PayersOptions): PayerFor {
  return async (context) => {
    if (context.headers.get('authorization') === null) return toAnonymousPayer(context.caller(), limits);
    if (!routerSet)
      throw new Problem(
        modelsUnconfigured,
        'Your API key cannot be checked because no model router is configured. Omit the Authorization header to use the free quota. The operator of this installation can set MOORAGE_ROUTER_URL.',
      );
    const { keys, limits: known } = services();
    return identifyPayer(context, keys, known);
  };
}

/** Who pays. A key is checked with the router at most once a minute. */
export async function payerOf(services: ModelServices, context: RequestContext): Promise<Payer> {
  return identifyPayer(context, services.keys, services.limits);
}

/** Who pays for a request. @throws Problem (key-refused, router-unavailable) */
export async function identifyPayer(
  context: Pick<RequestContext, 'headers' | 'caller'>,
  keys: CallerKeys,
  limits: Limits,
): Promise<Payer> {
  const authorization = context.headers.get('authorization');
  if (authorization === null) return toAnonymousPayer(context.caller(), limits);
  const key = /^Bearer +(\S+)$/i.exec(authorization.trim())?.[1];
  if (key === undefined) throw refusedKey('The Authorization header must have the form `Bearer sk-…`.');
  return resolveKeyPayer(key, context, keys, limits);
}

/** The payer whose key this is. @throws Problem (key-refused, key-checks-limited, router-unavailable) */
export async function resolveKeyPayer(
  key: string,
  context: Pick<RequestContext, 'caller'>,
  keys: CallerKeys,
  limits: Limits,
): Promise<Payer> {
  if (!keyShape.test(key))
    throw refusedKey(
      key.startsWith('sk-')
        ? 'API keys for the model router have 1 to 250 letters, digits, "_", "-", "." and ":" after sk-.'
        : 'API keys for the model router begin with sk-.',
    );
  const hash = await keys.identify(key, context.caller().network).catch((error: unknown) => {
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
  if (hash === undefined) throw refusedKey('The model router does not know this API key, or has revoked it.');
  return keyPayer(hash, key, limits);
}

/** Who pays for a caller without a key: the networks of the address. */
export function toAnonymousPayer({ hash, network, subnet }: Caller, limits: Limits): Payer {
  return anonymousPayer(hash, limits, subnet === undefined ? undefined : { subnet, site: network });
}

export interface Door {
  readonly tokens: AppTokens;
  /**
   * Whether others than hosted apps may call, and hosted apps not. Closed where a request does not come through the
   * gateway, whose word on an address is trusted.
   */
  readonly open: boolean;
}

/** What clients that insist on a key send in place of one. */
export const noKey = 'anonymous';
const nothing = /^(?:Bearer(?: +anonymous)?)?$/i;

/**
 * Who pays for a call of /v1: on the port for hosted apps an app by its token, elsewhere a caller by their own key or the
 * free quota of an address. @throws Problem (app-token-refused, key-refused, router-unavailable, invalid-request)
 */
export async function v1PayerOf(
  context: RequestContext,
  services: ModelServices,
  { tokens, open }: Door,
): Promise<Payer> {
  const { limits, keys } = services;
  const given = readCredentials(context.headers);
  const token = /^Bearer +(\S+)$/i.exec(given)?.[1];
  if (!open) return resolveAppPayer(token, tokens, limits);
  // A token that has left its app, as in a log, opens nothing on the internet.
  if (token !== undefined && parseAppName(token) !== undefined)
    throw new Problem(
      appTokenRefused,
      'The token of a hosted app works only inside the cluster, at the address in its OPENAI_BASE_URL. Call this address with your own API key for the model router (Bearer sk-…), or without a key.',
      { headers: { 'www-authenticate': 'Bearer realm="moorage /v1", error="invalid_token"' } },
    );
  if (nothing.test(given)) return toAnonymousPayer(context.caller(), limits);
  if (token?.startsWith('sk-') === true) return resolveKeyPayer(token, context, keys, limits);
  throw new Problem(
    keyRefused,
    `The Authorization header is neither an API key for the model router (Bearer sk-…) nor the token of a hosted app. Omit it, or send "Bearer ${noKey}", to use models in the free tier on the free quota.`,
    { headers: { 'www-authenticate': 'Bearer realm="moorage /v1", error="invalid_token"' } },
  );
}

/** The Authorization header, or what it would be for the key in X-Api-Key. @throws Problem (invalid-request) where they differ */
function readCredentials(headers: Headers): string {
  const authorization = headers.get('authorization')?.trim() ?? '';
  const key = headers.get('x-api-key')?.trim() ?? '';
  if (key === '' || authorization === `Bearer ${key}`) return authorization;
  if (nothing.test(authorization)) return `Bearer ${key}`;
  throw createValidationProblem([
    {
      in: 'header',
      field: 'X-Api-Key',
      message: 'is another key than that of the Authorization header',
      fix: 'Send the key in one of the two headers.',
    },
  ]);
}

/** A hosted app, as far as its model calls are concerned. */
export interface ModelApp {
  readonly name: string;
  readonly uid: string;
  readonly enabled: boolean;
  /** USD a day, as decimal text. */
  readonly dailyBudgetUsd: string;
}

/** What of a hosted app matters here. */
export function modelAppOf(
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

/** Finds apps and proves who they are. */
export interface AppTokens {
  /** Undefined: this installation issues no tokens. */
  readonly secret: string | undefined;
  readonly find: (name: string) => ModelApp | undefined;
}

/** The app that a request comes from, as a payer. @throws Problem (app-token-refused) */
export function resolveAppPayer(token: string | undefined, tokens: AppTokens, limits: Limits): Payer {
  if (token === undefined)
    throw refused('No token was sent. Send Authorization: Bearer with the value of OPENAI_API_KEY.');
  const name = parseAppName(token);
  const app = name === undefined ? undefined : tokens.find(name);
  if (app === undefined || tokens.secret === undefined || !isAppToken(token, app, tokens.secret))
    throw refused('The token does not belong to a hosted app.');
  if (!app.enabled)
    throw refused(
      `Models are not enabled for ${app.name}. The operator of this installation can set spec.models.enabled.`,
    );
  const budget: Money = parseMoney(app.dailyBudgetUsd);
  return appPayer(app.name, budget, limits);
}

function refused(detail: string): Problem {
  return new Problem(appTokenRefused, detail, { headers: { 'www-authenticate': 'Bearer realm="moorage /v1"' } });
}
