// Who pays for a call of /v1: on the port for hosted apps an app by its token, elsewhere a caller by their own key or the
// free quota of an address.
import { appNameIn } from '../../../lib/app-token.ts';
import { Problem } from '../../../lib/problem.ts';
import type { Payer } from '../../billing/index.ts';
import { createValidationProblem, type RequestContext } from '../../http/index.ts';
import { resolveKeyPayer, toAnonymousPayer } from '../callers/identify.ts';
import { appTokenRefused, keyRefused } from '../problems.ts';
import type { ModelServices } from '../services.ts';
import { resolveAppPayer, type AppTokens } from './apps.ts';

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

/** @throws Problem (app-token-refused, key-refused, router-unavailable, invalid-request) */
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
  if (token !== undefined && appNameIn(token) !== undefined)
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
