// What ask and compare have in common: fields, limits, who may ask what.
import { z } from 'zod';
import { Problem } from '../../lib/problem.ts';
import type { RequestContext } from '../http/index.ts';
import type { Catalog, Model } from './catalog.ts';
import { identifyPayer } from './callers/identify.ts';
import type { Payer } from '../billing/payer.ts';
import { keyRequired } from './problems.ts';
import type { ModelServices } from './services.ts';

/** Longest prompt and system prompt, in characters. A prompt at this limit still fits into the body. */
export const longestPrompt = 200_000;
export const bodyLimit = 1_500_000;

/** Fields of both requests. */
export const promptField = z
  .string()
  .min(1)
  .max(longestPrompt)
  .refine((text) => text.trim() !== '', 'is blank');
export const systemField = z.string().max(longestPrompt);

/** Names a model. */
export function modelField(catalog: Catalog): z.ZodEnum<Record<string, string>> {
  return z.enum(catalog.ids, { error: () => `is not a model that can be asked: ${catalog.ids.join(', ')}` });
}

/** Who pays. The router is asked about a key at most once a minute. */
export async function payerOf(services: ModelServices, context: RequestContext): Promise<Payer> {
  return identifyPayer(context, services.keys, services.limits);
}

/** Refuses premium models to a caller without a key. @throws Problem (key-required) */
export function allowModels(models: readonly Model[], payer: Payer, catalog: Catalog): void {
  const premium = [...new Set(models.filter(({ tier }) => tier === 'premium').map(({ id }) => id))];
  if (payer.kind === 'key' || premium.length === 0) return;
  const free = catalog.models.filter(({ tier }) => tier === 'free').map(({ id }) => id);
  throw new Problem(
    keyRequired,
    `${premium.join(', ')} ${premium.length === 1 ? 'is' : 'are'} asked with a key of your own only: send Authorization: Bearer sk-…, or ask one of ${free.join(', ')}`,
    {
      headers: { 'www-authenticate': 'Bearer realm="moorage"' },
      members: {
        models: premium,
        actions: [
          {
            action: 'use-own-key',
            description: 'Send your own key of the model router.',
            header: 'Authorization: Bearer sk-…',
          },
          { action: 'use-free-model', description: 'Ask a model of the tier free.', models: free },
        ],
      },
    },
  );
}
