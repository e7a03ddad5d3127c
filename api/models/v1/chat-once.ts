// A chat completion with an Idempotency-Key: called once, charged once, and the same answer each time it is sent.
import { z } from 'zod';
import { idempotencyKey, idempotently, replayHeaders } from '../../billing/index.ts';
import { bufferedResponse, type RequestContext } from '../../http/index.ts';
import { answerChat, type V1Call } from './chat.ts';
import type { ChatRequest } from './request.ts';

/** As it was sent; a stream with all of its events. */
const stored = z.object({ text: z.string(), headers: z.record(z.string(), z.string()) });

interface KeyedCall extends V1Call<ChatRequest> {
  readonly context: RequestContext;
}

/** Without a key, as `answerChat`. @throws Problem */
export async function answerChatOnce(call: KeyedCall): Promise<Response> {
  const { services, payer, request, context } = call;
  if (idempotencyKey(context.headers) === undefined) return answerChat(call);
  const { value, replayed } = await idempotently(services.idempotency, context, {
    name: 'v1-chat',
    payer,
    body: request,
    answer: stored,
    run: async (signal) => {
      const response = await answerChat({ ...call, context: { id: context.id, signal }, atOnce: true });
      return { text: await response.text(), headers: Object.fromEntries(response.headers) };
    },
  });
  return bufferedResponse(value.text, {
    headers: { ...value.headers, ...replayHeaders(replayed) },
  });
}
