// A small API server on loopback with real versions, pages and watches, and with faults on demand.
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { createServer } from 'node:http';
import { createClient, createStaticConnection, type Client, type KubeObject } from '../../../lib/kubernetes/index.ts';

/** An object as the server keeps it. */
export type Stored = KubeObject & Record<string, unknown>;

interface Entry {
  version: number;
  type: string;
  path: string;
  object: Stored;
}

interface Watcher {
  path: string;
  name: string | undefined;
  bookmarks: boolean;
  response: ServerResponse;
}

/** Answers a request itself (returns true), or leaves it to the server. */
export type Fault = (request: IncomingMessage, response: ServerResponse, url: URL) => boolean;

interface RequestTarget {
  /** Path without the namespace: names the kind. */
  kind: string;
  namespace: string | undefined;
  name: string | undefined;
  subresource: string | undefined;
}

/** Turns a request's path into what it names. */
function parseTarget(pathname: string): RequestTarget {
  const parts = pathname
    .split('/')
    .filter((part) => part !== '')
    .map(decodeURIComponent);
  const root = parts.splice(0, parts[0] === 'api' ? 2 : 3);
  const namespace = parts[0] === 'namespaces' && parts.length > 2 ? parts.splice(0, 2)[1] : undefined;
  return { kind: [...root, parts[0] ?? ''].join('/'), namespace, name: parts[1], subresource: parts[2] };
}

/** The server. */
export class FakeApi {
  readonly requests: { method: string; url: URL; body: unknown; type: string | undefined }[] = [];
  /** Asked for each request, first to last, until one answers. */
  readonly faults: Fault[] = [];
  readonly #objects = new Map<string, Stored>();
  readonly #log: Entry[] = [];
  readonly #watchers = new Set<Watcher>();
  readonly #server = createServer((request, response) => void this.#serve(request, response));
  #version = 1;
  #compacted = 0;
  #pages = new Map<string, { items: Stored[]; version: number }>();

  async start(): Promise<Client> {
    this.#server.listen(0, '127.0.0.1');
    await once(this.#server, 'listening');
    return this.client();
  }

  client(headers: Record<string, string> = {}): Client {
    const address = this.#server.address();
    if (typeof address !== 'object' || address === null) throw new Error('not started');
    return createClient(createStaticConnection(`http://127.0.0.1:${address.port}`, { headers }), { timeoutMs: 10_000 });
  }

  async stop(): Promise<void> {
    this.#server.close();
    this.#server.closeAllConnections();
    await once(this.#server, 'close');
  }

  get watching(): number {
    return this.#watchers.size;
  }

  get version(): number {
    return this.#version;
  }

  objects(kind: string): Stored[] {
    return [...this.#objects].filter(([path]) => path.startsWith(`${kind}:`)).map(([, object]) => object);
  }

  count(method: string, match: (url: URL) => boolean): number {
    return this.requests.filter((request) => request.method === method && match(request.url)).length;
  }

  /** Sets an object from outside, as another client would. */
  put(
    kind: string,
    object: { metadata: { name: string; namespace?: string; [field: string]: unknown }; [field: string]: unknown },
  ): Stored {
    const key = `${kind}:${object.metadata.namespace ?? ''}/${object.metadata.name}`;
    const old = this.#objects.get(key);
    this.#version += 1;
    const fixed = {
      uid: old?.metadata.uid ?? randomUUID(),
      creationTimestamp: '2026-01-01T00:00:00Z',
      resourceVersion: String(this.#version),
    };
    const stored = {
      ...structuredClone(object),
      metadata: { ...structuredClone(object.metadata), ...fixed },
    } as unknown as Stored;
    this.#objects.set(key, stored);
    this.#record(kind, old === undefined ? 'ADDED' : 'MODIFIED', stored);
    return stored;
  }

  /** Removes an object from outside. */
  remove(kind: string, name: string, namespace = ''): void {
    const key = `${kind}:${namespace}/${name}`;
    const old = this.#objects.get(key);
    if (old === undefined) return;
    this.#objects.delete(key);
    this.#version += 1;
    this.#record(kind, 'DELETED', { ...old, metadata: { ...old.metadata, resourceVersion: String(this.#version) } });
  }

  /** Forgets history: watches from before, and open pages, are gone (410). */
  compact(): void {
    this.#compacted = this.#version;
    this.#pages = new Map();
  }

  /** Breaks every open watch: by a clean end, a cut in the middle of a line, or an error line. */
  breakWatches(how: 'end' | 'cut' | 'gone'): void {
    for (const { response } of [...this.#watchers]) {
      if (how === 'end') response.end();
      else if (how === 'gone')
        response.end(
          `${JSON.stringify({ type: 'ERROR', object: status(410, 'Expired', 'too old resource version') })}\n`,
        );
      else response.write('{"type":"ADDED","object":{"metadata":{"na', () => response.destroy());
    }
    this.#watchers.clear();
  }

  /** Sends a bookmark on every watch that wants them. */
  bookmark(): void {
    const line = `${JSON.stringify({ type: 'BOOKMARK', object: { metadata: { resourceVersion: String(this.#version) } } })}\n`;
    for (const watcher of this.#watchers) if (watcher.bookmarks) watcher.response.write(line);
  }

  #record(path: string, type: string, object: Stored): void {
    const entry = { version: this.#version, type, path, object };
    this.#log.push(entry);
    for (const watcher of this.#watchers) notify(watcher, entry);
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const url = new URL(request.url ?? '/', 'http://fake');
    const chunks: Buffer[] = [];
    for await (const chunk of request as AsyncIterable<Buffer>) chunks.push(chunk);
    const text = Buffer.concat(chunks).toString();
    const body: unknown = text === '' ? undefined : JSON.parse(text);
    const method = request.method ?? 'GET';
    this.requests.push({ method, url, body, type: request.headers['content-type'] });
    if (this.faults.some((fault) => fault(request, response, url))) return;
    const target = parseTarget(url.pathname);
    if (url.searchParams.get('watch') === 'true') this.#watch(target, url, response);
    else if (method === 'GET' && target.name === undefined) this.#list(target, url, response);
    else this.#single(method, target, body as Stored | undefined, response);
  }

  #list(target: RequestTarget, url: URL, response: ServerResponse): void {
    const token = url.searchParams.get('continue');
    const limit = Number(url.searchParams.get('limit') ?? '0') || Infinity;
    const page = token === null ? { items: this.#selected(target), version: this.#version } : this.#pages.get(token);
    if (page === undefined) {
      send(response, 410, status(410, 'Expired', 'The provided continue parameter is too old'));
      return;
    }
    const rest = page.items.slice(limit);
    const metadata: Record<string, string> = { resourceVersion: String(page.version) };
    if (rest.length > 0) {
      metadata['continue'] = randomUUID();
      this.#pages.set(metadata['continue'], { items: rest, version: page.version });
    }
    // As the real one does, items of a list are without their kind.
    const items = page.items.slice(0, limit).map((item) => ({ ...item, kind: undefined, apiVersion: undefined }));
    send(response, 200, { kind: 'List', metadata, items });
  }

  #selected({ kind, namespace }: RequestTarget): Stored[] {
    return this.objects(kind).filter((object) => namespace === undefined || object.metadata.namespace === namespace);
  }

  #watch(target: RequestTarget, url: URL, response: ServerResponse): void {
    const from = Number(url.searchParams.get('resourceVersion'));
    if (from < this.#compacted) {
      send(response, 410, status(410, 'Expired', `too old resource version: ${from} (${this.#compacted})`));
      return;
    }
    const name = url.searchParams.get('fieldSelector')?.replace('metadata.name=', '');
    const watcher = {
      path: target.kind,
      name,
      bookmarks: url.searchParams.get('allowWatchBookmarks') === 'true',
      response,
    };
    response.writeHead(200, { 'content-type': 'application/json' });
    response.flushHeaders();
    for (const entry of this.#log) if (entry.version > from) notify(watcher, entry);
    this.#watchers.add(watcher);
    response.on('close', () => this.#watchers.delete(watcher));
  }

  #single(method: string, target: RequestTarget, body: Stored | undefined, response: ServerResponse): void {
    const name = target.name ?? body?.metadata.name ?? '';
    const old = this.#objects.get(`${target.kind}:${target.namespace ?? ''}/${name}`);
    const refusal = refuse(method, old, body);
    if (refusal !== undefined) send(response, refusal.code, refusal);
    else if (method === 'GET') send(response, 200, old);
    else if (method === 'DELETE') {
      this.remove(target.kind, name, target.namespace);
      send(response, 200, old);
    } else
      send(
        response,
        200,
        this.put(target.kind, { ...old, ...body, metadata: { ...old?.metadata, ...body?.metadata, name } }),
      );
  }
}

type Refusal = ReturnType<typeof status>;

interface Preconditions {
  uid?: string | undefined;
  resourceVersion?: string | undefined;
}

function refuse(method: string, old: Stored | undefined, body: Stored | undefined): Refusal | undefined {
  if (method === 'POST') return old === undefined ? undefined : status(409, 'AlreadyExists', 'already exists');
  if (method === 'PATCH') return undefined;
  if (old === undefined) return status(404, 'NotFound', 'not found');
  if (method === 'DELETE')
    return conflict(old, (body as { preconditions?: Preconditions } | undefined)?.preconditions ?? {});
  return conflict(old, { resourceVersion: body?.metadata.resourceVersion });
}

function conflict(old: Stored, { uid, resourceVersion }: Preconditions): Refusal | undefined {
  if (uid !== undefined && uid !== old.metadata.uid) return status(409, 'Conflict', 'Precondition failed: UID');
  if (resourceVersion !== undefined && resourceVersion !== old.metadata.resourceVersion)
    return status(409, 'Conflict', 'the object has been modified');
  return undefined;
}

function notify(watcher: Watcher, entry: Entry): void {
  if (entry.path !== watcher.path || (watcher.name !== undefined && entry.object.metadata.name !== watcher.name))
    return;
  watcher.response.write(`${JSON.stringify({ type: entry.type, object: entry.object })}\n`);
}

/** A `Status` object. */
export function status(
  code: number,
  reason: string,
  message: string,
): { kind: string; code: number; reason: string; message: string } {
  return { kind: 'Status', code, reason, message };
}

/** Answers with JSON. */
export function send(
  response: ServerResponse,
  code: number,
  body: unknown,
  headers: Record<string, string> = {},
): void {
  response.writeHead(code, { 'content-type': 'application/json', ...headers }).end(JSON.stringify(body));
}
