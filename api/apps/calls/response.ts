// The response of an app as JSON: its body parsed where it is JSON, as text where it is text, else as base64.
import { z } from 'zod';
import { Problem } from '../../../lib/problem.ts';
import { lowQuotaFields, viewLowQuota } from '../../billing/index.ts';
import { BadEncoding, costFields, readBody, reportedCost, TooLarge } from '../../tools/index.ts';
import type { CallReceipt } from './app-calls.ts';
import type { AppResponse } from './app-client.ts';
import type { Target } from '../directory.ts';
import { reportedLocation } from './location.ts';
import { appAnswerTooLarge, appUnreachable } from '../problems.ts';

/** Longest response that is read into memory. */
export const maxBufferedBytes = 2 * 1_048_576;

/** A response with its body in memory. */
export interface ResponseContent {
  readonly status: number;
  readonly mediaType: string;
  readonly location: string | undefined;
  readonly bytes: Uint8Array;
}

/** @throws Problem (app-answer-too-large, app-unreachable) */
export async function readContent(target: Target, { status, headers, body }: AppResponse): Promise<ResponseContent> {
  const { slug } = target;
  const [type = ''] = first(headers['content-type']).split(';');
  if (Number(first(headers['content-length'])) > maxBufferedBytes) throw tooLarge(slug, maxBufferedBytes);
  try {
    const bytes = await readBody(body, first(headers['content-encoding']), maxBufferedBytes);
    return {
      status,
      bytes,
      mediaType: type.trim().toLowerCase() || 'application/octet-stream',
      location: reportedLocation(headers['location'], target),
    };
  } catch (error) {
    if (error instanceof TooLarge) throw tooLarge(slug, maxBufferedBytes);
    if (error instanceof BadEncoding)
      throw new Problem(appUnreachable, `The response of ${slug} could not be decoded: ${error.message}.`, {
        cause: error,
      });
    throw error;
  }
}

export function tooLarge(slug: string, limit: number): Problem {
  return new Problem(
    appAnswerTooLarge,
    `The response of ${slug} is larger than the limit of ${limit} bytes. Request less data.`,
    {
      members: { limit_bytes: limit },
    },
  );
}

/** What is reported of a response. */
export const contentFields = {
  status: z.int().describe('HTTP status of the response of the app.'),
  media_type: z.string().describe('Media type of its body.'),
  location: z
    .string()
    .optional()
    .describe(
      'Location header of a redirect, as the app wrote it; absent if it is not an http or https URL. Not followed.',
    ),
  bytes: z.int().describe('Size of its body in bytes.'),
  body: z.unknown().optional().describe('Its body: parsed if it is JSON, a string if it is text, absent otherwise.'),
  base64: z.string().optional().describe('Its body as base64, if it is neither JSON nor text.'),
};
type ContentView = z.output<z.ZodObject<typeof contentFields>>;

export function contentView({ status, mediaType, location, bytes }: ResponseContent): ContentView {
  return {
    status,
    media_type: mediaType,
    ...(location === undefined ? {} : { location }),
    bytes: bytes.length,
    ...bodyView(mediaType, bytes),
  };
}

const json = /^application\/(json|[a-z0-9.+-]+\+json)$/;
const texts =
  /^(text\/|application\/(xml|javascript|x-ndjson|yaml|x-yaml|x-www-form-urlencoded)$|[a-z]+\/[a-z0-9.-]+\+xml$)/;

function bodyView(mediaType: string, bytes: Uint8Array): { body?: unknown; base64?: string } {
  if (bytes.length === 0) return {};
  if (!json.test(mediaType) && !texts.test(mediaType))
    return { base64: Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('base64') };
  const text = new TextDecoder().decode(bytes);
  return { body: json.test(mediaType) ? parsed(text) : text };
}

/** A body that is not the JSON that it claims to be is returned as text; so is one nested too deeply to be written. */
function parsed(text: string): unknown {
  try {
    const value = JSON.parse(text) as unknown;
    JSON.stringify(value);
    return value;
  } catch {
    return text;
  }
}

/** What a call cost, as every way of calling reports it. */
export const receiptFields = {
  ...costFields,
  latency_ms: z.int().describe('Milliseconds until the app responded.'),
  quota: lowQuotaFields.optional(),
  hint: z.string().optional().describe('How to continue; included when the quota runs low.'),
  request_id: z.string().describe('Id of this request in the log; sent to the app as X-Request-Id.'),
};
type ReceiptView = z.output<z.ZodObject<typeof receiptFields>>;

export function receiptView({ cost, latencyMs, quota }: CallReceipt, requestId: string): ReceiptView {
  return {
    ...reportedCost(cost),
    latency_ms: latencyMs,
    ...viewLowQuota(quota),
    request_id: requestId,
  };
}

function first(value: string | string[] | undefined): string {
  return (Array.isArray(value) ? value[0] : value) ?? '';
}
