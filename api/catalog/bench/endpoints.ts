// Endpoints of benchmarks: the index, one app, and every run as a download.
import { z } from 'zod';
import type { Problem } from '../../../lib/problem.ts';
import { unknownName } from '../../../lib/similar-names.ts';
import { ledgerUnavailable, ledgerUnconfigured } from '../../billing/index.ts';
import { defineEndpoint, type Endpoint } from '../../http/index.ts';
import { type BenchmarkSource, readBenchmark, readBenchmarks } from './benchmark.ts';
import { csvOf, csvType, jsonLinesOf, jsonLinesType } from './downloads.ts';
import { unknownBenchmark } from './problems.ts';
import { benchmarkDetail, benchmarkList } from './views.ts';

const params = z.strictObject({ slug: z.string().min(1).max(63).describe('Slug of the app') });
/** A run takes seconds. */
const freshSeconds = 15;
const unavailable = [ledgerUnavailable, ledgerUnconfigured];

export function benchEndpoints(source: BenchmarkSource): Endpoint[] {
  return [
    indexEndpoint(source),
    detailEndpoint(source),
    ...downloads.map((download) => downloadEndpoint(source, download)),
  ];
}

function indexEndpoint(source: BenchmarkSource): Endpoint {
  return defineEndpoint({
    method: 'GET',
    head: 'as GET',
    path: '/api/bench',
    operation: 'listBenchmarks',
    tag: 'catalog',
    summary: 'List the benchmarks',
    description:
      'Benchmarks of models, measured live through hosted apps, each with a one-line verdict made from its data. CC BY 4.0.',
    output: benchmarkList,
    outputDescription: 'The benchmarks, by slug of the app.',
    freshSeconds,
    problems: unavailable,
    handler: () => readBenchmarks(source),
  });
}

function detailEndpoint(source: BenchmarkSource): Endpoint {
  return defineEndpoint({
    method: 'GET',
    head: 'as GET',
    path: '/api/bench/{slug}',
    operation: 'getBenchmark',
    tag: 'catalog',
    summary: 'Get the benchmark of an app',
    description:
      'Pass rates with intervals, billed cost and latency per model and task, and the models compared in pairs. Quality leaves out outages of the upstream; delivered counts them as failed. CC BY 4.0.',
    params,
    output: benchmarkDetail,
    outputDescription: 'The benchmark.',
    freshSeconds,
    problems: [unknownBenchmark, ...unavailable],
    handler: async ({ params: { slug } }) => (await readBenchmark(source, slug)) ?? refuse(source, slug),
  });
}

interface Download {
  readonly path: string;
  readonly operation: string;
  readonly summary: string;
  readonly outputDescription: string;
  readonly mediaType: string;
  readonly make: typeof csvOf;
}

const downloads: readonly Download[] = [
  {
    path: '/api/bench/{slug}/runs.csv',
    operation: 'downloadBenchmarkCsv',
    summary: 'Download every run of a benchmark as CSV',
    outputDescription: 'A header, then a line for each run.',
    mediaType: csvType,
    make: csvOf,
  },
  {
    path: '/api/bench/{slug}/runs.jsonl',
    operation: 'downloadBenchmarkJsonLines',
    summary: 'Download every run of a benchmark as JSON lines',
    outputDescription: 'A JSON object for each run, one a line.',
    mediaType: jsonLinesType,
    make: jsonLinesOf,
  },
];

function downloadEndpoint(source: BenchmarkSource, { mediaType, make, ...described }: Download): Endpoint {
  return defineEndpoint({
    method: 'GET',
    head: 'as GET',
    ...described,
    tag: 'catalog',
    description: 'Every registered run, those included that never finished, in the order of registration. CC BY 4.0.',
    params,
    output: z.string(),
    produces: [mediaType],
    problems: [unknownBenchmark, ...unavailable],
    handler: async ({ params: { slug } }) => {
      await refuseUnknown(source, slug);
      return make(source.database(), slug);
    },
  });
}

async function refuseUnknown(source: BenchmarkSource, slug: string): Promise<void> {
  const all = await readBenchmarks(source);
  if (!all.some((one) => one.slug === slug))
    throw unknown(
      slug,
      all.map((one) => one.slug),
    );
}

async function refuse(source: BenchmarkSource, slug: string): Promise<never> {
  throw unknown(
    slug,
    (await readBenchmarks(source)).map((one) => one.slug),
  );
}

function unknown(slug: string, slugs: readonly string[]): Problem {
  return unknownName(unknownBenchmark, {
    says: 'There is no benchmark for',
    name: slug,
    names: slugs,
    all: 'GET /api/bench lists all benchmarks.',
  });
}
