// Finds out who calls a model, and so who pays: by the key in the Authorization header, else by the address.
import { Problem } from '../../../lib/problem.ts';
import type { RequestContext } from '../../http/index.ts';
import { keyShape, type CallerKeys } from './keys.ts';
import { anonymousPayer, keyPayer, type Limits, type Payer } from '../../billing/payer.ts';
import { keyRefused, routerUnavailable } from '../problems.ts';
import { RouterFailure } from '../router/failure.ts';

/** Who pays for a request. @throws Problem (key-refused, router-unavailable) */
export async function identifyPayer(
  context: Pick<RequestContext, 'headers' | 'caller'>,
  keys: CallerKeys,
  limits: Limits,
): Promise<Payer> {
  const authorization = context.headers.get('authorization');
  if (authorization === null) return anonymousPayer(context.caller().hash, limits);
  const key = /^Bearer +(\S+)$/i.exec(authorization.trim())?.[1];
  if (key === undefined) throw refusedKey('the Authorization header is not of the form `Bearer sk-…`');
  if (!keyShape.test(key))
    throw refusedKey('the bearer in the Authorization header is not a key of the model router: those begin with sk-');
  const hash = await keys.identify(key).catch((error: unknown) => {
    if (!(error instanceof RouterFailure)) throw error;
    throw new Problem(routerUnavailable, `your key could not be checked: ${error.message}; try again in 5 s`, {
      headers: { 'retry-after': '5' },
      cause: error,
    });
  });
  if (hash === undefined) throw refusedKey('the model router does not know this key, or has revoked it');
  return keyPayer(hash, key, limits);
}

/** 401, with the scheme that is expected. */
export function refusedKey(detail: string): Problem {
  return new Problem(keyRefused, `${detail}; send a valid one, or leave the header out to use the free quota`, {
    headers: { 'www-authenticate': 'Bearer realm="moorage", error="invalid_token"' },
  });
}
