// /v1: chat completions, embeddings and models in the form that OpenAI clients speak, for callers and for hosted apps.
import { z } from 'zod';
import { Problem } from '../../../lib/problem.ts';
import {
  idempotencyInFlight,
  idempotencyMismatch,
  ledgerUnavailable,
  type NoteCall,
  type Payer,
  quotaExhausted,
  replayHeaders,
  runOnce,
} from '../../billing/index.ts';
import {
  createBufferedResponse,
  defineEndpoint,
  type Endpoint,
  eventStreamType,
  fileBodyLimit,
  readIdempotencyKey,
  type RequestContext,
} from '../../http/index.ts';
import type { Catalog } from '../catalog.ts';
import type { ModelEndpointsOptions, ModelServices } from '../endpoints.ts';
import { type Door, noKey, resolvePayer } from '../payers.ts';
import * as problems from '../problems.ts';
import { answerChat, answerEmbeddings } from './answers.ts';
import { createChatRequestSchema, embeddingsRequest } from './request.ts';

const tag = 'models';
const payers =
  'For any OpenAI client: set its base URL to this address without the last parts, up to /v1. With your own API key for the model router as its key (Authorization: Bearer, or X-Api-Key), calls are billed to that key; ' +
  `without one (or with the key "${noKey}", where a client insists on one), models in the free tier answer on the free daily quota. ` +
  'Hosted apps with spec.models.enabled find base URL and token in their environment as OPENAI_BASE_URL and OPENAI_API_KEY, and spend their daily budget. ' +
  'Cost and charge are in the headers x-cost-usd and x-charged-usd. Errors are problems with an `error` member as OpenAI clients read it.';

const access = [
  problems.appTokenRefused,
  problems.keyRefused,
  problems.keyChecksLimited,
  problems.modelsUnconfigured,
  problems.routerUnavailable,
  ledgerUnavailable,
];
const modelCallProblems = [
  ...access,
  problems.keyRequired,
  problems.keyOutOfCredit,
  quotaExhausted,
  problems.modelFailed,
  problems.modelTimeout,
  problems.modelRefused,
  problems.modelUnknown,
];

export function createV1Endpoints(options: ModelEndpointsOptions, door: Door): Endpoint[] {
  return [
    createChatEndpoint(options, door),
    createEmbeddingsEndpoint(options, door),
    createModelsEndpoint(options, door),
    createModelEndpoint(options, door),
  ];
}

function createChatEndpoint(options: ModelEndpointsOptions, door: Door): Endpoint {
  return defineEndpoint({
    method: 'POST',
    path: '/v1/chat/completions',
    operation: 'createChatCompletion',
    tag,
    summary: 'Create a chat completion',
    description: `${payers} With "stream": true the answer is sent as server-sent events; with "stream_options": {"include_usage": true}, its last event has the cost. Images are fetched by the model router, or sent as data URLs. A request is forwarded unchanged, or rejected with the name of the field: tools must be functions, and fields that could raise the cost above the reservation (plugins, fallback models, provider settings, tools that the router runs) are not accepted. A request sent again with the same Idempotency-Key gets the same answer and is charged once; a stream with such a key is sent once it is complete.`,
    bodyLimit: fileBodyLimit,
    body: createChatRequestSchema(options.maxTokens),
    output: z.looseObject({}),
    responseHeaders: {
      'X-Cost-Usd': 'What the call cost, in USD; absent while it is not known.',
      'X-Charged-Usd': 'What you are charged for it, in USD.',
      'X-Cost-Source': 'Where the cost comes from; pending while it is not known.',
      'X-Moorage-Cost-Source': 'The same as X-Cost-Source.',
      'X-Max-Tokens': 'The maximum number of output tokens, where the request names none.',
    },
    outputDescription: 'A chat completion. `usage.cost` is the billed cost in USD.',
    produces: ['application/json', eventStreamType],
    problems: [...modelCallProblems, idempotencyInFlight, idempotencyMismatch],
    async handler({ body }, context) {
      const services = options.services();
      const payer = await resolvePayer(context, services.payers, door);
      return respondOnce(services, context, { name: 'v1-chat', payer, body }, (signal, note) =>
        answerChat({
          services,
          catalog: options.catalog,
          payer,
          request: body,
          context: { id: context.id, signal },
          note,
        }),
      );
    },
  });
}

function createEmbeddingsEndpoint(options: ModelEndpointsOptions, door: Door): Endpoint {
  return defineEndpoint({
    method: 'POST',
    path: '/v1/embeddings',
    operation: 'createEmbeddings',
    tag,
    summary: 'Create embeddings',
    description: `${payers} A request sent again with the same Idempotency-Key gets the same answer and is charged once.`,
    bodyLimit: fileBodyLimit,
    body: embeddingsRequest,
    output: z.looseObject({}),
    outputDescription: 'Embeddings. `usage.cost` is the billed cost in USD.',
    problems: [...modelCallProblems, idempotencyInFlight, idempotencyMismatch],
    async handler({ body }, context) {
      const services = options.services();
      const payer = await resolvePayer(context, services.payers, door);
      return respondOnce(services, context, { name: 'v1-embeddings', payer, body }, (signal, note) =>
        answerEmbeddings({
          services,
          catalog: options.catalog,
          payer,
          request: body,
          context: { id: context.id, signal },
          note,
        }),
      );
    },
  });
}

/** A response as it was sent; of a stream, all of its events. */
const storedResponse = z.object({ text: z.string(), headers: z.record(z.string(), z.string()) });

/**
 * Makes a response once for each Idempotency-Key, or every time without one. `note` is given only with a key.
 * @throws Problem
 */
async function respondOnce(
  { idempotency }: Pick<ModelServices, 'idempotency'>,
  context: RequestContext,
  { name, payer, body }: { readonly name: string; readonly payer: Payer; readonly body: unknown },
  respond: (signal: AbortSignal, note: NoteCall | undefined) => Promise<Response>,
): Promise<Response> {
  if (readIdempotencyKey(context.headers) === undefined) return respond(context.signal, undefined);
  const { value, replayed } = await runOnce(idempotency, context, {
    name,
    payer,
    body,
    answer: storedResponse,
    run: async (signal, note) => {
      const response = await respond(signal, note);
      return { text: await response.text(), headers: Object.fromEntries(response.headers) };
    },
  });
  return createBufferedResponse(value.text, { headers: { ...value.headers, ...replayHeaders(replayed) } });
}

const modelEntry = z.object({
  id: z.string(),
  object: z.literal('model'),
  created: z.int(),
  owned_by: z.string(),
  tier: z.enum(['free', 'premium']).describe("premium requires the caller's own API key"),
});
type ModelEntry = z.output<typeof modelEntry>;

function createModelsEndpoint(options: ModelEndpointsOptions, door: Door): Endpoint {
  const data = listModels(options.catalog);
  return defineEndpoint({
    method: 'GET',
    head: 'as GET',
    path: '/v1/models',
    operation: 'listV1Models',
    tag,
    summary: "List the models in OpenAI's format",
    description: `${payers} A key that is sent is checked.`,
    output: z.object({ object: z.literal('list'), data: z.array(modelEntry) }),
    outputDescription: 'The models, with those for embeddings.',
    problems: access,
    async handler(_input, context) {
      await resolvePayer(context, options.services().payers, door);
      return { object: 'list' as const, data };
    },
  });
}

function createModelEndpoint(options: ModelEndpointsOptions, door: Door): Endpoint {
  const data = listModels(options.catalog);
  return defineEndpoint({
    method: 'GET',
    head: 'as GET',
    path: '/v1/models/{model}',
    operation: 'getV1Model',
    tag,
    summary: "Get one model in OpenAI's format",
    description: payers,
    params: z.strictObject({ model: z.string().max(200).describe('Identifier of the model.') }),
    output: modelEntry,
    outputDescription: 'The model.',
    problems: [...access, problems.modelUnknown],
    async handler({ params: { model } }, context) {
      await resolvePayer(context, options.services().payers, door);
      const found = data.find(({ id }) => id === model);
      if (found !== undefined) return found;
      throw new Problem(
        problems.modelUnknown,
        `There is no model ${model.slice(0, 80)}. Choose one of: ${data.map(({ id }) => id).join(', ')}.`,
      );
    },
  });
}

function listModels({ models, embeddings }: Catalog): ModelEntry[] {
  return [...models, ...embeddings].map(({ id, tier }) => ({
    id,
    object: 'model',
    created: 0,
    owned_by: 'moorage',
    tier,
  }));
}
