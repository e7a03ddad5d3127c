// POST /a2a: the Agent2Agent protocol over JSON-RPC, 1.0 and, for older clients, 0.3. Handler and store are made for
// each request, so any replica answers any of them.
import { isLegacyJsonRpcMethod } from '@a2a-js/sdk/compat/v0_3';
import { LegacyJsonRpcTransportHandler } from '@a2a-js/sdk/compat/v0_3/server';
import {
  DefaultRequestHandler,
  InMemoryTaskStore,
  JsonRpcTransportHandler,
  ServerCallContext,
  validateVersion,
} from '@a2a-js/sdk/server';
import { z } from 'zod';
import { defineEndpoint, type Endpoint, jsonResponse, type RequestContext } from '../http/index.ts';
import { a2aPath, a2aVersion, agentCard, olderVersion } from './agent-card.ts';
import type { AgentOptions } from './calls.ts';
import { executorFor } from './executor.ts';

/** The same as for /t/<tool>. */
const bodyLimit = 1_500_000;

export function a2aEndpoint(options: AgentOptions): Endpoint {
  return defineEndpoint({
    method: 'POST',
    path: a2aPath,
    operation: 'callAgent',
    tag: 'agents',
    summary: 'The Agent2Agent protocol (A2A 1.0 and 0.3, JSON-RPC)',
    description:
      'To run a tool, call SendMessage with a data part {"tool": name, "arguments": {…}}. The response is a message with the result as a data part, and the file, if any, as another part. ' +
      'Fields beside the name are arguments too, and JSON in a text, also in a fenced block, is read the same way. Words are mapped to a tool by a model, where a model router is connected: the answer says so, with the cost of that call; ' +
      'where none is, or the model is unsure, a task in the state input-required asks back, to be answered by a whole request. A call that is rejected or fails returns a task in the state rejected or failed, with the problem in its message. ' +
      'Keys, quota and cost are the same as for /t. Streaming is not supported. Clients of A2A 0.3 call message/send. The agent card is at /.well-known/agent-card.json.',
    bodyLimit,
    body: z
      .record(z.string(), z.unknown())
      .describe('JSON-RPC 2.0 request, such as {"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": {…}}'),
    output: z.object({
      jsonrpc: z.literal('2.0'),
      id: z.union([z.string(), z.number(), z.null()]),
      result: z.unknown().optional(),
      error: z.unknown().optional(),
    }),
    responseHeaders: { 'A2A-Version': 'The version of the protocol that is spoken.' },
    outputDescription: 'JSON-RPC 2.0 response, with a result or an error.',
    async handler({ body }, context) {
      return jsonResponse(await answer(options, body, context), {
        headers: { 'cache-control': 'no-store', 'a2a-version': versionOf(body, context) },
      });
    },
  });
}

async function answer(options: AgentOptions, body: Record<string, unknown>, context: RequestContext): Promise<unknown> {
  const card = agentCard(options.offer);
  const requestedVersion = versionOf(body, context);
  const older = requestedVersion.startsWith(olderVersion);
  try {
    validateVersion(requestedVersion, card, 'JSONRPC');
    const handler = new DefaultRequestHandler(card, new InMemoryTaskStore(), executorFor(options, context));
    const transport = older ? new LegacyJsonRpcTransportHandler(handler) : new JsonRpcTransportHandler(handler);
    return await onlyOne(await transport.handle(withoutTask(body), new ServerCallContext({ requestedVersion })));
  } catch (error) {
    return {
      jsonrpc: '2.0',
      id: idOf(body),
      error: older
        ? LegacyJsonRpcTransportHandler.mapToLegacyJSONRPCError(error)
        : JsonRpcTransportHandler.mapToJSONRPCError(error),
    };
  }
}

const sent = z.looseObject({ params: z.looseObject({ message: z.looseObject({ taskId: z.unknown() }) }) });

/** No task is kept here: who answers a question of ours sends a new request. */
function withoutTask(body: Record<string, unknown>): Record<string, unknown> {
  const read = sent.safeParse(body);
  if (!read.success) return body;
  const { taskId: _, ...message } = read.data.params.message;
  return { ...body, params: { ...read.data.params, message } };
}

/** The protocol version of the client. For clients that do not send it, the method decides. */
function versionOf({ method }: Record<string, unknown>, { headers }: RequestContext): string {
  const header = headers.get('a2a-version');
  // 0.3.0 is 0.3: patches do not change the protocol.
  if (header !== null) return /^\d+\.\d+(?=\.\d+$)/.exec(header)?.[0] ?? header;
  return isLegacyJsonRpcMethod(method) ? olderVersion : a2aVersion;
}

/** Streaming is not supported, so a stream holds a single error. */
async function onlyOne<One extends object, Other extends object>(
  answer: One | AsyncGenerator<Other, void, undefined>,
): Promise<One | Other | undefined> {
  if (!(Symbol.asyncIterator in answer)) return answer;
  const first = await answer.next();
  return first.done === true ? undefined : first.value;
}

function idOf({ id }: Record<string, unknown>): string | number | null {
  return typeof id === 'string' || typeof id === 'number' ? id : null;
}
