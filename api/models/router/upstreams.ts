// Reports at the start what a router cannot do, so that nobody has to find out: models of models.yaml that it does not offer, costs
// that it can never report, and a platform key that it does not limit.
import type { Logger } from '../../../lib/log.ts';
import type { Catalog } from '../catalog.ts';
import type { RouterClient } from './client.ts';

/** The models whose `upstream` is not in the router's list. @throws RouterFailure when it has none */
export async function unknownUpstreams(
  { models }: Pick<Catalog, 'models'>,
  router: Pick<RouterClient, 'offers'>,
): Promise<string[]> {
  const offered = await router.offers();
  return models
    .filter(({ upstream }) => !offered.has(upstream))
    .map(({ id, upstream }) => `${id} (upstream ${upstream})`);
}

/** Logs them. A router that is unreachable, or has no list, stops nothing: calls will show what it offers. */
export async function reportUnknownUpstreams(catalog: Catalog, router: RouterClient, log: Logger): Promise<void> {
  try {
    const unknown = await unknownUpstreams(catalog, router);
    if (unknown.length > 0)
      log.error(
        { models: unknown, router: router.name },
        'the router does not offer these models; set their upstream in models.yaml to names that it knows',
      );
  } catch (error) {
    log.warn(
      { err: error, router: router.name },
      'cannot list the models of the router, so models.yaml was not checked',
    );
  }
}

/** Logs that the cost of a call that breaks off can only be estimated, where that is so. */
export async function reportMissingRecords(router: RouterClient, log: Logger): Promise<void> {
  try {
    const why = await router.missingRecords();
    if (why !== undefined)
      log.warn(
        { router: router.name, why },
        `this router cannot bill aborted streams: ${why}. What they cost is settled at an estimate (tokens at list prices), and may differ from the bill`,
      );
  } catch (error) {
    log.warn({ err: error, router: router.name }, 'cannot ask the router whether it keeps records of calls');
  }
}

/** Warns where nothing at the router bounds what the platform key may spend if our own limits fail. */
export async function reportPlatformLimit(
  router: Pick<RouterClient, 'name' | 'platformLimit' | 'limitAdvice'>,
  log: Logger,
): Promise<void> {
  const limit = await router.platformLimit();
  if (limit.outcome === 'limited') {
    log.info({ router: router.name, limit_usd: limit.usd, per: limit.per }, 'the router limits the platform key');
    return;
  }
  log.warn(
    { router: router.name, ...(limit.outcome === 'not known' ? { why: limit.why } : {}) },
    `${limit.outcome === 'unlimited' ? 'the router has no limit on what the platform key may spend' : 'cannot see whether the router limits what the platform key may spend'}: ${router.limitAdvice} (docs/guides/operator.md#limit-the-platform-key)`,
  );
}
