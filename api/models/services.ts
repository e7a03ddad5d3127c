// What the model endpoints depend on.
import type { IdempotencyKeys, Limits } from '../billing/index.ts';
import type { Catalog } from './catalog.ts';
import type { CallerKeys } from './callers/keys.ts';
import type { MeteredRouter } from './metered/metered-router.ts';
import type { Assignments } from './v1/assignments.ts';

export interface ModelServices {
  readonly router: MeteredRouter;
  readonly keys: CallerKeys;
  /** Models that benchmark runs have assigned to apps. */
  readonly assignments: Assignments;
  readonly limits: Limits;
  /** Where the pages of problems are. */
  readonly baseUrl: string;
  readonly idempotency: IdempotencyKeys;
  readonly maxTokens: { readonly default: number; readonly max: number };
}

export interface ModelEndpointsOptions {
  readonly catalog: Catalog;
  readonly maxTokens: ModelServices['maxTokens'];
  /** The services. @throws Problem (models-unconfigured, ledger-unavailable) while there are none */
  readonly services: () => ModelServices;
}
