// Who pays for a call of /v1: on the port for hosted apps an app by its token, elsewhere a caller by their own key or the
// free quota of an address.
import { appNameIn } from '../../../lib/app-token.ts';
import { Problem } from '../../../lib/problem.ts';
import type { Payer } from '../../billing/index.ts';
import type { RequestContext } from '../../http/index.ts';
import { identifyPayer, toAnonymousPayer } from '../callers/identify.ts';
import { keyShape } from '../callers/keys.ts';
import { appTokenRefused, keyRefused } from '../problems.ts';
import type { ModelServices } from '../services.ts';
import { appPayerOf, type AppTokens } from './apps.ts';

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

/** @throws Problem (app-token-refused, key-refused, router-unavailable) */
export async function v1PayerOf(
  context: RequestContext,
  services: ModelServices,
  { tokens, open }: Door,
): Promise<Payer> {
  const { limits, keys } = services;
  const given = context.headers.get('authorization')?.trim() ?? '';
  const token = /^Bearer +(\S+)$/i.exec(given)?.[1] ?? '';
  if (!open) return appPayerOf(context.headers, tokens, limits);
  // A token that has left its app, as in a log, opens nothing on the internet.
  if (appNameIn(token) !== undefined)
    throw new Problem(
      appTokenRefused,
      'The token of a hosted app works only inside the cluster, at the address in its OPENAI_BASE_URL. Call this address with your own API key for the model router (Bearer sk-…), or without a key.',
      { headers: { 'www-authenticate': 'Bearer realm="moorage /v1", error="invalid_token"' } },
    );
  if (nothing.test(given)) return toAnonymousPayer(context.caller(), limits);
  if (keyShape.test(token)) return identifyPayer(context, keys, limits);
  throw new Problem(
    keyRefused,
    `The Authorization header is neither an API key for the model router (Bearer sk-…) nor the token of a hosted app. Omit it, or send "Bearer ${noKey}", to use models in the free tier on the free quota.`,
    { headers: { 'www-authenticate': 'Bearer realm="moorage /v1", error="invalid_token"' } },
  );
}
