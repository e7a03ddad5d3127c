// Receives what apps use of CPU and memory from the operator (POST /compute). A response of 204 means that it is counted.
import { randomUUID } from 'node:crypto';
import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import getRawBody from 'raw-body';
import { z } from 'zod';
import { computeReport, type ComputeSample } from '../../../crds/reports.ts';
import type { Logger } from '../../../lib/telemetry.ts';
import { Problem, buildProblemBody, problemMediaType } from '../../../lib/problem.ts';
import { type Database, ledgerUnavailable, type Statement } from '../../billing/index.ts';
import { bodyTooLarge, invalidRequest, methodNotAllowed, readPart } from '../../http/index.ts';
import { hasToken } from './log-receiver.ts';
import type { ComputeMetrics } from './metering-metrics.ts';
import { meteringToken } from '../problems.ts';

export interface ComputeReceiverOptions {
  /** The operator authenticates with `Authorization: Bearer <token>`. */
  readonly token: string;
  readonly baseUrl: string;
  readonly count: (samples: readonly ComputeSample[]) => Promise<ComputeCounts>;
  readonly metrics: ComputeMetrics;
  readonly log: Logger;
}

/** A full report has about 1 MB. */
const maxBodyBytes = 4 * 1_048_576;

/** Returns the listener of `POST /compute`. */
export function createComputeReceiver(options: ComputeReceiverOptions): RequestListener {
  return (request, response) => {
    acceptReport(request, options)
      .then(
        () => response.writeHead(204).end(),
        (error: unknown) => {
          sendProblem(request, response, toProblem(error, options.log), options.baseUrl);
        },
      )
      .catch((error: unknown) => {
        options.log.error({ err: error }, 'the compute receiver failed');
        response.destroy();
      });
  };
}

async function acceptReport(
  request: IncomingMessage,
  { token, count, metrics, log }: ComputeReceiverOptions,
): Promise<void> {
  if (!hasToken(request, token))
    throw new Problem(meteringToken, 'Send the metering token: Authorization: Bearer <token>.');
  if (request.method !== 'POST') throw new Problem(methodNotAllowed, 'Use POST.', { headers: { allow: 'POST' } });
  const { samples } = readPart('body', computeReport, await readJson(request));
  const counts = await count(samples);
  for (const result of ['counted', 'ignored', 'refused'] as const) metrics.samples.inc({ result }, counts[result]);
  metrics.cpuSeconds.inc(counts.cpu_seconds);
  metrics.memoryByteSeconds.inc(counts.memory_byte_seconds);
  if (counts.refused > 0)
    log.warn(
      { samples: counts.refused },
      'samples of apps are ahead of the clock: synchronize the clocks of the nodes',
    );
}

async function readJson(request: IncomingMessage): Promise<unknown> {
  const body = await getRawBody(request, { limit: maxBodyBytes, encoding: 'utf8' }).catch((error: unknown) => {
    if (!(error instanceof Error && 'type' in error && error.type === 'entity.too.large')) throw error;
    const detail = `The body has more than ${maxBodyBytes} bytes. Send fewer samples at once.`;
    throw new Problem(bodyTooLarge, detail, { members: { limit_bytes: maxBodyBytes } });
  });
  try {
    return JSON.parse(body);
  } catch {
    throw new Problem(invalidRequest, 'The body is not JSON. Send {"samples": [...]}.');
  }
}

/** An error that the sender did not cause is a 503, so that the report is sent again. A sample is counted once, however often it is sent. */
function toProblem(error: unknown, log: Logger): Problem {
  if (error instanceof Problem) return error;
  log.warn({ err: error }, 'samples of apps were not counted; the operator will resend them');
  return new Problem(ledgerUnavailable, 'The samples could not be counted. Send them again.', {
    headers: { 'retry-after': '1' },
  });
}

function sendProblem({ url = '' }: IncomingMessage, response: ServerResponse, problem: Problem, baseUrl: string): void {
  const body = JSON.stringify(buildProblemBody(problem, baseUrl, url, randomUUID()));
  // The rest of an unread body would be parsed as the next request.
  const headers = { ...problem.headers, 'content-type': problemMediaType, connection: 'close' };
  response.writeHead(problem.type.status, headers).end(body);
}

const computeCounts = z.object({
  counted: z.number(),
  ignored: z.number(),
  refused: z.number(),
  cpu_seconds: z.coerce.number(),
  memory_byte_seconds: z.coerce.number(),
});
/** Samples by what became of them, and the seconds of CPU and byte-seconds of memory that they added. */
export type ComputeCounts = z.output<typeof computeCounts>;

export const addCompute: Statement<ComputeCounts> = {
  name: 'metering-add-compute',
  text: 'select counted, ignored, refused, cpu_seconds::text, memory_byte_seconds::text from metering.add_compute($1::jsonb, $2)',
  row: computeCounts,
};

export const forgetContainers: Statement<{ count: number }> = {
  name: 'metering-forget-containers',
  text: 'select metering.forget_containers() as count',
  row: z.object({ count: z.number() }),
};

/** Counts samples. Idempotent, so a caller may retry after an error. @throws the driver's error */
export async function addSamples(
  database: Database,
  samples: readonly ComputeSample[],
  now: Date | null = null,
): Promise<ComputeCounts> {
  const [row] = await database.replay(addCompute, [JSON.stringify(samples), now]);
  if (row === undefined) throw new Error('the database returned no row');
  return row;
}
