// The payer of a call of a tool or an app. Works without a router as long as no key is sent.
import { Problem } from '../../../lib/problem.ts';
import type { RequestContext } from '../../http/index.ts';
import type { ModelSettings } from '../config.ts';
import { identifyPayer, toAnonymousPayer } from './identify.ts';
import type { Limits, Payer } from '../../billing/index.ts';
import { modelsUnconfigured } from '../problems.ts';
import type { ModelServices } from '../services.ts';

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
