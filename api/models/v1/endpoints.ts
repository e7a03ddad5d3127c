// /v1 for hosted apps: chat completions, embeddings and models in the form that OpenAI clients speak, paid by the app's
// daily budget.
import { z } from 'zod';
import { defineEndpoint, type Endpoint, eventStream } from '../../http/index.ts';
import type { Catalog } from '../catalog.ts';
import { ledgerUnavailable, quotaExhausted } from '../../billing/index.ts';
import * as problems from '../problems.ts';
import { bodyLimit } from '../request.ts';
import type { ModelEndpointsOptions } from '../services.ts';
import { appPayerOf, type AppTokens } from './apps.ts';
import { answerChat } from './chat.ts';
import { answerEmbeddings } from './embeddings.ts';
import { withErrorMember } from './errors.ts';
import { chatRequest, embeddingsRequest } from './request.ts';

const ofApps =
  'For hosted apps with spec.models.enabled: base URL and token are in their environment as OPENAI_BASE_URL and OPENAI_API_KEY. Calls are charged to the app and refused once its daily budget is used up.';
const modelCallProblems = [
  problems.appTokenRefused,
  quotaExhausted,
  problems.modelsUnconfigured,
  problems.routerUnavailable,
  ledgerUnavailable,
  problems.modelFailed,
  problems.modelTimeout,
  problems.modelRefused,
];

export function v1Endpoints(options: ModelEndpointsOptions, tokens: AppTokens): Endpoint[] {
  return [chatEndpoint(options, tokens), embeddingsEndpoint(options, tokens), modelsEndpoint(options, tokens)];
}

function chatEndpoint(options: ModelEndpointsOptions, tokens: AppTokens): Endpoint {
  return defineEndpoint({
    method: 'POST',
    path: '/v1/chat/completions',
    operation: 'createChatCompletion',
    tag: 'apps',
    summary: 'Create a chat completion for a hosted app',
    description: `${ofApps} With "stream": true the answer is sent as server-sent events.`,
    bodyLimit,
    body: chatRequest,
    output: z.looseObject({}),
    outputDescription: 'A chat completion. `usage.cost` is the billed cost in USD.',
    produces: ['application/json', eventStream],
    problems: modelCallProblems,
    handler: ({ body }, context) =>
      withErrorMember(async () => {
        const services = options.services();
        return answerChat({
          services,
          catalog: options.catalog,
          payer: appPayerOf(context.headers, tokens, services.limits),
          request: body,
          context,
        });
      }),
  });
}

function embeddingsEndpoint(options: ModelEndpointsOptions, tokens: AppTokens): Endpoint {
  return defineEndpoint({
    method: 'POST',
    path: '/v1/embeddings',
    operation: 'createEmbeddings',
    tag: 'apps',
    summary: 'Create embeddings for a hosted app',
    description: ofApps,
    bodyLimit,
    body: embeddingsRequest,
    output: z.looseObject({}),
    outputDescription: 'Embeddings. `usage.cost` is the billed cost in USD.',
    problems: modelCallProblems,
    handler: ({ body }, context) =>
      withErrorMember(async () => {
        const services = options.services();
        return answerEmbeddings({
          services,
          catalog: options.catalog,
          payer: appPayerOf(context.headers, tokens, services.limits),
          request: body,
          context,
        });
      }),
  });
}

function modelsEndpoint(options: ModelEndpointsOptions, tokens: AppTokens): Endpoint {
  const listed = listOf(options.catalog);
  return defineEndpoint({
    method: 'GET',
    head: 'as GET',
    path: '/v1/models',
    operation: 'listAppModels',
    tag: 'apps',
    summary: 'List the models that a hosted app can use',
    description: ofApps,
    output: z.object({
      object: z.literal('list'),
      data: z.array(z.object({ id: z.string(), object: z.literal('model'), created: z.int(), owned_by: z.string() })),
    }),
    outputDescription: 'The models, in the form that OpenAI clients expect.',
    problems: [problems.appTokenRefused, problems.modelsUnconfigured],
    handler: (_input, context) =>
      withErrorMember(() => {
        appPayerOf(context.headers, tokens, options.services().limits);
        return Promise.resolve(listed);
      }),
  });
}

function listOf(catalog: Catalog): {
  object: 'list';
  data: { id: string; object: 'model'; created: number; owned_by: string }[];
} {
  const entry = (id: string): { id: string; object: 'model'; created: number; owned_by: string } => ({
    id,
    object: 'model',
    created: 0,
    owned_by: 'moorage',
  });
  return { object: 'list', data: [...catalog.models, ...catalog.embeddings].map(({ id }) => entry(id)) };
}
