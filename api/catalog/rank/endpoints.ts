// GET /api/rank: apps with their scores; GET /api/rank/formulas: how each score is made.
import { z } from 'zod';
import { createConditionalResponse, defineEndpoint, type Endpoint, JsonAnswer } from '../../http/index.ts';
import { createNextLink, pageFields } from '../paging.ts';
import { formulaList, formulas, formatFormulas, rankList, type Weights, weightsField } from './criteria.ts';
import type { Ranking } from './ranking.ts';

const maxAgeSeconds = 60;
const plainText = 'text/plain';

export function createRankEndpoints(ranking: Ranking, baseUrl: string): Endpoint[] {
  return [createRankEndpoint(ranking, baseUrl), createFormulasEndpoint()];
}

function createRankEndpoint(ranking: Ranking, baseUrl: string): Endpoint {
  return defineEndpoint({
    method: 'GET',
    head: 'as GET',
    path: '/api/rank',
    operation: 'rankApps',
    tag: 'catalog',
    summary: 'Rank the hosted apps',
    description:
      'Scores of each live app for onboarding, quality, cost, stability and retention, each computed from recorded data by a published formula, with its interval. Values that are not measured are null, with the reason. There is a total score only if you send weights.',
    query: z.strictObject({ ...pageFields, weights: weightsField.optional() }),
    output: rankList,
    maxAgeSeconds,
    outputDescription: 'One page of apps.',
    async handler({ query }) {
      const { items, total, next: cursor } = await ranking.getPage(query);
      const { limit, weights } = query;
      const next = createNextLink(`${baseUrl}/api/rank`, { limit, weights: formatWeights(weights) }, cursor);
      return new JsonAnswer(
        {
          weights: weights ?? null,
          formulas: `${baseUrl}/api/rank/formulas`,
          apps: [...items],
          total,
          next: next.url,
        },
        next.headers,
      );
    },
  });
}

function formatWeights(weights: Weights | undefined): string | undefined {
  if (weights === undefined) return undefined;
  return Object.entries(weights)
    .map(([name, weight]) => `${name}:${weight}`)
    .join(',');
}

function createFormulasEndpoint(): Endpoint {
  return defineEndpoint({
    method: 'GET',
    head: 'as GET',
    path: '/api/rank/formulas',
    operation: 'listRankFormulas',
    tag: 'catalog',
    summary: 'Get the formulas of the ranking',
    description:
      'How each score is computed: formula, data, interval, and when it is null. As text with Accept: text/plain.',
    output: formulaList,
    produces: ['application/json', plainText],
    maxAgeSeconds,
    outputDescription: 'The formulas.',
    handler: (_input, context) => {
      const headers = { vary: 'accept' };
      return Promise.resolve(
        context.mediaType === plainText
          ? createConditionalResponse(formatFormulas(), `${plainText}; charset=utf-8`, context, {
              maxAgeSeconds,
              headers,
            })
          : new JsonAnswer({ formulas: [...formulas] }, headers),
      );
    },
  });
}
