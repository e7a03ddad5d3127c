// Keeps the price list as it was announced: a version that was recorded is never changed, and a new one keeps its notice.
import type { Logger } from '../../../lib/log.ts';
import type { Database, PriceList, PriceVersion } from '../../billing/index.ts';
import { contentOf, daysBetween, readVersion } from '../../billing/index.ts';
import { readClock, recordVersion, versions } from './store/statements.ts';

/**
 * Records versions that are new, and from then on goes by what is recorded. What is configured otherwise is reported, and
 * has no effect.
 */
export async function keepPrices(
  database: Database,
  prices: PriceList,
  { noticeDays, log, now = null }: { noticeDays: number; log: Logger; now?: Date | null },
): Promise<void> {
  const recorded = await read(database);
  const [clock] = await database.query(readClock, [now]);
  const today = (clock?.now ?? new Date()).toISOString().slice(0, 10);
  const newest = [...recorded.values()].at(-1);
  for (const version of prices.versions) {
    const known = recorded.get(version.version);
    const fault = known === undefined ? faultOf(version, newest, today, noticeDays) : changeOf(known, version);
    if (fault !== undefined) log.error({ version: version.version }, `the price list: ${fault}`);
    else if (known === undefined)
      await database.query(recordVersion, [version.version, version.from, JSON.stringify(contentOf(version))]);
  }
  prices.replace([...(await read(database)).values()]);
}

/** The versions that were recorded, the oldest first. */
export async function recordedPrices(database: Database): Promise<PriceVersion[]> {
  return [...(await read(database)).values()];
}

async function read(database: Database): Promise<Map<string, PriceVersion>> {
  const rows = await database.query(versions, []);
  return new Map(rows.map(({ version, content }) => [version, readVersion(content)]));
}

/** Of a version that was recorded. */
function changeOf(known: PriceVersion, configured: PriceVersion): string | undefined {
  return JSON.stringify(contentOf(known)) === JSON.stringify(contentOf(configured))
    ? undefined
    : `version ${known.version} was announced with other prices, which stay in effect; announce a new version instead`;
}

/** Of a version that is not recorded yet. The first ones begin the list and need no notice. */
function faultOf(
  { version, from }: PriceVersion,
  newest: PriceVersion | undefined,
  today: string,
  noticeDays: number,
): string | undefined {
  if (newest === undefined) return undefined;
  if (from <= newest.from)
    return `version ${version} begins on ${from}, but ${newest.version} has been announced for ${newest.from}; set a later day`;
  return daysBetween(today, from) < noticeDays
    ? `version ${version} begins on ${from}, less than ${noticeDays} days from today (${today}); set a later day`
    : undefined;
}
