// Benchmarks as the API shows them, made from what runs add up to.
import type { Database } from '../../billing/index.ts';
import { type Measurements, formatVerdict } from './measurements.ts';
import { type AppRecords, readApp, readIndex } from './store.ts';
import { type Campaign, errorClasses, type Summary } from './statements.ts';
import type { BenchmarkManifest } from './tasks/task.ts';
import { type BenchmarkDetail, type BenchmarkEntry, benchmarkEntry, type ModelView } from './views.ts';

export interface BenchmarkSource {
  /** @throws Problem while there is no database */
  readonly database: () => Database;
  /** Like https://moorage.localhost, without a slash at the end. */
  readonly baseUrl: string;
  readonly manifests: readonly BenchmarkManifest[];
  readonly measurements: Measurements;
}

const method =
  'Every run is registered before it starts and published, whatever becomes of it. A run sends a fresh instance of a task to the hosted app by HTTP, as a visitor would; the app asks the model under test at /v1. Pass or fail is decided by a grader, the cost is what the router billed for the model calls of the run, the latency is that of the whole answer. Quality leaves out runs in which the upstream of the model was out, or a limit of this installation refused the call; delivered counts them as failed. Rates have 95 % Wilson intervals. Models are compared by paired differences over tasks, with errors clustered by task, adjusted for the number of pairs. Cost per success is the cost of all runs divided by those that passed.';

/** The benchmark of an app, or undefined where none was ever registered. */
export async function readBenchmark(source: BenchmarkSource, slug: string): Promise<BenchmarkDetail | undefined> {
  const records = await readApp(source.database(), slug);
  const [campaign] = records.campaigns;
  if (campaign === undefined) return undefined;
  const { registered = 0, running = 0, interrupted = 0 } = records.unfinished;
  const { models, pairs } = source.measurements.getMeasurement(slug, records.summaries);
  return {
    ...createCommonFields(source, campaign, records.summaries, { models, pairs, open: registered + running }),
    app: { commit: records.release.commit, image: records.release.image },
    router: records.release.router,
    method,
    unfinished: { registered, running, interrupted },
    models: [...models],
    pairs: [...pairs],
    tasks: listTasks(source, records),
    errors: sumErrors(models.map(({ errors }) => errors)),
    campaigns: records.campaigns.map(toCampaignView),
  };
}

/** The entry of one app in the index; undefined where no benchmark of it was ever registered. */
export async function readEntry(source: BenchmarkSource, slug: string): Promise<BenchmarkEntry | undefined> {
  const detail = await readBenchmark(source, slug);
  if (detail === undefined) return undefined;
  return benchmarkEntry.parse({ ...detail, models: detail.models.length, tasks: detail.tasks.length });
}

/** All benchmarks, by slug. */
export async function readBenchmarks(source: BenchmarkSource): Promise<BenchmarkEntry[]> {
  const campaigns = await readIndex(source.database());
  return campaigns.map(({ campaign, summaries }) => {
    const { models, pairs } = source.measurements.getMeasurement(campaign.app, summaries);
    return {
      ...createCommonFields(source, campaign, summaries, { models, pairs, open: countPlannedRuns(campaign) }),
      models: models.length,
      tasks: new Set(summaries.map(({ task }) => task).filter((task) => task !== '')).size,
    };
  });
}

/** Number of runs of a campaign in which no run has finished. */
const countPlannedRuns = ({ models, tasks, runs }: Campaign): number => models.length * tasks.length * runs;

type CommonFields = Omit<BenchmarkEntry, 'models' | 'tasks'>;

function createCommonFields(
  { baseUrl, manifests }: BenchmarkSource,
  { app, registered_at }: Campaign,
  summaries: readonly Summary[],
  findings: Parameters<typeof formatVerdict>[0],
): CommonFields {
  const { en, zh } = formatVerdict(findings);
  const last = Math.max(registered_at.getTime(), ...summaries.map(({ updated }) => updated.getTime()));
  return {
    slug: app,
    title: manifests.find((manifest) => manifest.app === app)?.title ?? app,
    verdict: en,
    verdict_zh: zh,
    updated: new Date(last).toISOString(),
    runs: findings.models.reduce((sum, { runs }) => sum + runs, 0),
    page: `${baseUrl}/bench/${app}`,
    data_url: `${baseUrl}/api/bench/${app}/runs.jsonl`,
    csv_url: `${baseUrl}/api/bench/${app}/runs.csv`,
    license: 'CC BY 4.0',
  };
}

/** The tasks that were run, as the newest campaign with each had it. */
function listTasks({ manifests }: BenchmarkSource, { campaigns }: AppRecords): BenchmarkDetail['tasks'] {
  const known = new Map(manifests.flatMap(({ tasks }) => tasks).map((task) => [task.slug, task]));
  const run = new Map([...campaigns].reverse().flatMap(({ tasks }) => tasks.map((task) => [task.task, task] as const)));
  return [...run.values()].map(({ task: slug, born, hash }) => ({
    slug,
    title: known.get(slug)?.title ?? slug,
    title_zh: known.get(slug)?.title_zh ?? slug,
    born,
    hash,
  }));
}

function toCampaignView(campaign: Campaign): BenchmarkDetail['campaigns'][number] {
  const { id, models, runs, seed, held_back_hash, attribution, parameters, registered_at, finished_at } = campaign;
  return {
    id,
    registered_at: registered_at.toISOString(),
    finished_at: finished_at?.toISOString() ?? null,
    models,
    runs,
    seed,
    held_back_hash,
    attribution,
    parameters,
  };
}

function sumErrors(all: readonly ModelView['errors'][]): ModelView['errors'] {
  const counted = errorClasses.map(
    (error) => [error, all.reduce((sum, errors) => sum + (errors[error] ?? 0), 0)] as const,
  );
  return Object.fromEntries(counted.filter(([, count]) => count > 0));
}
