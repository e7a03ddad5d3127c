// The answer of POST /api/ask: its fields, and how a finished call becomes one.
import { z } from 'zod';
import type { RequestContext } from '../../http/index.ts';
import { chargedText, lowQuotaHint, rateLimitHeaders } from '../../billing/index.ts';
import { answerOrThrow } from '../metered/call-problem.ts';
import { costHeaders, measurementOf } from '../metered/measurement.ts';
import type { ModelCallResult } from '../metered/metered-router.ts';
import type { Question } from '../metered/question.ts';
import type { ModelServices } from '../services.ts';

/** What is answered. */
export const askAnswer = z.object({
  model: z.string().describe('The model that answered'),
  answer: z.string().describe('Its answer'),
  cost_usd: z
    .number()
    .optional()
    .describe('Metered cost in USD, as billed by the router. Absent while cost_source is pending'),
  charged_usd: z.number().describe(chargedText),
  cost_source: z
    .enum(['billed', 'router_computed', 'router_record', 'pending'])
    .describe('Source of the cost; pending: the router has not reported it yet'),
  latency_ms: z.int().describe('Latency in milliseconds'),
  tokens_in: z.int().optional().describe('Prompt tokens, as counted by the router'),
  tokens_out: z.int().optional().describe('Completion tokens, as counted by the router'),
  finish_reason: z.string().optional().describe('Why the answer ended: stop, or length when it reached max_tokens'),
  request_id: z.string().describe('Request ID, for support and logs'),
  hint: z.string().optional().describe('Sent when the free quota runs low, with how to continue'),
});
export type AskAnswer = z.output<typeof askAnswer>;

/** An answer as it is stored for an Idempotency-Key. */
export const storedAnswer = z.object({ answer: askAnswer, headers: z.record(z.string(), z.string()) });

/** The response to a finished call. @throws Problem when it failed */
export function answered(
  services: ModelServices,
  { model, payer }: Question,
  called: ModelCallResult,
  context: RequestContext,
): z.output<typeof storedAnswer> {
  const answer = answerOrThrow(services, { model, payer }, called);
  const { settlement } = called;
  const hint = lowQuotaHint(settlement.quota);
  return {
    headers: { ...costHeaders(settlement), ...rateLimitHeaders(settlement.quota, payer, Date.now()) },
    answer: {
      model: model.id,
      answer: answer.text,
      ...measurementOf(called),
      cost_source: settlement.source === 'none' ? 'pending' : settlement.source,
      ...(answer.finishReason === undefined ? {} : { finish_reason: answer.finishReason }),
      request_id: context.id,
      ...(hint === undefined ? {} : { hint }),
    },
  };
}
