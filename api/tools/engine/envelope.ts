// The JSON around a tool's result: what it cost, how long it took, its file, and what is left of the quota.
import { z } from 'zod';
import { lowQuotaHint, remaining, type Quota } from '../../billing/quota.ts';
import { formatMoney } from '../../billing/ledger/money.ts';
import { costFields, jobCost, toldCost } from './cost.ts';
import type { Answered, JobStanding, Told } from './tool-call.ts';
import type { Ran } from './runner.ts';
import type { Artifact, Tool } from '../tool.ts';

/** A file this large is in the answer as base64 as well. */
const smallBytes = 65_536;
/** One that no address leads to, because it is too large to be kept or nothing is kept here, up to this. */
const mostBytes = 8 * 1_048_576;

const fileField = z
  .object({
    media_type: z.string().describe('Like image/svg+xml'),
    file_name: z.string(),
    bytes: z.int().describe('Its length'),
    url: z.string().optional().describe('Answers with the bytes to whoever has it, without charge, until expires_at'),
    expires_at: z.string().optional().describe('Until when the url answers; later, the same call makes the file anew'),
    base64: z
      .string()
      .optional()
      .describe(`Its bytes: up to ${smallBytes} of them, or up to ${mostBytes} where there is no url`),
  })
  .describe('The file that the tool has made');

const quotaField = z
  .object({
    scope: z.literal('caller'),
    currency: z.literal('USD'),
    limit: z.string(),
    used: z.string(),
    left: z.string(),
    resets_at: z.string(),
  })
  .describe('The free quota of the day, told when it runs low');

export const jobField = z
  .object({
    id: z.string().describe('Known to its caller alone'),
    state: z.enum(['queued', 'running', 'done', 'failed']),
    progress: z.number().describe('From 0 to 1'),
    message: z.string().describe('What it is doing'),
    poll_url: z.string().describe('Answers how it stands, and its result once it is done'),
  })
  .describe('Handle of a call that takes long');

/** The schema of the answers of a tool. */
export function envelopeSchema(tool: Tool): z.ZodObject {
  const { result, job } = { result: tool.output.describe('What the tool answers'), job: jobField };
  return z.object({
    tool: z.literal(tool.name),
    ...(tool.long === true ? { result: result.optional(), job: job.optional() } : { result }),
    ...(tool.artifacts === undefined ? {} : { artifact: fileField.optional() }),
    ...costFields,
    latency_ms: z.int().describe('Milliseconds until the tool had answered'),
    quota: quotaField.optional(),
    hint: z.string().optional().describe('What is worth knowing beside the result'),
    request_id: z.string().describe('Id of this request, in the log'),
  });
}

/** `inside`: whether small files are in it as base64. */
export function envelopeOf({ ran, job, told }: Answered, inside: boolean): Record<string, unknown> {
  return ran === undefined ? underWay(job, told) : finished(ran, told, inside);
}

function finished(ran: Ran, told: Told, inside: boolean): Record<string, unknown> {
  const { artifact, quota } = ran;
  const low = lowQuotaHint(quota);
  const hints = [low, pendingHint(ran), artifact === undefined ? undefined : fileHint(artifact, told)].filter(
    (hint) => hint !== undefined,
  );
  return {
    tool: told.tool.name,
    result: ran.result,
    ...(artifact === undefined ? {} : { artifact: fileOf(artifact, told, inside) }),
    ...toldCost(ran.cost),
    latency_ms: ran.latencyMs,
    ...(quota === undefined || low === undefined ? {} : { quota: quotaOf(quota) }),
    ...(hints.length === 0 ? {} : { hint: hints.join(' ') }),
    request_id: told.requestId,
  };
}

function underWay(job: JobStanding | undefined, { tool, requestId, pollUrl }: Told): Record<string, unknown> {
  if (job === undefined || pollUrl === undefined) throw new TypeError('an answer has a result or a job');
  const { id, state, progress, message, createdAt } = job;
  return {
    tool: tool.name,
    job: { id, state, progress, message, poll_url: pollUrl },
    ...toldCost(jobCost(job)),
    latency_ms: Math.max(0, Date.now() - createdAt.getTime()),
    hint: `Not done yet: GET ${pollUrl}&wait=60 answers with the result once there is one.`,
    request_id: requestId,
  };
}

/** Whether a file is small enough to go along. */
export function goesAlong({ bytes }: Artifact, { fileUrl }: Told): boolean {
  return bytes.length <= (fileUrl === undefined ? mostBytes : smallBytes);
}

function fileOf(artifact: Artifact, told: Told, inside: boolean): z.output<typeof fileField> {
  const { bytes, mediaType, fileName } = artifact;
  return {
    media_type: mediaType,
    file_name: fileName,
    bytes: bytes.length,
    ...(told.fileUrl === undefined ? {} : { url: told.fileUrl }),
    ...(told.fileUntil === undefined ? {} : { expires_at: told.fileUntil.toISOString() }),
    ...(inside && goesAlong(artifact, told) ? { base64: Buffer.from(bytes).toString('base64') } : {}),
  };
}

function fileHint(artifact: Artifact, told: Told): string | undefined {
  return told.fileUrl === undefined && !goesAlong(artifact, told)
    ? 'The file is too large for this answer: send the same request with "raw": true to get its bytes.'
    : undefined;
}

function pendingHint({ cost }: Ran): string | undefined {
  if (cost.pending === 0) return undefined;
  return `The router has not told yet what ${cost.pending === 1 ? 'one model call' : `${cost.pending} model calls`} cost; ${cost.pending === 1 ? 'it is' : 'they are'} not in cost_usd.`;
}

function quotaOf(quota: Quota): z.output<typeof quotaField> {
  const { limit, used, resetsAt } = quota;
  return {
    scope: 'caller',
    currency: 'USD',
    limit: formatMoney(limit),
    used: formatMoney(used),
    left: formatMoney(remaining(quota)),
    resets_at: resetsAt.toISOString(),
  };
}
