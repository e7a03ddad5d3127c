// Reports at the start what a router cannot do, so that nobody has to find out: models of models.yaml that it does not offer, and costs
// that it can never report.
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
