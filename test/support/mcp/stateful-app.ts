// An MCP server with a state for each session, as the bridge serves one over stdio, and with the failures that tests set.
import { randomUUID } from 'node:crypto';
import type { RequestListener } from 'node:http';
import { json } from 'node:stream/consumers';
import { z } from 'zod';

export class StatefulApp {
  /** Calls of each session that is open. */
  readonly sessions = new Map<string, number>();
  readonly methods: string[] = [];
  readonly canceled: unknown[] = [];
  /** Answers nothing. */
  isDead = false;
  isSessionless = false;
  /** A method that it refuses with 500. */
  refused: string | undefined;
  /** Values for variables of the session, by message. */
  readonly variables: string[] = [];
  /** Answers of the tool `wait`. */
  readonly waiting: (() => void)[] = [];
  /** Ends of its streams. */
  readonly cut: (() => void)[] = [];

  readonly listener: RequestListener = (request, response) => {
    const session = String(request.headers['mcp-session-id']);
    if (this.isDead) {
      response.writeHead(500).end();
      return;
    }
    if (request.method === 'DELETE') {
      this.methods.push('DELETE');
      response.writeHead(this.sessions.delete(session) ? 204 : 404).end();
      return;
    }
    if (request.method !== 'POST') {
      this.methods.push(request.method ?? '');
      response.writeHead(405).end();
      return;
    }
    void json(request).then((body) => {
      const message = incoming.parse(body);
      this.methods.push(message.method);
      const variables = request.headers['moorage-mcp-environment'];
      if (variables !== undefined) this.variables.push(`${message.method} ${String(variables)}`);
      const status = this.#refuse(message, session);
      if (status !== undefined) {
        response.writeHead(status).end('{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"refused"}}');
        return;
      }
      if (message.method === 'notifications/cancelled') this.canceled.push(message.params?.['requestId']);
      if (message.id === undefined) {
        response.writeHead(202).end();
        return;
      }
      const opened = message.method === 'initialize' && !this.isSessionless ? randomUUID() : undefined;
      if (opened !== undefined) this.sessions.set(opened, 0);
      response.writeHead(200, {
        'content-type': 'text/event-stream',
        ...(opened === undefined ? {} : { 'mcp-session-id': opened }),
      });
      const write = (body: object): boolean =>
        response.write(`event: message\ndata: ${JSON.stringify({ jsonrpc: '2.0', ...body })}\n\n`);
      this.#answer(message, session, write, () => response.end());
    });
  };

  /** The status with which it refuses a message. */
  #refuse({ method }: Incoming, session: string): number | undefined {
    if (method === this.refused) return 500;
    if (method === 'server/discover') return 400;
    return method === 'initialize' || this.isSessionless || this.sessions.has(session) ? undefined : 404;
  }

  #answer({ id, method, params }: Incoming, session: string, write: (body: object) => void, end: () => void): void {
    const results: Readonly<Record<string, object>> = {
      initialize: {
        protocolVersion: '2025-06-18',
        capabilities: { tools: {} },
        serverInfo: { name: 'app', version: '1' },
      },
      'tools/list': { tools: ['count', 'wait'].map((name) => ({ name, inputSchema: { type: 'object' } })) },
    };
    const token = params?._meta?.progressToken;
    const finish = (): void => {
      const count = (this.sessions.get(session) ?? 0) + 1;
      if (method === 'tools/call') this.sessions.set(session, count);
      for (const progress of token === undefined ? [] : [3, 3, 2])
        write({
          method: 'notifications/progress',
          params: { progressToken: token, progress, total: 7, message: 'half' },
        });
      write({ id, result: results[method] ?? { content: [{ type: 'text', text: `${session} ${count}` }] } });
      end();
    };
    if (params?.['name'] !== 'wait') {
      finish();
      return;
    }
    this.waiting.push(finish);
    this.cut.push(end);
  }

  count(method: string): number {
    return this.methods.filter((each) => each === method).length;
  }
}

const incoming = z.looseObject({
  id: z.union([z.number(), z.string()]).optional(),
  method: z.string(),
  params: z
    .looseObject({ _meta: z.looseObject({ progressToken: z.union([z.number(), z.string()]).optional() }).optional() })
    .optional(),
});
type Incoming = z.output<typeof incoming>;
