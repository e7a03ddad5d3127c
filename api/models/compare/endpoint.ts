// POST /api/compare: one prompt to several models in parallel, each with its answer, its cost and its own error.
import { z } from 'zod';
import { defineEndpoint, type Endpoint } from '../../http/endpoint.ts';
import { chooseModels, compareModels, comparisonResult, mostModels } from './comparison.ts';
import { idempotently } from '../../billing/idempotency/request.ts';
import { billingProblems, ledgerUnconfigured } from '../../billing/problems.ts';
import * as problems from '../problems.ts';
import { lowQuotaHint, rateLimitHeaders } from '../../billing/quota.ts';
import { bodyLimit, modelField, payerOf, promptField, systemField } from '../request.ts';
import type { ModelEndpointsOptions } from '../services.ts';
import { spreadSize } from './spread.ts';

/** What is answered. */
export const compareAnswer = comparisonResult.extend({
  request_id: z.string().describe('Id of this request, in the log'),
  hint: z.string().optional().describe('Said when the free quota runs low: how to go on'),
});

const kept = z.object({ answer: compareAnswer, headers: z.record(z.string(), z.string()) });

export function compareEndpoint(options: ModelEndpointsOptions): Endpoint {
  const { catalog, maxTokens } = options;
  return defineEndpoint({
    method: 'POST',
    path: '/api/compare',
    operation: 'compare',
    tag: 'models',
    summary: 'Send one prompt to several models in parallel',
    description:
      `Up to ${mostModels} models; when none is named, ${spreadSize} that differ in price, quality and maker. The call lasts as long as its slowest model. ` +
      'A model that fails has `error` in its entry, and the call is still answered with 200. Quota, keys and Idempotency-Key work as in /api/ask; every model is booked by itself.',
    bodyLimit,
    body: z
      .strictObject({
        prompt: promptField.describe('Prompt sent to every model'),
        models: z
          .array(modelField(catalog))
          .max(mostModels, `names more than ${mostModels} models`)
          .optional()
          .describe(`Model identifiers, at most ${mostModels}; without them, a spread of ${spreadSize} is picked`),
        system: systemField.optional().describe('System prompt applied to every model'),
        max_tokens: z
          .int()
          .min(1)
          .max(maxTokens.most)
          .optional()
          .describe(`Output token cap of each model, 1 to ${maxTokens.most}; default ${maxTokens.usual}`),
      })
      .describe('{"prompt": "..."}, and if you like "models", "system", "max_tokens"'),
    output: compareAnswer,
    outputDescription: 'The answers, with metered costs and latencies.',
    problems: [...billingProblems, ...problems.modelProblems].filter(
      (type) =>
        ![
          ledgerUnconfigured,
          problems.appTokenRefused,
          problems.modelFailed,
          problems.modelTimeout,
          problems.modelRefused,
        ].includes(type),
    ),
    async handler({ body }, context) {
      const services = options.services();
      const payer = await payerOf(services, context);
      const models = chooseModels(body.models, payer, catalog);
      const { value, replayed } = await idempotently(services.idempotency, context, {
        scope: `compare:${payer.kind}:${payer.owner}`,
        body,
        answer: kept,
        run: async (signal) => {
          const { result, quota } = await compareModels(services, models, {
            kind: 'compare',
            payer,
            prompt: body.prompt,
            system: body.system,
            maxTokens: body.max_tokens ?? maxTokens.usual,
            signal,
          });
          const hint = lowQuotaHint(quota);
          return {
            headers: rateLimitHeaders(quota, payer, Date.now()),
            answer: { ...result, request_id: context.id, ...(hint === undefined ? {} : { hint }) },
          };
        },
      });
      return Response.json(value.answer, {
        headers: {
          'cache-control': 'no-store',
          ...value.headers,
          ...(replayed ? { 'idempotent-replayed': 'true' } : {}),
        },
      });
    },
  });
}
