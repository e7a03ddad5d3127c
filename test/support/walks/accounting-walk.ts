// The walk of one access-log record: from the internal port of the API over a real PostgreSQL to the share in the statement of
// the app's author. The periodic tasks of metering and revenue run when the walk needs them, not at their intervals.
import { BlockList } from 'node:net';
import { startHealthServer } from '../../../lib/kubernetes/index.ts';
import { createRegistry } from '../../../lib/telemetry.ts';
import { startMetering } from '../../../api/accounting/metering/index.ts';
import { contentTypes } from '../../../api/accounting/metering/log-receiver.ts';
import { writeRequest } from '../../../api/accounting/metering/shipper/sender.ts';
import { noteAuthors, readStatement, startPosting } from '../../../api/accounting/revenue/statement.ts';
import { readAuthorship } from '../../../api/apps/index.ts';
import {
  type LedgerHandle,
  openLedger,
  type OpenLedger,
  parseMoney,
  readPriceList,
} from '../../../api/billing/index.ts';
import { baseUrl, sampleApp, sampleApps, silent, site } from '../api/sample.ts';
import { startPostgres } from '../ledger/postgres.ts';
import type { StartedWalk, Walk } from './walks.ts';

const token = 'a token of the walks that is long enough';
const dayMs = 86_400_000;
/** So long that no month of the walk is final. */
const disputeDays = 180;

/** Tasks by name, with a ledger that keeps them instead of repeating them. */
function holdTasks(ledger: LedgerHandle): {
  readonly ledger: LedgerHandle;
  readonly run: (...names: readonly string[]) => Promise<void>;
} {
  const tasks = new Map<string, () => Promise<number>>();
  const hold = (opened: OpenLedger): OpenLedger => ({
    ...opened,
    repeat: (name, _everyMs, run) => void tasks.set(name, run),
  });
  return {
    ledger: { ...ledger, opened: ledger.opened.then((opened) => opened && hold(opened)) },
    async run(...names) {
      for (const name of names) {
        const task = tasks.get(name);
        if (task === undefined) throw new Error(`there is no task ${name}`);
        await task();
      }
    },
  };
}

/** The request of a shipper with the one record of a visit. */
function encodeVisit(number: number, start: Date): { readonly day: string; readonly body: Uint8Array<ArrayBuffer> } {
  const record = {
    RequestCount: number,
    StartUTC: start.toISOString(),
    Duration: 1_000_000,
    DownstreamStatus: 200,
    RequestHost: `visited.${site.domain}`,
    RequestPath: '/',
    RequestMethod: 'GET',
    ClientHost: `198.51.100.${number}`,
  };
  const body = writeRequest({ resource: { 'service.instance.id': 'gateway' }, records: [record] });
  return { day: start.toISOString().slice(0, 10), body: new Uint8Array(body) };
}

async function startAccounting(): Promise<StartedWalk> {
  const postgres = await startPostgres();
  const registry = createRegistry();
  const databaseUrl = await postgres.createDatabase('walks');
  const { ledger, run } = holdTasks(openLedger({ databaseUrl, registry, log: silent }));
  const app = sampleApp('visited');
  const { apps } = sampleApps(app);
  const { routes } = startMetering({
    settings: { token, graceMs: 3_600_000 },
    ledger,
    apps: { apps, site },
    baseUrl,
    callers: { salt: 'a salt of the walks', trustedProxies: new BlockList() },
    keepDays: 400,
    registry,
    log: silent,
  });
  const opened = await ledger.opened;
  if (opened === undefined) throw new Error('the ledger is not open');
  const prices = readPriceList(undefined, 0);
  startPosting(opened, { apps, prices, budget: parseMoney('1000'), disputeDays });
  const { database } = opened;
  const { author } = readAuthorship(app);
  await noteAuthors(database, [readAuthorship(app)], new Date(Date.now() - 34 * dayMs));
  const server = await startHealthServer({
    port: 0,
    host: '127.0.0.1',
    registry,
    routes,
    liveness: [],
    readiness: [],
  });

  // Each visit is on a day of its own, so that its share is the first of that day. What a shipper would do is not measured.
  const visits = Array.from({ length: 30 }, (_, index) =>
    encodeVisit(index + 1, new Date(Date.now() - (32 - index) * dayMs)),
  );
  async function visit(): Promise<string> {
    const next = visits.shift();
    if (next === undefined) throw new Error('there are no more days');
    const response = await fetch(`http://127.0.0.1:${server.port}/v1/logs`, {
      method: 'POST',
      headers: { 'content-type': contentTypes.protobuf, authorization: `Bearer ${token}` },
      body: next.body,
    });
    if (!response.ok) throw new Error(`the receiver answered with ${response.status}: ${await response.text()}`);
    return next.day;
  }

  return {
    async take() {
      const day = await visit();
      await run('sum up uses', 'post shares');
      const statement = await readStatement(database, {
        ...{ author, month: day.slice(0, 7), baseUrl, disputeDays },
        buildEventsUrl: (line) => `${baseUrl}/lines/${line}`,
      });
      if (!statement.lines.some((line) => line.day === day)) throw new Error(`the statement has no share of ${day}`);
    },
    async stop() {
      await server.close();
      await ledger.close();
      await postgres.stop();
    },
  };
}

export const accountingWalks: readonly Walk[] = [
  {
    name: 'visit',
    title: "A visit of an app, from the gateway's access-log record to the share in its author's statement",
    target: 12,
    settleMs: 150,
    runs: 6,
    start: startAccounting,
  },
];
