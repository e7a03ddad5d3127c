// A call of /v1 with an Idempotency-Key: made once, charged once, and answered the same each time it is sent.
import { z } from 'zod';
import { idempotencyKey, idempotently, replayHeaders } from '../../billing/index.ts';
import { bufferedResponse, type RequestContext } from '../../http/index.ts';
import { answerChat, type V1Call } from './chat.ts';
import { answerEmbeddings } from './embeddings.ts';
import type { ChatRequest, EmbeddingsRequest } from './request.ts';

/** As it was sent; a stream with all of its events. */
const stored = z.object({ text: z.string(), headers: z.record(z.string(), z.string()) });

interface KeyedCall<Request> extends V1Call<Request> {
  readonly context: RequestContext;
}

/** Without a key, as `answerChat`. @throws Problem */
export async function answerChatOnce(call: KeyedCall<ChatRequest>): Promise<Response> {
  return answerOnce('v1-chat', call, (once) => answerChat(once === call ? call : { ...once, atOnce: true }));
}

/** Without a key, as `answerEmbeddings`. @throws Problem */
export async function answerEmbeddingsOnce(call: KeyedCall<EmbeddingsRequest>): Promise<Response> {
  return answerOnce('v1-embeddings', call, answerEmbeddings);
}

async function answerOnce<Request>(
  name: string,
  call: KeyedCall<Request>,
  answer: (call: V1Call<Request>) => Promise<Response>,
): Promise<Response> {
  const { services, payer, request, context } = call;
  if (idempotencyKey(context.headers) === undefined) return answer(call);
  const { value, replayed } = await idempotently(services.idempotency, context, {
    name,
    payer,
    body: request,
    answer: stored,
    run: async (signal, note) => {
      const response = await answer({ ...call, context: { id: context.id, signal }, note });
      return { text: await response.text(), headers: Object.fromEntries(response.headers) };
    },
  });
  return bufferedResponse(value.text, { headers: { ...value.headers, ...replayHeaders(replayed) } });
}
