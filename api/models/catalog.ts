// The models of this installation: read from models.yaml, and listed by GET /api/models.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'yaml';
import { z } from 'zod';
import { moneyField, toDollarNumber } from '../billing/index.ts';
import { defineEndpoint, type Endpoint } from '../http/index.ts';

export const modelsFile = join(import.meta.dirname, 'models.yaml');

const named = {
  id: z.string().regex(/^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/, 'must consist of letters, digits, ".", "_" and "-"'),
  label: z.string().min(1).max(100),
  /** USD per million input tokens. */
  in_per_m: moneyField,
  /** The router's name of the model. */
  upstream: z.string().min(1).max(200),
};

const model = z.strictObject({
  ...named,
  maker: z.string().min(1).max(64),
  quality: z.enum(['light', 'standard', 'frontier']),
  tier: z.enum(['free', 'premium']),
  /** USD per million output tokens. */
  out_per_m: moneyField,
  /** The most tokens that the router bills for an image; without it, what any model is known to bill. */
  image_tokens: z.coerce.number().int().min(1).max(1_000_000).optional(),
});

export type Model = z.output<typeof model>;

const embedding = z.strictObject({
  ...named,
  /** As of models; one that is listed without a tier requires a key. */
  tier: z.enum(['free', 'premium']).default('premium'),
});

export type EmbeddingModel = z.output<typeof embedding>;

const file = z.strictObject({ models: z.array(model).min(1), embeddings: z.array(embedding).default([]) });

/** The models of this installation. */
export interface Catalog {
  readonly models: readonly Model[];
  readonly embeddings: readonly EmbeddingModel[];
  /** The model for requests that name none. */
  readonly preferred: Model;
  /** Ids, as a schema of them needs it. */
  readonly ids: readonly [string, ...string[]];
  readonly byId: ReadonlyMap<string, Model>;
}

/**
 * Reads the models. Prices are taken from the text, digit by digit. @throws Error that names each entry that is wrong.
 */
export function readCatalog(path: string = modelsFile): Catalog {
  const parsed = file.safeParse(readYaml(path));
  if (!parsed.success)
    throw new Error(
      `${path} is not valid:\n${parsed.error.issues.map((issue) => `  ${issue.path.join('.')}: ${issue.message}`).join('\n')}`,
    );
  const { models, embeddings } = parsed.data;
  const byId = new Map(models.map((entry) => [entry.id, entry]));
  const all = [...models, ...embeddings].map(({ id }) => id);
  const twice = all.find((id, index) => all.indexOf(id) !== index);
  if (twice !== undefined) throw new Error(`${path} is not valid: ${twice} is listed twice`);
  const preferred = models.find(({ tier }) => tier === 'free');
  const [first, ...rest] = models.map(({ id }) => id);
  if (preferred === undefined || first === undefined)
    throw new Error(
      `${path} is not valid: at least one model must be in the free tier, for callers without an API key`,
    );
  return { models, embeddings, preferred, ids: [first, ...rest], byId };
}

/** The failsafe schema leaves every scalar as it is written, so that no price goes through a float. */
function readYaml(path: string): unknown {
  try {
    return parse(readFileSync(path, 'utf8'), { schema: 'failsafe' });
  } catch (error) {
    throw new Error(
      `cannot read ${path}; set MOORAGE_MODELS_FILE to a file like api/models/models.yaml: ${error instanceof Error ? error.message : String(error)}`,
      { cause: error },
    );
  }
}

/** Names a model. */
export function modelField(catalog: Catalog): z.ZodEnum<Record<string, string>> {
  return z.enum(catalog.ids, { error: () => `must be one of: ${catalog.ids.join(', ')}` });
}

/** GET /api/models: the models and their prices. */
export function createListEndpoint(catalog: Catalog): Endpoint {
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
    in_per_m: toDollarNumber(in_per_m),
    out_per_m: toDollarNumber(out_per_m),
  }));
  return defineEndpoint({
    method: 'GET',
    head: 'as GET',
    path: '/api/models',
    operation: 'listModels',
    tag: 'models',
    summary: 'List the models',
    description: 'Prices are list prices. Each response includes the actual cost of its call, as billed by the router.',
    output: z.array(entry),
    outputDescription: 'The models.',
    handler: () => Promise.resolve(listed),
  });
}
