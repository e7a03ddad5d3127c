// The port that the operator alone reaches: which apps are in use, and to hold what comes for one.
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { z } from 'zod';
import { closeRequest, openRequest } from '../../crds/reports.ts';
import type { Activity } from './activity.ts';

const maximumBody = 4_096;

/** The server; it does not listen yet. */
export function createControlServer(activity: Activity): Server {
  return createServer((request, response) => {
    answer(activity, request).then(
      (body) => {
        send(response, 200, body);
      },
      (error: unknown) => {
        send(response, 400, { detail: error instanceof Error ? error.message : String(error) });
      },
    );
  });
}

async function answer(activity: Activity, request: IncomingMessage): Promise<object> {
  switch (`${request.method ?? ''} ${request.url ?? ''}`) {
    case 'GET /activity':
      return activity.report();
    case 'POST /close':
      return { closed: activity.close(await bodyOf(request, closeRequest)) };
    case 'POST /open':
      activity.open((await bodyOf(request, openRequest)).app);
      return {};
    default:
      throw new Error('Ask GET /activity, POST /close or POST /open.');
  }
}

async function bodyOf<T>(request: IncomingMessage, schema: z.ZodType<T>): Promise<T> {
  const chunks: Buffer[] = [];
  let length = 0;
  for await (const chunk of request as AsyncIterable<Buffer>) {
    length += chunk.length;
    if (length > maximumBody) throw new Error(`the body is longer than ${maximumBody} bytes`);
    chunks.push(chunk);
  }
  return schema.parse(JSON.parse(Buffer.concat(chunks).toString()));
}

function send(response: ServerResponse, status: number, body: object): void {
  response.writeHead(status, { 'content-type': 'application/json' });
  response.end(JSON.stringify(body));
}
