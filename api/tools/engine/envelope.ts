// The JSON around a tool's result: its cost, its latency, its file, and the quota left.
import { z } from 'zod';
import { lowQuotaFields, type Quota, viewLowQuota } from '../../billing/index.ts';
import { costFields, jobCost, reportedCost } from './cost.ts';
import type { ToolResult, JobStatus, ResultMeta } from './tool-call.ts';
import type { ToolRun } from './runner.ts';
import type { Artifact, Tool } from '../tool.ts';

/** A file up to this size is in the response as base64 as well. */
const smallBytes = 65_536;
/** The same for a file without a URL, because it is too large to store or nothing is stored here. */
const maxBytes = 8 * 1_048_576;

const fileField = z
  .object({
    media_type: z.string().describe('Media type, such as image/svg+xml.'),
    file_name: z.string(),
    bytes: z.int().describe('Size in bytes.'),
    url: z
      .string()
      .optional()
      .describe(
        'URL of the bytes. Free, needs no key, and valid until expires_at; anyone who has it can read the file. Other tools take it as `artifact`.',
      ),
    expires_at: z
      .string()
      .optional()
      .describe('When the URL expires. After that, repeat the call to create the file again.'),
    base64: z
      .string()
      .optional()
      .describe(
        `The bytes in base64, for a file of up to ${smallBytes} bytes, or up to ${maxBytes} bytes if it has no url.`,
      ),
  })
  .describe('The file that the tool created.');

export const jobField = z
  .object({
    id: z
      .string()
      .describe(
        'Id of the job. With a key, only its caller can use it; without one, anyone who has the id can, so keep it to yourself.',
      ),
    state: z.enum(['queued', 'running', 'done', 'failed']),
    progress: z.number().describe('Progress from 0 to 1.'),
    message: z.string().describe('Current step.'),
    poll_url: z.string().describe('URL that returns the status of the job, and its result when it is done.'),
  })
  .describe('Handle of a call that runs as a job.');

/** The schema of a tool's responses. */
export function envelopeSchema(tool: Tool): z.ZodObject {
  const { result, job } = { result: tool.output.describe('Result of the tool.'), job: jobField };
  return z.object({
    tool: z.literal(tool.name),
    ...(tool.long === true ? { result: result.optional(), job: job.optional() } : { result }),
    ...(tool.artifacts === undefined ? {} : { artifact: fileField.optional() }),
    ...costFields,
    latency_ms: z.int().describe('Latency of the call in milliseconds.'),
    quota: lowQuotaFields.optional(),
    hint: z.string().optional().describe('Advice about the result, the file or the quota.'),
    warnings: z
      .array(z.string())
      .optional()
      .describe('What was ignored of the call, such as unknown query parameters.'),
    request_id: z.string().describe('Id of this request in the log.'),
  });
}

/** What is stored of an answer: of a tool that takes long its job, which is asked for its state again. */
export const storedResponse = z.object({
  job: z.string().optional(),
  envelope: z.record(z.string(), z.unknown()),
  headers: z.record(z.string(), z.string()),
  /** Id of its file. */
  file: z.string().optional(),
});
export type StoredResponse = z.output<typeof storedResponse>;

/** `inside`: whether small files are in it as base64. */
export function envelopeOf({ run, job, quota, meta }: ToolResult, inside: boolean): Record<string, unknown> {
  return run === undefined ? inProgress(job, quota, meta) : finished(run, meta, inside);
}

function finished(run: ToolRun, meta: ResultMeta, inside: boolean): Record<string, unknown> {
  const { artifact, quota } = run;
  const low = viewLowQuota(quota);
  const hints = [low?.hint, pendingHint(run), artifact === undefined ? undefined : fileHint(artifact, meta)].filter(
    (hint) => hint !== undefined,
  );
  return {
    tool: meta.tool.name,
    result: run.result,
    ...(artifact === undefined ? {} : { artifact: fileOf(artifact, meta, inside) }),
    ...reportedCost(run.cost),
    latency_ms: run.latencyMs,
    ...(low === undefined ? {} : { quota: low.quota }),
    ...(hints.length === 0 ? {} : { hint: hints.join(' ') }),
    ...warned(meta),
    request_id: meta.requestId,
  };
}

function inProgress(job: JobStatus | undefined, quota: Quota | undefined, meta: ResultMeta): Record<string, unknown> {
  const { tool, requestId, pollUrl } = meta;
  if (job === undefined || pollUrl === undefined) throw new TypeError('a tool result has a run or a job');
  const { id, state, progress, message, createdAt } = job;
  const low = viewLowQuota(quota);
  return {
    tool: tool.name,
    job: { id, state, progress, message, poll_url: pollUrl },
    ...reportedCost(jobCost(job)),
    latency_ms: Math.max(0, Date.now() - createdAt.getTime()),
    ...(low === undefined ? {} : { quota: low.quota }),
    hint: `${low === undefined ? '' : `${low.hint} `}The job is not done yet. GET ${pollUrl}&wait=60 to wait up to 60 seconds for its result.`,
    ...warned(meta),
    request_id: requestId,
  };
}

function warned({ warnings = [] }: ResultMeta): { warnings?: readonly string[] } {
  return warnings.length === 0 ? {} : { warnings };
}

/** Whether a file is small enough to be embedded. */
export function isEmbeddable({ bytes }: Artifact, { fileUrl }: ResultMeta): boolean {
  return bytes.length <= (fileUrl === undefined ? maxBytes : smallBytes);
}

function fileOf(artifact: Artifact, meta: ResultMeta, inside: boolean): z.output<typeof fileField> {
  const { bytes, mediaType, fileName } = artifact;
  return {
    media_type: mediaType,
    file_name: fileName,
    bytes: bytes.length,
    ...(meta.fileUrl === undefined ? {} : { url: meta.fileUrl }),
    ...(meta.fileExpiresAt === undefined ? {} : { expires_at: meta.fileExpiresAt.toISOString() }),
    ...(inside && isEmbeddable(artifact, meta) ? { base64: Buffer.from(bytes).toString('base64') } : {}),
  };
}

function fileHint(artifact: Artifact, meta: ResultMeta): string | undefined {
  return meta.fileUrl === undefined && !isEmbeddable(artifact, meta)
    ? 'The file is too large to embed. Send the same request with "raw": true to get its bytes.'
    : undefined;
}

function pendingHint({ cost }: ToolRun): string | undefined {
  if (cost.pending === 0) return undefined;
  return `The router has not reported the cost of ${cost.pending === 1 ? 'one model call' : `${cost.pending} model calls`} yet; cost_usd does not include ${cost.pending === 1 ? 'it' : 'them'}.`;
}
