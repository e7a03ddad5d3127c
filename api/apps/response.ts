// An app's answer read whole, as JSON tells it: parsed where it is JSON, as text where it is text, else as base64.
import { z } from 'zod';
import { Problem } from '../../lib/problem.ts';
import { formatMoney } from '../billing/ledger/money.ts';
import { leftOf, lowQuotaHint, type Quota } from '../billing/quota.ts';
import { costFields, reportedCost } from '../tools/engine/cost.ts';
import { BadEncoding, readBody, TooLarge } from '../tools/fetch/body.ts';
import type { Paid } from './calls.ts';
import type { Brought } from './app-client.ts';
import type { Target } from './directory.ts';
import { appAnswerTooLarge, appUnreachable } from './problems.ts';

/** Longest answer that is read whole. */
export const mostAnswerBytes = 2 * 1_048_576;

/** An answer that has been read. */
export interface Whole {
  readonly status: number;
  readonly mediaType: string;
  readonly location: string | undefined;
  readonly bytes: Uint8Array;
}

/** @throws Problem (app-answer-too-large, app-unreachable) */
export async function readWhole({ slug }: Target, { status, headers, body }: Brought): Promise<Whole> {
  const [type = ''] = first(headers['content-type']).split(';');
  if (Number(first(headers['content-length'])) > mostAnswerBytes) throw tooLarge(slug, mostAnswerBytes);
  try {
    const bytes = await readBody(body, first(headers['content-encoding']), mostAnswerBytes);
    const location = first(headers['location']);
    return {
      status,
      bytes,
      mediaType: type.trim().toLowerCase() || 'application/octet-stream',
      location: location === '' ? undefined : location,
    };
  } catch (error) {
    if (error instanceof TooLarge) throw tooLarge(slug, mostAnswerBytes);
    if (error instanceof BadEncoding)
      throw new Problem(appUnreachable, `the answer of ${slug} cannot be read: ${error.message}`, { cause: error });
    throw error;
  }
}

export function tooLarge(slug: string, limit: number): Problem {
  return new Problem(appAnswerTooLarge, `${slug} answered with more than ${limit} bytes; ask it for less`, {
    members: { limit_bytes: limit },
  });
}

/** What is told of an answer. */
export const answerFields = {
  status: z.int().describe('Status of the answer of the app; 200 to 299 is what it calls a success'),
  media_type: z.string().describe('Media type of its body'),
  location: z.string().optional().describe('Where the app sends on to, as it wrote it'),
  bytes: z.int().describe('Length of its body'),
  body: z.unknown().optional().describe('Its body: parsed where it is JSON, else its text; absent where it is neither'),
  base64: z.string().optional().describe('Its body as base64, where it is no text'),
};
type ToldAnswer = z.output<z.ZodObject<typeof answerFields>>;

export function toldAnswer({ status, mediaType, location, bytes }: Whole): ToldAnswer {
  return {
    status,
    media_type: mediaType,
    ...(location === undefined ? {} : { location: location.slice(0, 2_000) }),
    bytes: bytes.length,
    ...toldBody(mediaType, bytes),
  };
}

const json = /^application\/(json|[a-z0-9.+-]+\+json)$/;
const texts =
  /^(text\/|application\/(xml|javascript|x-ndjson|yaml|x-yaml|x-www-form-urlencoded)$|[a-z]+\/[a-z0-9.-]+\+xml$)/;

function toldBody(mediaType: string, bytes: Uint8Array): { body?: unknown; base64?: string } {
  if (bytes.length === 0) return {};
  if (!json.test(mediaType) && !texts.test(mediaType))
    return { base64: Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('base64') };
  const text = new TextDecoder().decode(bytes);
  return { body: json.test(mediaType) ? parsed(text) : text };
}

/** What only says that it is JSON is told as the text that it is; so is what is nested too deeply to be told at all. */
function parsed(text: string): unknown {
  try {
    const value = JSON.parse(text) as unknown;
    JSON.stringify(value);
    return value;
  } catch {
    return text;
  }
}

/** What a call cost, as every way of calling tells it. */
export const paidFields = {
  ...costFields,
  latency_ms: z.int().describe('Milliseconds until the app had answered'),
  quota: z
    .object({
      scope: z.literal('caller'),
      currency: z.literal('USD'),
      limit: z.string(),
      used: z.string(),
      left: z.string(),
      resets_at: z.string(),
    })
    .optional()
    .describe('The free quota of the day, told when it runs low'),
  hint: z.string().optional().describe('How to go on, told when the quota runs low'),
  request_id: z.string().describe('Id of this request, in the log; the app hears it as X-Request-Id'),
};
type ToldPaid = z.output<z.ZodObject<typeof paidFields>>;

export function toldPaid({ cost, latencyMs, quota }: Paid, requestId: string): ToldPaid {
  const hint = lowQuotaHint(quota);
  return {
    ...reportedCost(cost),
    latency_ms: latencyMs,
    ...(quota === undefined || hint === undefined ? {} : { quota: toldQuota(quota), hint }),
    request_id: requestId,
  };
}

function toldQuota(quota: Quota): NonNullable<ToldPaid['quota']> {
  return {
    scope: 'caller',
    currency: 'USD',
    limit: formatMoney(quota.limit),
    used: formatMoney(quota.used),
    left: formatMoney(leftOf(quota)),
    resets_at: quota.resetsAt.toISOString(),
  };
}

function first(value: string | string[] | undefined): string {
  return (Array.isArray(value) ? value[0] : value) ?? '';
}
