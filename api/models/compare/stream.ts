// A comparison as server-sent events: pieces of each answer as they come, each model's entry when it ends, then the summary.
import { Problem, problemBody } from '../../../lib/problem.ts';
import { formatEvent, createEventStreamResponse, type RequestContext } from '../../http/index.ts';
import type { Model } from '../catalog.ts';
import type { Question } from '../metered/question.ts';
import type { ModelServices } from '../services.ts';
import {
  askPart,
  type ComparedModel,
  type Comparison,
  comparisonOf,
  isRefusal,
  type Part,
  reserveParts,
} from './comparison.ts';

/** A piece of an answer, or the entry of a model that has ended. */
export type ComparisonEvent =
  | { readonly event: 'delta'; readonly data: { readonly model: string; readonly text: string } }
  | { readonly event: 'result'; readonly data: ComparedModel };

/** What a stream of a comparison ends with, beside its results. */
export type ComparisonEnd = (comparison: Comparison) => Readonly<Record<string, unknown>>;

export interface StreamedComparison {
  readonly services: ModelServices;
  readonly context: RequestContext;
  readonly models: readonly Model[];
  readonly question: (signal: AbortSignal) => Omit<Question, 'model'>;
  readonly end: ComparisonEnd;
}

/** The first event decides between a stream and a problem; from then on, a problem is an event. @throws Problem */
export async function streamComparison(call: StreamedComparison): Promise<Response> {
  const { context, services, models, question } = call;
  const leaving = new AbortController();
  const asked = question(AbortSignal.any([context.signal, leaving.signal]));
  const events = compareStreaming(services, models, asked);
  const first = await events.next();
  return createEventStreamResponse(frames(first, events, call), {
    abort: () => {
      leaving.abort();
    },
  });
}

/** All events of a comparison that is over. */
export async function* atOnce(
  results: readonly ComparedModel[],
  done: unknown,
): AsyncGenerator<string, void, undefined> {
  yield await Promise.resolve(modelsFrame(results.map(({ model }) => model)));
  for (const result of results) yield formatEvent('result', result);
  yield formatEvent('done', done);
}

/**
 * Asks all models at once; yields what they say as it comes. What refuses the whole call is kept back until it is known
 * whether it refuses every model. @throws Problem as `compareModels`
 */
async function* compareStreaming(
  services: Pick<ModelServices, 'router' | 'keys'>,
  models: readonly Model[],
  question: Omit<Question, 'model'>,
): AsyncGenerator<ComparisonEvent, Comparison, undefined> {
  const reserved = await reserveParts(services, models, question);
  const waiting: ComparisonEvent[] = [];
  let wake = Promise.withResolvers<undefined>();
  const state = { open: reserved.length, refused: true };
  const push = (event: ComparisonEvent): void => {
    waiting.push(event);
    wake.resolve(undefined);
  };
  const all = Promise.all(
    reserved.map(async (one): Promise<Part> => {
      const part = await askPart(services, one, (text) => {
        state.refused = false;
        push({ event: 'delta', data: { model: one.question.model.id, text } });
      });
      state.refused &&= isRefusal(part.problem);
      state.open -= 1;
      push({ event: 'result', data: part.result });
      return part;
    }),
  );
  // Read below; a fault must not be reported as unhandled before that.
  all.catch(() => undefined);
  while (state.open > 0) {
    await Promise.race([wake.promise, all]);
    wake = Promise.withResolvers();
    if (!state.refused) yield* waiting.splice(0);
  }
  const comparison = comparisonOf(await all);
  yield* waiting.splice(0);
  return comparison;
}

type Next = IteratorResult<ComparisonEvent, Comparison>;

async function* frames(
  first: Next,
  events: AsyncGenerator<ComparisonEvent, Comparison, undefined>,
  { services, context, models, end }: StreamedComparison,
): AsyncGenerator<string, void, undefined> {
  yield modelsFrame(models.map(({ id }) => id));
  try {
    let next = first;
    for (; next.done !== true; next = await events.next()) yield formatEvent(next.value.event, next.value.data);
    yield formatEvent('done', end(next.value));
  } catch (error) {
    if (!(error instanceof Problem)) throw error;
    yield formatEvent('error', problemBody(error, services.baseUrl, '/api/compare', context.id));
  }
}

function modelsFrame(models: readonly string[]): string {
  return formatEvent('models', { models });
}
