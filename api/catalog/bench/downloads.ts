// Every run of a benchmark as CSV or JSON lines, streamed page by page.
import { csvLine } from '../../../lib/csv.ts';
import type { Database } from '../../billing/index.ts';
import { everyRun } from './store/reading.ts';
import type { Run } from './store/shapes.ts';

export const csvType = 'text/csv';
export const jsonLinesType = 'application/jsonl';

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
export function csvOf(database: Database, app: string): Response {
  return download(linesOf(database, app, csvOfRun, csvLine(columns)), csvType, `${app}-runs.csv`);
}

/** A JSON object a line. */
export function jsonLinesOf(database: Database, app: string): Response {
  return download(linesOf(database, app, jsonLine), jsonLinesType, `${app}-runs.jsonl`);
}

export function csvOfRun(run: Run): string {
  return csvLine(columns.map((column) => run[column]));
}

/** Costs are numbers by their digits, which no float has touched. */
function jsonLine(run: Run): string {
  const { cost_usd: cost, ...fields } = run;
  const text = JSON.stringify({ ...fields, cost_usd: null });
  return `${cost === null ? text : text.replace(/"cost_usd":null\}$/, `"cost_usd":${cost}}`)}\n`;
}

async function* linesOf(
  database: Database,
  app: string,
  line: (run: Run) => string,
  header = '',
): AsyncGenerator<string, void, undefined> {
  if (header !== '') yield header;
  for await (const runs of everyRun(database, app)) yield runs.map(line).join('');
}

function download(lines: AsyncGenerator<string, void, undefined>, type: string, name: string): Response {
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
