// Embeddings of hosted apps.
import { randomUUID } from 'node:crypto';
import { invalid, jsonResponse } from '../../http/index.ts';
import type { Catalog, EmbeddingModel } from '../catalog.ts';
import { maxCallCost } from '../../billing/index.ts';
import { callProblem } from '../metered/call-problem.ts';
import { answerHeaders, completionBody } from './bodies.ts';
import { noting } from './assignments.ts';
import type { AppCall } from './chat.ts';
import type { EmbeddingsRequest } from './request.ts';

/** @throws Problem */
export async function answerEmbeddings({
  services: { router, assignments },
  catalog,
  payer,
  request,
  context,
}: AppCall<EmbeddingsRequest>): Promise<Response> {
  const model = modelOf(request.model, catalog);
  const { input } = request;
  const id = randomUUID();
  // The model is the app's own choice; what it costs belongs to the run all the same.
  const assignment = await assignments.begin({ app: payer.owner, hold: id, fields: [request['user']] });
  const body = {
    model: model.upstream,
    input,
    ...(request['encoding_format'] === undefined ? {} : { encoding_format: request['encoding_format'] }),
    ...(request['dimensions'] === undefined ? {} : { dimensions: request['dimensions'] }),
  };
  const called = await noting(assignment, () =>
    router.embed({
      id,
      kind: 'v1',
      payer,
      model: model.id,
      maxCost: maxCallCost(model, { texts: typeof input === 'string' ? [input] : input }, 0),
      priced: model.in_per_m > 0n,
      signal: context.signal,
      body,
    }),
  );
  if (called.failure !== undefined) throw callProblem(called.failure, called.settlement, model.id, payer);
  return jsonResponse(completionBody(called.answer.body, model.id, called.settlement), {
    headers: answerHeaders(called.settlement, payer),
  });
}

function modelOf(id: string, catalog: Catalog): EmbeddingModel {
  const model = catalog.embeddings.find((one) => one.id === id);
  if (model !== undefined) return model;
  throw invalid([
    {
      in: 'body',
      field: 'model',
      message: `must be one of: ${catalog.embeddings.map((one) => one.id).join(', ')}`,
      fix: 'Use a model from GET /v1/models.',
    },
  ]);
}
