// Receives what the operator reports of the containers of apps (POST /compute): an answer of 204 says that it is counted.
import { randomUUID } from 'node:crypto';
import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import getRawBody from 'raw-body';
import { computeReport, type ComputeSample } from '../../../../crds/compute-report.ts';
import type { Logger } from '../../../../lib/log.ts';
import { Problem, problemBody, problemMediaType } from '../../../../lib/problem.ts';
import { ledgerUnavailable } from '../../../billing/index.ts';
import { bodyTooLarge, invalidRequest, methodNotAllowed, readPart } from '../../../http/index.ts';
import { meteringToken } from '../problems.ts';
import { showsToken } from '../token.ts';
import type { ComputeMetrics } from './metrics.ts';
import type { ComputeCounts } from './store.ts';

export interface ComputeReceiverOptions {
  /** What the operator shows: Authorization: Bearer <token>. */
  readonly token: string;
  readonly baseUrl: string;
  readonly count: (samples: readonly ComputeSample[]) => Promise<ComputeCounts>;
  readonly metrics: ComputeMetrics;
  readonly log: Logger;
}

/** A full report has about 1 MB. */
const bodyBytes = 4 * 1_048_576;

/** Answers reports. */
export function createComputeReceiver(options: ComputeReceiverOptions): RequestListener {
  return (request, response) => {
    take(request, options)
      .then(
        () => response.writeHead(204).end(),
        (error: unknown) => {
          refuse(request, response, problemOf(error, options.log), options.baseUrl);
        },
      )
      .catch((error: unknown) => {
        options.log.error({ err: error }, 'the receiver of compute could not answer');
        response.destroy();
      });
  };
}

async function take(request: IncomingMessage, { token, count, metrics, log }: ComputeReceiverOptions): Promise<void> {
  if (!showsToken(request, token))
    throw new Problem(meteringToken, 'Send the metering token: Authorization: Bearer <token>.');
  if (request.method !== 'POST') throw new Problem(methodNotAllowed, 'Use POST.', { headers: { allow: 'POST' } });
  const { samples } = readPart('body', computeReport, await readJson(request));
  const counts = await count(samples);
  for (const result of ['counted', 'ignored', 'refused'] as const) metrics.samples.inc({ result }, counts[result]);
  metrics.cpuSeconds.inc(counts.cpu_seconds);
  metrics.memoryByteSeconds.inc(counts.memory_byte_seconds);
  if (counts.refused > 0)
    log.warn({ samples: counts.refused }, 'samples of apps are ahead of the clock: set the clocks of the nodes');
}

async function readJson(request: IncomingMessage): Promise<unknown> {
  const body = await getRawBody(request, { limit: bodyBytes, encoding: 'utf8' }).catch((error: unknown) => {
    if (!(error instanceof Error && 'type' in error && error.type === 'entity.too.large')) throw error;
    const detail = `The body has more than ${bodyBytes} bytes. Send fewer samples at once.`;
    throw new Problem(bodyTooLarge, detail, { members: { limit_bytes: bodyBytes } });
  });
  try {
    return JSON.parse(body);
  } catch {
    throw new Problem(invalidRequest, 'The body is not JSON. Send {"samples": [...]}.');
  }
}

/** Whatever is not the sender's fault is tried again: what was counted is not counted twice. */
function problemOf(error: unknown, log: Logger): Problem {
  if (error instanceof Problem) return error;
  log.warn({ err: error }, 'samples of apps were not counted, the operator is asked to send them again');
  return new Problem(ledgerUnavailable, 'The samples could not be counted. Send them again.', {
    headers: { 'retry-after': '1' },
  });
}

function refuse({ url = '' }: IncomingMessage, response: ServerResponse, problem: Problem, baseUrl: string): void {
  const body = JSON.stringify(problemBody(problem, baseUrl, url, randomUUID()));
  // What is left of a body that was not read would be taken for the next request.
  const headers = { ...problem.headers, 'content-type': problemMediaType, connection: 'close' };
  response.writeHead(problem.type.status, headers).end(body);
}
