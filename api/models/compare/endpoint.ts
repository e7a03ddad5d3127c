// POST /api/compare: one prompt to several models in parallel, each with its answer, its cost and its own error.
import { z } from 'zod';
import { defineEndpoint, type Endpoint, jsonResponse } from '../../http/index.ts';
import { chooseModels, compareModels, comparisonResult, maxModels } from './comparison.ts';
import {
  billingProblems,
  idempotently,
  ledgerUnconfigured,
  lowQuotaHint,
  rateLimitHeaders,
} from '../../billing/index.ts';
import * as problems from '../problems.ts';
import { bodyLimit, modelField, payerOf, promptField, systemField } from '../request.ts';
import type { ModelEndpointsOptions } from '../services.ts';
import { spreadSize } from './spread.ts';

/** What is answered. */
export const comparisonAnswer = comparisonResult.extend({
  request_id: z.string().describe('Request ID, for support and logs'),
  hint: z.string().optional().describe('Sent when the free quota runs low, with how to continue'),
});

const storedAnswer = z.object({ answer: comparisonAnswer, headers: z.record(z.string(), z.string()) });

export function compareEndpoint(options: ModelEndpointsOptions): Endpoint {
  const { catalog, maxTokens } = options;
  return defineEndpoint({
    method: 'POST',
    path: '/api/compare',
    operation: 'compare',
    tag: 'models',
    summary: 'Send a prompt to several models in parallel',
    description:
      `Compares up to ${maxModels} models. If you name none, ${spreadSize} that differ in price, quality and maker are chosen. The call takes as long as its slowest model. ` +
      'A model that fails has `error` in its entry, and the response status is still 200. Quota, API keys and Idempotency-Key work as in /api/ask. Each model is charged separately.',
    bodyLimit,
    body: z
      .strictObject({
        prompt: promptField.describe('Prompt sent to every model'),
        models: z
          .array(modelField(catalog))
          .max(maxModels, `must name at most ${maxModels} models`)
          .optional()
          .describe(
            `Model identifiers, up to ${maxModels}; default ${spreadSize} that differ in price, quality and maker`,
          ),
        system: systemField.optional().describe('System prompt applied to every model'),
        max_tokens: z
          .int()
          .min(1)
          .max(maxTokens.max)
          .optional()
          .describe(`Maximum number of output tokens per model, 1 to ${maxTokens.max}; default ${maxTokens.default}`),
      })
      .describe('{"prompt": "..."}, optionally with "models", "system", "max_tokens"'),
    output: comparisonAnswer,
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
        answer: storedAnswer,
        run: async (signal) => {
          const { result, quota } = await compareModels(services, models, {
            kind: 'compare',
            payer,
            prompt: body.prompt,
            system: body.system,
            maxTokens: body.max_tokens ?? maxTokens.default,
            signal,
          });
          const hint = lowQuotaHint(quota);
          return {
            headers: rateLimitHeaders(quota, payer, Date.now()),
            answer: { ...result, request_id: context.id, ...(hint === undefined ? {} : { hint }) },
          };
        },
      });
      return jsonResponse(value.answer, {
        headers: {
          'cache-control': 'no-store',
          ...value.headers,
          ...(replayed ? { 'idempotent-replayed': 'true' } : {}),
        },
      });
    },
  });
}
