// Tracks which apps are in use, and lets the operator read that and close an app before it sleeps.
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { z } from 'zod';
import { closeRequest, openRequest, type ActivityReport, type AppReport, type CloseRequest } from '../crds/reports.ts';

export interface Activity {
  /** Counts a request until the returned function is called. A look by the platform itself is not counted as use. */
  begin(app: string, isLook: boolean): () => void;
  /** Records a wake, in milliseconds from the first request to the first connection. False: it was known. */
  recordWake(app: string, number: number, ms: number): boolean;
  /** Holds requests from now on, unless the app was used within `idleMs`. False: it is in use. */
  close(request: CloseRequest): boolean;
  open(app: string): void;
  /** Whether requests are held until the announced rest shows in the cache. @param number the last rest that does */
  isClosed(app: string, number: number): boolean;
  report(): ActivityReport;
  readonly inFlight: number;
}

interface Entry {
  inFlight: number;
  endedAt: number | undefined;
  closed: { readonly until: number; readonly number: number } | undefined;
  wakes: AppReport['wakes'];
}

/** If the operator does nothing more, the app opens again after this long. */
const closedMs = 10_000;
/** Wakes that the operator may not have read yet. */
const keptWakes = 5;

/** @param now monotonic milliseconds */
export function createActivity(now: () => number = () => performance.now()): Activity {
  const entries = new Map<string, Entry>();
  let total = 0;

  function getEntry(app: string): Entry {
    const existing = entries.get(app);
    if (existing !== undefined) return existing;
    const entry: Entry = { inFlight: 0, endedAt: undefined, closed: undefined, wakes: [] };
    entries.set(app, entry);
    return entry;
  }

  return {
    begin(app, isLook) {
      if (isLook) return () => undefined;
      const entry = getEntry(app);
      entry.inFlight += 1;
      total += 1;
      let isOver = false;
      return () => {
        if (isOver) return;
        isOver = true;
        entry.inFlight -= 1;
        total -= 1;
        entry.endedAt = now();
      };
    },
    recordWake(app, number, ms) {
      const entry = getEntry(app);
      if (entry.wakes.some((wake) => wake.number === number)) return false;
      entry.wakes = [...entry.wakes, { number, ms }].slice(-keptWakes);
      return true;
    },
    close({ app, number, idleMs }) {
      const entry = getEntry(app);
      const isUsed = entry.inFlight > 0 || (entry.endedAt !== undefined && now() - entry.endedAt < idleMs);
      if (!isUsed) entry.closed = { until: now() + closedMs, number };
      return !isUsed;
    },
    open(app) {
      getEntry(app).closed = undefined;
    },
    isClosed(app, number) {
      const closed = entries.get(app)?.closed;
      return closed !== undefined && now() < closed.until && number < closed.number;
    },
    report: () => ({
      apps: Object.fromEntries(
        [...entries].map(([app, { inFlight, endedAt, wakes }]) => [
          app,
          { inFlight, ...(endedAt === undefined ? {} : { idleMs: now() - endedAt }), wakes: [...wakes] },
        ]),
      ),
    }),
    get inFlight() {
      return total;
    },
  };
}

// The control port, which only the operator reaches.

const maximumBody = 4_096;

/** Creates the server; it does not listen yet. */
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
      return { closed: activity.close(await readBody(request, closeRequest)) };
    case 'POST /open':
      activity.open((await readBody(request, openRequest)).app);
      return {};
    default:
      throw new Error('Ask GET /activity, POST /close or POST /open.');
  }
}

async function readBody<T>(request: IncomingMessage, schema: z.ZodType<T>): Promise<T> {
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
