// GET /api/models: the models and their prices.
import { z } from 'zod';
import { defineEndpoint, type Endpoint } from '../http/index.ts';
import { moneyToNumber } from '../billing/index.ts';
import type { Catalog } from './catalog.ts';

export function listEndpoint(catalog: Catalog): Endpoint {
  const entry = z.object({
    id: z.enum(catalog.ids).describe('Model identifier'),
    label: z.string().describe('Display label'),
    tier: z.enum(['free', 'premium']).describe("premium requires the caller's own API key"),
    in_per_m: z.number().describe('USD per million input tokens'),
    out_per_m: z.number().describe('USD per million output tokens'),
  });
  const listed = catalog.models.map(({ id, label, tier, in_per_m, out_per_m }) => ({
    id,
    label,
    tier,
    in_per_m: moneyToNumber(in_per_m),
    out_per_m: moneyToNumber(out_per_m),
  }));
  return defineEndpoint({
    method: 'GET',
    head: 'as GET',
    path: '/api/models',
    operation: 'listModels',
    tag: 'models',
    summary: 'List the models',
    description: 'Prices are list prices. Each answer carries the actual cost of its call, as billed by the router.',
    output: z.array(entry),
    outputDescription: 'The models.',
    handler: () => Promise.resolve(listed),
  });
}
