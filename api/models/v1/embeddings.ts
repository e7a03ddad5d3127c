// Embeddings: passed on to the router, and charged to who pays for them.
import { randomUUID } from 'node:crypto';
import { createJsonResponse } from '../../http/index.ts';
import { maxCallCost, type Prompt } from '../../billing/index.ts';
import { callProblem } from '../metered/call-problem.ts';
import { allowModels } from '../request.ts';
import { answerHeaders, completionBody, encodedAs } from './bodies.ts';
import { noting } from './assignments.ts';
import { findModel, type V1Call } from './chat.ts';
import type { EmbeddingsRequest } from './request.ts';

/** @throws Problem */
export async function answerEmbeddings({
  services: { router, assignments },
  catalog,
  payer,
  request,
  context,
  note,
}: V1Call<EmbeddingsRequest>): Promise<Response> {
  const model = findModel(request.model, catalog.embeddings);
  if (payer.kind === 'anonymous') allowModels([model], payer, { models: catalog.embeddings });
  const { input, encoding_format, dimensions, user } = request;
  const id = randomUUID();
  // The model is the app's own choice; what it costs belongs to the run all the same.
  const assignment =
    payer.kind === 'app' ? await assignments.begin({ app: payer.owner, hold: id, fields: [request.user] }) : undefined;
  // Undefined members are left out of JSON.
  const body = {
    model: model.upstream,
    input,
    encoding_format: encoding_format ?? undefined,
    dimensions: dimensions ?? undefined,
    // A provider must not see that it is being measured.
    user: assignment === undefined ? (user ?? undefined) : undefined,
  };
  await note?.(id, model.id);
  const called = await noting(assignment, () =>
    router.embed({
      id,
      kind: 'v1',
      payer,
      request: context.id,
      model: model.id,
      maxCost: maxCallCost(model, promptOf(input), 0),
      prices: model,
      signal: context.signal,
      body,
    }),
  );
  if (called.failure !== undefined) throw callProblem(called.failure, called.settlement, model.id, payer);
  return createJsonResponse(
    encodedAs(encoding_format, completionBody(called.answer.body, model.id, called.settlement)),
    {
      headers: answerHeaders(called.settlement, payer),
    },
  );
}

/** Around each text a model may add some tokens; those that are sent as such are counted. */
const perText = 32;

function promptOf(input: EmbeddingsRequest['input']): Prompt {
  const all: readonly (string | number | number[])[] = typeof input === 'string' ? [input] : input;
  const texts = all.filter((one) => typeof one === 'string');
  const lists = all.filter((one) => Array.isArray(one));
  const single = all.filter((one) => typeof one === 'number').length;
  return { texts, tokens: lists.reduce((sum, { length }) => sum + length + perText, 0) + single + perText };
}
