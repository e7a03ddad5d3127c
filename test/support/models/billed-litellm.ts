// A real LiteLLM whose spend logs can be read: the table that it would fill is a list of the rows that its own code made,
// answered at its address of them; all other requests go through.
import { once } from 'node:events';
import { createServer, request as httpRequest, type IncomingMessage, type ServerResponse } from 'node:http';
import { z } from 'zod';
import type { LiteLlm } from './litellm.ts';

export interface BilledLiteLlm {
  readonly url: string;
  /** What a test changes of the rows, as JSON texts, before they are answered. */
  change: (rows: readonly string[]) => readonly string[];
  close(): Promise<void>;
}

const timed = z.looseObject({ startTime: z.string() });

/** Starts it on loopback. */
export async function startBilledLiteLlm(router: LiteLlm): Promise<BilledLiteLlm> {
  const server = createServer((request, response) => {
    const url = new URL(request.url ?? '/', 'http://router');
    if (url.pathname === '/spend/logs/v2') answerLogs(url.searchParams, billed.change(router.spendLogs()), response);
    else forward(router, request, response);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('not listening');
  const billed: BilledLiteLlm = {
    url: `http://127.0.0.1:${address.port}`,
    change: (rows) => rows,
    async close() {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
  return billed;
}

/** One page, as the endpoint's SQL chooses it: both ends included. */
function answerLogs(query: URLSearchParams, rows: readonly string[], response: ServerResponse): void {
  const time = (name: string): number => Date.parse(`${(query.get(name) ?? '').replace(' ', 'T')}Z`);
  const [page, size] = [Number(query.get('page')), Number(query.get('page_size'))];
  const data = rows.filter((row) => {
    const at = Date.parse(timed.parse(JSON.parse(row)).startTime);
    return at >= time('start_date') && at <= time('end_date');
  });
  response
    .writeHead(200, { 'content-type': 'application/json' })
    .end(`{"data":[${data.slice((page - 1) * size, page * size).join(',')}],"total":${data.length},"page":${page}}`);
}

function forward(router: LiteLlm, request: IncomingMessage, response: ServerResponse): void {
  const onward = httpRequest(`${router.url}${request.url ?? '/'}`, {
    method: request.method,
    headers: request.headers,
  });
  onward.on('response', (answer) => {
    response.writeHead(answer.statusCode ?? 502, answer.headers);
    answer.pipe(response);
  });
  onward.on('error', () => response.destroy());
  request.pipe(onward);
}
