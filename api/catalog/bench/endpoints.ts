// Endpoints of benchmarks: the index, one benchmark, and every run as a CSV or JSON lines download.
import { z } from 'zod';
import { toCsvLine } from '../../../lib/values.ts';
import { type Problem, createUnknownNameProblem } from '../../../lib/problem.ts';
import { type Database, ledgerUnavailable, ledgerUnconfigured } from '../../billing/index.ts';
import { defineEndpoint, type Endpoint } from '../../http/index.ts';
import { type BenchmarkSource, readBenchmark, readBenchmarks } from './benchmark.ts';
import type { Run } from './statements.ts';
import { readRuns } from './store.ts';
import { benchmarkDetail, benchmarkList, unknownBenchmark } from './views.ts';

const params = z.strictObject({ slug: z.string().min(1).max(63).describe('Slug of the app') });
/** A run takes seconds. */
const maxAgeSeconds = 15;
const csvType = 'text/csv';
const jsonLinesType = 'application/jsonl';
const unavailable = [ledgerUnavailable, ledgerUnconfigured];

export function createBenchEndpoints(source: BenchmarkSource): Endpoint[] {
  return [
    createIndexEndpoint(source),
    createDetailEndpoint(source),
    ...downloads.map((download) => createDownloadEndpoint(source, download)),
  ];
}

function createIndexEndpoint(source: BenchmarkSource): Endpoint {
  return defineEndpoint({
    method: 'GET',
    head: 'as GET',
    path: '/api/bench',
    operation: 'listBenchmarks',
    tag: 'catalog',
    summary: 'List the benchmarks',
    description:
      'Benchmarks of models, measured live through hosted apps, each with a one-line verdict derived from its data. CC BY 4.0.',
    output: benchmarkList,
    outputDescription: 'The benchmarks, by slug of the app.',
    maxAgeSeconds,
    problems: unavailable,
    handler: () => readBenchmarks(source),
  });
}

function createDetailEndpoint(source: BenchmarkSource): Endpoint {
  return defineEndpoint({
    method: 'GET',
    head: 'as GET',
    path: '/api/bench/{slug}',
    operation: 'getBenchmark',
    tag: 'catalog',
    summary: 'Get the benchmark of an app',
    description:
      'Pass rates with intervals, billed cost and latency per model and task, and pairwise comparisons of models. Quality excludes upstream outages; delivered counts them as failed. CC BY 4.0.',
    params,
    output: benchmarkDetail,
    outputDescription: 'The benchmark.',
    maxAgeSeconds,
    problems: [unknownBenchmark, ...unavailable],
    handler: async ({ params: { slug } }) => (await readBenchmark(source, slug)) ?? throwUnknown(source, slug),
  });
}

interface Download {
  readonly path: string;
  readonly operation: string;
  readonly summary: string;
  readonly outputDescription: string;
  readonly mediaType: string;
  readonly make: typeof createCsvResponse;
}

const downloads: readonly Download[] = [
  {
    path: '/api/bench/{slug}/runs.csv',
    operation: 'downloadBenchmarkCsv',
    summary: 'Download every run of a benchmark as CSV',
    outputDescription: 'A header, then one line per run.',
    mediaType: csvType,
    make: createCsvResponse,
  },
  {
    path: '/api/bench/{slug}/runs.jsonl',
    operation: 'downloadBenchmarkJsonLines',
    summary: 'Download every run of a benchmark as JSON lines',
    outputDescription: 'One JSON object per run and line.',
    mediaType: jsonLinesType,
    make: createJsonLinesResponse,
  },
];

function createDownloadEndpoint(source: BenchmarkSource, { mediaType, make, ...described }: Download): Endpoint {
  return defineEndpoint({
    method: 'GET',
    head: 'as GET',
    ...described,
    tag: 'catalog',
    description: 'Every registered run, including those that never finished, in the order of registration. CC BY 4.0.',
    params,
    output: z.string(),
    produces: [mediaType],
    problems: [unknownBenchmark, ...unavailable],
    handler: async ({ params: { slug } }) => {
      await assertBenchmarkExists(source, slug);
      return make(source.database(), slug);
    },
  });
}

async function assertBenchmarkExists(source: BenchmarkSource, slug: string): Promise<void> {
  const all = await readBenchmarks(source);
  if (!all.some((one) => one.slug === slug))
    throw createUnknownProblem(
      slug,
      all.map((one) => one.slug),
    );
}

async function throwUnknown(source: BenchmarkSource, slug: string): Promise<never> {
  throw createUnknownProblem(
    slug,
    (await readBenchmarks(source)).map((one) => one.slug),
  );
}

function createUnknownProblem(slug: string, slugs: readonly string[]): Problem {
  return createUnknownNameProblem(unknownBenchmark, {
    says: 'There is no benchmark for',
    name: slug,
    names: slugs,
    all: 'GET /api/bench lists all benchmarks.',
  });
}

export const columns = [
  'id',
  'campaign',
  'app',
  'model',
  'task',
  'number',
  'attempt',
  'held_back',
  'task_hash',
  'instance',
  'state',
  'app_commit',
  'image',
  'router',
  'parameters',
  'passed',
  'score',
  'cost_usd',
  'cost_state',
  'model_calls',
  'tokens_in',
  'tokens_out',
  'latency_ms',
  'error',
  'detail',
  'output_hash',
  'registered_at',
  'started_at',
  'at',
] as const satisfies readonly (keyof Run)[];

/** The header, then a line for each run. */
export function createCsvResponse(database: Database, app: string): Response {
  return createDownload(streamLines(database, app, formatCsvLine, toCsvLine(columns)), csvType, `${app}-runs.csv`);
}

/** A JSON object a line. */
export function createJsonLinesResponse(database: Database, app: string): Response {
  return createDownload(streamLines(database, app, formatJsonLine), jsonLinesType, `${app}-runs.jsonl`);
}

export function formatCsvLine(run: Run): string {
  return toCsvLine(columns.map((column) => run[column]));
}

/** Writes the cost digit by digit, because a float would round it. */
function formatJsonLine(run: Run): string {
  const { cost_usd: cost, ...fields } = run;
  const text = JSON.stringify({ ...fields, cost_usd: null });
  return `${cost === null ? text : text.replace(/"cost_usd":null\}$/, `"cost_usd":${cost}}`)}\n`;
}

async function* streamLines(
  database: Database,
  app: string,
  line: (run: Run) => string,
  header = '',
): AsyncGenerator<string, void, undefined> {
  if (header !== '') yield header;
  for await (const runs of readRuns(database, app)) yield runs.map(line).join('');
}

function createDownload(lines: AsyncGenerator<string, void, undefined>, type: string, name: string): Response {
  const encoder = new TextEncoder();
  const body = new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        const next = await lines.next();
        if (next.done === true) controller.close();
        else controller.enqueue(encoder.encode(next.value));
      },
      async cancel() {
        await lines.return();
      },
    },
    { highWaterMark: 0 },
  );
  return new Response(body, {
    headers: {
      'content-type': type === csvType ? `${type}; charset=utf-8; header=present` : type,
      'content-disposition': `attachment; filename="${name}"`,
      'cache-control': 'no-store',
      link: '<https://creativecommons.org/licenses/by/4.0/>; rel="license"',
    },
  });
}
