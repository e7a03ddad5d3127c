// POST /a2a: the Agent2Agent protocol 1.0 over JSON-RPC. Handler and store are made for each request, so any replica answers any of them.
import { DefaultRequestHandler, InMemoryTaskStore, JsonRpcTransportHandler, ServerCallContext, validateVersion } from '@a2a-js/sdk/server';
import { z } from 'zod';
import { defineEndpoint, type Endpoint, type RequestContext } from '../endpoint.ts';
import { a2aPath, a2aVersion, agentCard } from '../discovery/agent-card.ts';
import type { AgentOptions } from './calls.ts';
import { executorFor } from './executor.ts';

/** As of a call of /t/<tool>. */
const bodyLimit = 1_500_000;

export function a2aEndpoint(options: AgentOptions): Endpoint {
  return defineEndpoint({
    method: 'POST',
    path: a2aPath,
    operation: 'callAgent',
    tag: 'agents',
    summary: 'The Agent2Agent protocol (A2A 1.0, JSON-RPC)',
    description: 'SendMessage with a data part {"tool": name, "arguments": {…}} runs a tool: the answer is a message with its result as data, and its file beside it. '
      + 'A text is answered with what can be done. A call that is refused or fails is a task in the state rejected or failed, with the problem in its message. '
      + 'Keys, quota and costs are those of /t. The card is at /.well-known/agent-card.json.',
    bodyLimit,
    body: z.record(z.string(), z.unknown()).describe('JSON-RPC 2.0 request, like {"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": {…}}'),
    output: z.object({ jsonrpc: z.literal('2.0'), id: z.union([z.string(), z.number(), z.null()]), result: z.unknown().optional(), error: z.unknown().optional() }),
    outputDescription: 'JSON-RPC 2.0 response, with a result or an error.',
    async handler({ body }, context) {
      return Response.json(await answer(options, body, context), { headers: { 'cache-control': 'no-store', 'a2a-version': a2aVersion } });
    },
  });
}

async function answer(options: AgentOptions, body: Record<string, unknown>, context: RequestContext): Promise<unknown> {
  const card = agentCard(options.offer);
  const requested = context.headers.get('a2a-version') ?? a2aVersion;
  try {
    validateVersion(requested, card, 'JSONRPC');
  } catch (error) {
    return { jsonrpc: '2.0', id: idOf(body), error: JsonRpcTransportHandler.mapToJSONRPCError(error) };
  }
  const handler = new DefaultRequestHandler(card, new InMemoryTaskStore(), executorFor(options, context));
  return new JsonRpcTransportHandler(handler).handle(body, new ServerCallContext({ requestedVersion: requested }));
}

function idOf({ id }: Record<string, unknown>): string | number | null {
  return typeof id === 'string' || typeof id === 'number' ? id : null;
}
