// The payer of a request: by the key in the Authorization header, else by the caller's address.
import { Problem } from '../../../lib/problem.ts';
import type { Caller, RequestContext } from '../../http/index.ts';
import { keyShape, type CallerKeys } from './keys.ts';
import { anonymousPayer, keyPayer, type Limits, type Payer } from '../../billing/index.ts';
import { keyRefused, routerUnavailable } from '../problems.ts';
import { RouterFailure } from '../router/failure.ts';

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

/** 401, with the scheme that is expected. */
export function refusedKey(detail: string): Problem {
  return new Problem(keyRefused, `${detail} Send a valid key, or omit the header to use the free quota.`, {
    headers: { 'www-authenticate': 'Bearer realm="moorage", error="invalid_token"' },
  });
}
