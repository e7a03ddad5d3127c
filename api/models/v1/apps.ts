// The hosted app that calls /v1, and its daily budget.
import { Problem } from '../../../lib/problem.ts';
import { appNameIn, isTokenOf } from '../../../lib/app-token.ts';
import { resolveSpec } from '../../../crds/effective-settings.ts';
import type { StoredSpec } from '../../../crds/hosted-app.ts';
import { appPayer, type Limits, type Money, parseMoney, type Payer } from '../../billing/index.ts';
import { appTokenRefused } from '../problems.ts';

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
  const name = appNameIn(token);
  const app = name === undefined ? undefined : tokens.find(name);
  if (app === undefined || tokens.secret === undefined || !isTokenOf(token, app, tokens.secret))
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
