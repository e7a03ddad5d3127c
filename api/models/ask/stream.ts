// The answer of POST /api/ask as server-sent events.
import { problemBody, Problem } from '../../../lib/problem.ts';
import { formatEvent, createEventStreamResponse, type RequestContext } from '../../http/index.ts';
import type { ModelCallResult } from '../metered/metered-router.ts';
import { askStreaming, type Question } from '../metered/question.ts';
import type { ModelServices } from '../services.ts';
import { answered, type AskAnswer } from './answer.ts';

/** The first piece decides between a stream and a problem; from then on, a problem is an event. */
export async function streamAnswer(
  services: ModelServices,
  context: RequestContext,
  question: (signal: AbortSignal) => Question,
): Promise<Response> {
  const leaving = new AbortController();
  const asked = question(AbortSignal.any([context.signal, leaving.signal]));
  const texts = askStreaming(services.router, asked);
  const first = await texts.next();
  if (first.done === true) {
    const { answer, headers } = answered(services, asked, first.value, context);
    return createEventStreamResponse(atOnce(answer), { headers, abort: () => undefined });
  }
  return createEventStreamResponse(frames(services, asked, first.value, texts, context), {
    abort: () => {
      leaving.abort();
    },
  });
}

async function* frames(
  services: ModelServices,
  asked: Question,
  first: string,
  texts: AsyncGenerator<string, ModelCallResult, undefined>,
  context: RequestContext,
): AsyncGenerator<string, void, undefined> {
  yield formatEvent('delta', { text: first });
  for (;;) {
    const next = await texts.next();
    if (next.done !== true) {
      yield formatEvent('delta', { text: next.value });
      continue;
    }
    yield last(services, asked, next.value, context);
    return;
  }
}

function last(services: ModelServices, asked: Question, called: ModelCallResult, context: RequestContext): string {
  try {
    return doneFrame(answered(services, asked, called, context).answer);
  } catch (error) {
    if (!(error instanceof Problem)) throw error;
    return formatEvent('error', problemBody(error, services.baseUrl, '/api/ask', context.id));
  }
}

export async function* atOnce(answer: AskAnswer): AsyncGenerator<string, void, undefined> {
  yield await Promise.resolve(formatEvent('delta', { text: answer.answer }));
  yield doneFrame(answer);
}

/** All but the text, which was sent in pieces. */
function doneFrame(answer: AskAnswer): string {
  return formatEvent('done', { ...answer, answer: undefined });
}
