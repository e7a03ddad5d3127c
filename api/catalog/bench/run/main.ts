// `npm run bench:models`: benchmarks models live through a hosted app. Wiring only.
import { Registry } from 'prom-client';
import { z } from 'zod';
import { installationSettings } from '../../../../crds/installation-settings.ts';
import { readConfig } from '../../../../lib/config.ts';
import { createClient, readDefaultConnection, listenForShutdown } from '../../../../lib/kubernetes/index.ts';
import { createLog } from '../../../../lib/telemetry.ts';
import { type App, hostedApps } from '../../../apps/index.ts';
import { openLedger } from '../../../billing/index.ts';
import { readCatalog, readModelSettings } from '../../../models/index.ts';
import { readToolSettings, startWorkers } from '../../../tools/index.ts';
import { createScriptRunner } from '../grade.ts';
import { BenchWriter, type Release } from '../store.ts';
import { loadBenchmarks } from '../tasks/task.ts';
import { endMessages, readArguments, createRunReporter, createVisitReporter } from './command-line.ts';
import { runCampaign } from './runner.ts';
import { makeVisits } from './visit.ts';

const chosen = readArguments();
const log = createLog('bench');
const settings = readModelSettings();
const { MOORAGE_APPS_NAMESPACE: namespace } = readConfig(
  z.object({ MOORAGE_APPS_NAMESPACE: installationSettings.appsNamespace }),
);
const manifest = loadBenchmarks().find(({ app }) => app === chosen.app) ?? fail(`manifests/bench has no ${chosen.app}`);
const known = readCatalog(settings.modelsFile).ids;
const unknown = chosen.models.filter((model) => !known.includes(model));
if (unknown.length > 0) fail(`unknown models: ${unknown.join(', ')}; there are: ${known.join(', ')}`);
if (settings.databaseUrl === undefined) fail('set DATABASE_URL to the database of the API');

const shutdown = listenForShutdown({ log, limitMs: (manifest.timeout_seconds + 30) * 1_000 });
const client = await readDefaultConnection().then(
  (connection) => createClient(connection, { userAgent: 'moorage-bench' }),
  () => undefined,
);
const url =
  chosen.url ?? (await readApp())?.status?.url?.replace(/\/+$/, '') ?? fail(`${chosen.app} has no URL: set --url`);
const ledger = openLedger({ databaseUrl: settings.databaseUrl, registry: new Registry(), log });
const opened = (await ledger.opened) ?? fail('the database could not be opened');
const address = chosen.gateway === undefined ? { url } : { url: chosen.gateway, host: new URL(url).hostname };

const { database } = opened;
const { signal } = shutdown;
const isVisited = await makeVisits({
  database,
  address,
  manifest,
  count: chosen.visits,
  release: readRelease,
  signal,
  report: createVisitReporter(process.stdout),
});
if (!isVisited) process.stdout.write('No first visits: another benchmark uses this app.\n');
const workers = startWorkers(readToolSettings());

const { end, costsPending } = await runCampaign({
  writer: new BenchWriter(database),
  choice: { manifest, models: chosen.models, runs: chosen.runs, seed: chosen.seed },
  ...address,
  release: readRelease,
  runScript: createScriptRunner(workers),
  report: createRunReporter(process.stdout),
  signal,
});
await workers.close();
await ledger.close();
client?.close();
if (costsPending > 0)
  process.stdout.write(`${costsPending} costs are not known yet; the API continues to look for them\n`);
process.stdout.write(`${endMessages[end]}\n`);
process.exit(end === 'finished' ? 0 : 1);

async function readApp(): Promise<App | undefined> {
  return client?.get(hostedApps, { namespace, name: chosen.app }).catch(() => undefined);
}

/** What of the release cannot be read is not known. */
async function readRelease(): Promise<Release> {
  const served = (await readApp())?.status?.served;
  return { commit: served?.commit ?? null, image: served?.image ?? null, router: settings.router?.kind ?? null };
}

function fail(message: string): never {
  process.stderr.write(`${message}\n`);
  process.exit(1);
}
