// What ask, compare and the tools have in common: fields, limits, and which models a caller may use.
import { z } from 'zod';
import { Problem } from '../../lib/problem.ts';
import type { RequestContext } from '../http/index.ts';
import type { Catalog, Model } from './catalog.ts';
import { identifyPayer } from './callers/identify.ts';
import type { Payer } from '../billing/index.ts';
import { keyRequired } from './problems.ts';
import type { ModelServices } from './services.ts';

/** Limit of the prompt and of the system prompt, in characters. A prompt at this limit still fits into the body. */
export const maxPromptLength = 200_000;

/** Fields of both requests. */
export const promptField = z
  .string()
  .min(1)
  .max(maxPromptLength)
  .refine((text) => text.trim() !== '', 'must not be blank');
export const systemField = z.string().max(maxPromptLength);

/** Names a model. */
export function modelField(catalog: Catalog): z.ZodEnum<Record<string, string>> {
  return z.enum(catalog.ids, { error: () => `must be one of: ${catalog.ids.join(', ')}` });
}

/** Who pays. A key is checked with the router at most once a minute. */
export async function payerOf(services: ModelServices, context: RequestContext): Promise<Payer> {
  return identifyPayer(context, services.keys, services.limits);
}

/** Refuses premium models to a caller without a key. @throws Problem (key-required) */
export function allowModels(
  models: readonly Pick<Model, 'id' | 'tier'>[],
  payer: Payer,
  catalog: { readonly models: readonly Pick<Model, 'id' | 'tier'>[] },
): void {
  const premium = [...new Set(models.filter(({ tier }) => tier === 'premium').map(({ id }) => id))];
  if (payer.kind === 'key' || premium.length === 0) return;
  const free = catalog.models.filter(({ tier }) => tier === 'free').map(({ id }) => id);
  throw new Problem(
    keyRequired,
    `${premium.join(', ')} ${premium.length === 1 ? 'requires' : 'require'} your own API key. Send Authorization: Bearer sk-…, or choose one of: ${free.join(', ')}.`,
    {
      headers: { 'www-authenticate': 'Bearer realm="moorage"' },
      members: {
        models: premium,
        actions: [
          {
            action: 'use-own-key',
            description: 'Send your own API key for the model router.',
            header: 'Authorization: Bearer sk-…',
          },
          { action: 'use-free-model', description: 'Choose a model in the free tier.', models: free },
        ],
      },
    },
  );
}
