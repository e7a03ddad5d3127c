// What a response reports about a tool call: its cost, the JSON envelope, the raw file and its warnings.
// Costs are exact amounts; only JSON fields round them to numbers.
import { toAsciiJson } from '../../../lib/values.ts';
import { z } from 'zod';
import { Problem } from '../../../lib/problem.ts';
import {
  chargedText,
  formatMoney,
  type Money,
  toDollarNumber,
  parseBilled,
  sumMoney,
  zero,
  lowQuotaFields,
  type Quota,
  toLowQuotaView,
} from '../../billing/index.ts';
import type { JobView } from './jobs/jobs.ts';
import type { ToolResult, ResultMeta } from './tool-service.ts';
import type { ToolRun } from './runner.ts';
import type { Artifact, Tool } from '../tool.ts';
import type { ArtifactStore } from './artifacts.ts';
import { unknownFile, noArtifact } from '../problems.ts';
import { createBufferedResponse } from '../../http/index.ts';
import { findMeantField } from '../../../lib/problem.ts';

/** What a spender has spent so far. */
export interface Spending {
  /** Sum of the costs that are known. */
  readonly cost: Money;
  /** What we charge the caller, which may differ from the cost. */
  readonly charged: Money;
  /** Calls whose cost is not known yet and not included. */
  readonly pending: number;
  /** Calls made, including those that failed. */
  readonly calls: number;
}

export interface Cost {
  readonly known: Money;
  readonly charged: Money;
  /** Model calls whose cost is not known yet and not included. */
  readonly pending: number;
  readonly source: ToolCostSource;
}

export const costFields = {
  cost_usd: z
    .number()
    .optional()
    .describe('Cost of this call in USD. While cost_source is pending, the part that is known; absent if none is.'),
  charged_usd: z.number().describe(chargedText),
  cost_source: z
    .enum(['none', 'tariff', 'metered', 'pending'])
    .describe(
      'none: the call was free. tariff: the price of the tool. metered: the billed cost of its model calls plus the price of the tool. pending: the router has not reported the cost of some model calls yet; cost_usd does not include them.',
    ),
};
export type ToolCostSource = z.output<typeof costFields.cost_source>;

/** Adds the tool's price and its spending. `charged`: the part of the price that the caller is charged. */
export function sumCost(tariff: Money, spending: Spending, charged: Money = zero): Cost {
  return {
    known: sumMoney([tariff, spending.cost]),
    charged: sumMoney([charged, spending.charged]),
    pending: spending.pending,
    source: selectCostSource(tariff, spending),
  };
}

/** A job's cost: only the sum is stored. */
export function toJobCost({ cost, charged, pending }: Pick<Spending, 'cost' | 'charged' | 'pending'>): Cost {
  return { known: cost, charged, pending, source: selectCostSource(zero, { cost, charged, pending, calls: 0 }) };
}

function selectCostSource(tariff: Money, { cost, pending }: Spending): ToolCostSource {
  if (pending > 0) return 'pending';
  if (cost > 0n) return 'metered';
  return tariff > 0n ? 'tariff' : 'none';
}

/** The cost fields of a response. An unknown cost is omitted, never 0. */
export function toCostFields({ known, charged, source }: Cost): {
  cost_usd?: number;
  charged_usd: number;
  cost_source: ToolCostSource;
} {
  return {
    ...(source === 'pending' && known === zero ? {} : { cost_usd: toDollarNumber(known) }),
    charged_usd: toDollarNumber(charged),
    cost_source: source,
  };
}

/** Adds the cost of the model calls made before the problem, because they are charged. */
export function addCost(problem: Problem, spending: Spending): Problem {
  if (spending.calls === 0) return problem;
  const { type, errors, headers, members } = problem;
  return new Problem(type, problem.message, {
    errors,
    headers,
    members: { ...members, ...toCostFields(sumCost(zero, spending)) },
    cause: problem,
  });
}

/** The exact cost as headers: for responses without an envelope, and for clients that do not read the body. */
export function formatCostHeaders({ known, charged, source }: Cost): Record<string, string> {
  return {
    'x-cost-source': source,
    'x-charged-usd': formatMoney(charged),
    ...(source === 'pending' && known === zero ? {} : { 'x-cost-usd': formatMoney(known) }),
  };
}

/** Descriptions of the cost headers. */
export const costHeaderFields = {
  'X-Cost-Usd': 'What the call cost, in USD; absent while it is not known.',
  'X-Charged-Usd': 'What you are charged for it, in USD.',
  'X-Cost-Source': 'none, tariff, metered or pending; see cost_source.',
} as const;

/** For what is never charged, such as a rejected call or a file download. */
export const noCost: Cost = { known: zero, charged: zero, pending: 0, source: 'none' };

const reported = z.object({
  cost_usd: z.number().optional(),
  charged_usd: z.number().default(0),
  cost_source: z.string(),
});

/**
 * The members with which every problem under /t reports its cost: those it already has, or that it was free. Only a
 * pending cost has no amount.
 */
export function toProblemCostFields(problem: Problem, path: string): Readonly<Record<string, unknown>> {
  if (!isToolPath(path)) return {};
  const { data } = reported.safeParse(problem.members);
  if (data === undefined) return toCostFields(noCost);
  return data.cost_source === 'pending' ? {} : { cost_usd: 0, ...data };
}

/** The same as headers. */
export function formatProblemCostHeaders(problem: Problem, path: string): Readonly<Record<string, string>> {
  if (!isToolPath(path)) return {};
  const { data } = reported.safeParse(problem.members);
  if (data === undefined) return formatCostHeaders(noCost);
  const { cost_usd: cost, charged_usd: charged, cost_source: source } = data;
  const known = cost ?? (source === 'pending' ? undefined : 0);
  return {
    'x-cost-source': source,
    'x-charged-usd': toDecimal(charged),
    ...(known === undefined ? {} : { 'x-cost-usd': toDecimal(known) }),
  };
}

function isToolPath(path: string): boolean {
  return path === '/t' || path.startsWith('/t/');
}

/** Formats without an exponent. */
function toDecimal(usd: number): string {
  return formatMoney(parseBilled(String(usd)));
}

/** A file up to this size is also embedded in the response as base64. */
const smallBytes = 65_536;
/** The limit for a file without a URL, because it is too large to store or nothing is stored here. */
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
        'URL of the bytes. Free, needs no key, and valid until expires_at; anyone who has it can read the file. Other tools accept it as `artifact`.',
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
export function createEnvelopeSchema(tool: Tool): z.ZodObject {
  const { result, job } = { result: tool.output.describe('Result of the tool.'), job: jobField };
  return z.object({
    tool: z.literal(tool.name),
    ...(tool.long === true ? { result: result.optional(), job: job.optional() } : { result }),
    ...(tool.artifacts === undefined ? {} : { artifact: fileField.optional() }),
    ...costFields,
    latency_ms: z.int().describe('Latency of the call in milliseconds.'),
    quota: lowQuotaFields.optional(),
    hint: z.string().optional().describe('Advice about the result, the file or the quota.'),
    warnings: z.array(z.string()).optional().describe('Ignored parts of the call, such as unknown query parameters.'),
    request_id: z.string().describe('Id of this request in the log.'),
  });
}

/** A stored answer, for replays. A long tool's answer stores its job, whose current status is read again. */
export const storedResponse = z.object({
  job: z.string().optional(),
  envelope: z.record(z.string(), z.unknown()),
  headers: z.record(z.string(), z.string()),
  /** Id of its file. */
  file: z.string().optional(),
});
export type StoredResponse = z.output<typeof storedResponse>;

/** Builds the JSON around a result. `inside`: whether to embed small files as base64. */
export function toEnvelope({ run, job, quota, meta }: ToolResult, inside: boolean): Record<string, unknown> {
  return run === undefined ? toJobEnvelope(job, quota, meta) : toFinishedEnvelope(run, meta, inside);
}

function toFinishedEnvelope(run: ToolRun, meta: ResultMeta, inside: boolean): Record<string, unknown> {
  const { artifact, quota } = run;
  const low = toLowQuotaView(quota);
  const hints = [
    low?.hint,
    formatPendingHint(run),
    artifact === undefined ? undefined : formatFileHint(artifact, meta),
  ].filter((hint) => hint !== undefined);
  return {
    tool: meta.tool.name,
    result: run.result,
    ...(artifact === undefined ? {} : { artifact: toFileField(artifact, meta, inside) }),
    ...toCostFields(run.cost),
    latency_ms: run.latencyMs,
    ...(low === undefined ? {} : { quota: low.quota }),
    ...(hints.length === 0 ? {} : { hint: hints.join(' ') }),
    ...toWarningsField(meta),
    request_id: meta.requestId,
  };
}

function toJobEnvelope(job: JobView | undefined, quota: Quota | undefined, meta: ResultMeta): Record<string, unknown> {
  const { tool, requestId, pollUrl } = meta;
  if (job === undefined || pollUrl === undefined) throw new TypeError('a tool result has a run or a job');
  const { id, state, progress, message, createdAt } = job;
  const low = toLowQuotaView(quota);
  return {
    tool: tool.name,
    job: { id, state, progress, message, poll_url: pollUrl },
    ...toCostFields(toJobCost(job)),
    latency_ms: Math.max(0, Date.now() - createdAt.getTime()),
    ...(low === undefined ? {} : { quota: low.quota }),
    hint: `${low === undefined ? '' : `${low.hint} `}The job is not done yet. GET ${pollUrl}&wait=60 to wait up to 60 seconds for its result.`,
    ...toWarningsField(meta),
    request_id: requestId,
  };
}

function toWarningsField({ warnings = [] }: ResultMeta): { warnings?: readonly string[] } {
  return warnings.length === 0 ? {} : { warnings };
}

export function isEmbeddable({ bytes }: Artifact, { fileUrl }: ResultMeta): boolean {
  return bytes.length <= (fileUrl === undefined ? maxBytes : smallBytes);
}

function toFileField(artifact: Artifact, meta: ResultMeta, inside: boolean): z.output<typeof fileField> {
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

function formatFileHint(artifact: Artifact, meta: ResultMeta): string | undefined {
  return meta.fileUrl === undefined && !isEmbeddable(artifact, meta)
    ? 'The file is too large to embed. Send the same request with "raw": true to get its bytes.'
    : undefined;
}

function formatPendingHint({ cost }: ToolRun): string | undefined {
  if (cost.pending === 0) return undefined;
  return `The router has not reported the cost of ${cost.pending === 1 ? 'one model call' : `${cost.pending} model calls`} yet; cost_usd does not include ${cost.pending === 1 ? 'it' : 'them'}.`;
}

/** Types that a browser may display; all others are downloaded. */
const shown = /^(image\/|audio\/|text\/plain|application\/pdf|application\/json)/;

/** @throws Problem (no-artifact) when the tool never creates a file */
export function refuseRaw({ name, artifacts }: Tool): void {
  if (artifacts !== undefined && artifacts.length > 0) return;
  throw new Problem(noArtifact, `The tool ${name} does not create a file. Remove raw to get the JSON response.`, {
    errors: [
      { in: 'query', field: 'raw', message: 'is not supported: this tool does not create a file', fix: 'Remove it.' },
    ],
  });
}

/**
 * Headers that keep a browser from running or sniffing untrusted content. Every response also has
 * `X-Content-Type-Options: nosniff`.
 */
function formatFileHeaders({ bytes, mediaType, fileName }: Artifact): Record<string, string> {
  const name = /^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$/.test(fileName) ? fileName : 'file';
  return {
    'content-type': mediaType,
    'content-length': String(bytes.length),
    'content-disposition': `${shown.test(mediaType) ? 'inline' : 'attachment'}; filename="${name}"`,
    // An SVG opened from here is a document of this origin: it must not run or fetch anything.
    ...(mediaType === 'application/pdf'
      ? {}
      : {
          'content-security-policy':
            "default-src 'none'; style-src 'unsafe-inline'; img-src data:; font-src data:; sandbox",
        }),
  };
}

export function createRawResponse(artifact: Artifact, headers: Readonly<Record<string, string>>): Response {
  return createBufferedResponse(artifact.bytes as Uint8Array<ArrayBuffer>, {
    headers: { ...headers, ...formatFileHeaders(artifact) },
  });
}

/** Reads the file of a stored answer. @throws Problem (unknown-file) */
export async function readStoredFile(artifacts: Pick<ArtifactStore, 'get'>, id: string | undefined): Promise<Artifact> {
  const artifact = id === undefined ? undefined : await artifacts.get(id);
  if (artifact !== undefined) return artifact;
  throw new Problem(
    unknownFile,
    `This call was answered before, but its file ${id === undefined ? 'was too large to store' : 'has expired'}. Send the call with a new Idempotency-Key to create the file again; that call is charged.`,
  );
}

const stated = z.array(z.string());

/** A link may collect many parameters on its way, so the list is limited. */
const maxWarnings = 10;
const maxNameCharacters = 60;
/** Proxies reject large headers. */
const maxHeaderCharacters = 3_000;

/** One warning per unknown parameter, with the most similar field. */
export function describeUnknownParameters(names: readonly string[], known: readonly string[]): string[] {
  const named = names.slice(0, maxWarnings).map((name) => {
    const meant = findMeantField(name, known);
    const shown = JSON.stringify(name.slice(0, maxNameCharacters).toWellFormed());
    return `Query parameter ${shown} is not known and was ignored.${meant === undefined ? '' : ` Did you mean "${meant}"?`}`;
  });
  const more = names.length - named.length;
  return more === 0 ? named : [...named, `${more} more query parameters are not known and were ignored.`];
}

/** The warnings in a tool's own result. */
export function readWarnings(result: Readonly<Record<string, unknown>> | undefined): readonly string[] {
  return stated.safeParse(result?.['warnings']).data ?? [];
}

/** The warnings as a header, for responses without an envelope: a JSON list of strings in ASCII. */
export function formatWarningsHeader(warnings: readonly string[]): Record<string, string> {
  if (warnings.length === 0) return {};
  const kept: string[] = [];
  for (const warning of warnings) {
    if (toAsciiJson([...kept, warning]).length > maxHeaderCharacters) break;
    kept.push(warning);
  }
  const left = warnings.length - kept.length;
  return { 'x-warnings': toAsciiJson(left === 0 ? kept : [...kept, `${left} more; call without raw to read them.`]) };
}
