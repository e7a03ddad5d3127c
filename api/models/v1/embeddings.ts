// Embeddings of hosted apps.
import { invalid } from '../../http/validation.ts';
import type { Catalog, EmbeddingModel } from '../catalog.ts';
import { finish } from '../metered/question.ts';
import { mostItCosts } from '../../billing/price.ts';
import { callProblem } from '../metered/call-problem.ts';
import { answerHeaders, completionBody } from './bodies.ts';
import type { AppCall } from './chat.ts';
import type { EmbeddingsRequest } from './request.ts';

/** @throws Problem */
export async function answerEmbeddings({
  services: { meter },
  catalog,
  payer,
  request,
  context,
}: AppCall<EmbeddingsRequest>): Promise<Response> {
  const model = modelOf(request.model, catalog);
  const { input } = request;
  const reservation = await meter.reserve({
    kind: 'v1',
    payer,
    model: model.id,
    most: mostItCosts(model, { texts: typeof input === 'string' ? [input] : input }, 0),
  });
  const body = {
    model: model.upstream,
    input,
    ...(request['encoding_format'] === undefined ? {} : { encoding_format: request['encoding_format'] }),
    ...(request['dimensions'] === undefined ? {} : { dimensions: request['dimensions'] }),
  };
  const called = await finish(
    meter,
    reservation,
    meter.router.embed({
      hold: reservation.id,
      key: undefined,
      priced: model.in_per_m > 0n,
      signal: context.signal,
      body,
    }),
  );
  if (called.failure !== undefined) throw callProblem(called.failure, called.booked, model.id, payer);
  return Response.json(completionBody(called.answer.body, model.id, called.booked), {
    headers: answerHeaders(called.booked, payer),
  });
}

function modelOf(id: string, catalog: Catalog): EmbeddingModel {
  const model = catalog.embeddings.find((one) => one.id === id);
  if (model !== undefined) return model;
  throw invalid([
    {
      in: 'body',
      field: 'model',
      message: `is not an embedding model of this installation: ${catalog.embeddings.map((one) => one.id).join(', ')}`,
      fix: 'take one of GET /v1/models',
    },
  ]);
}
