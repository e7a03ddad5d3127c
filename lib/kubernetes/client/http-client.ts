// The client over Node's own HTTP: builds paths, sends JSON, checks the shape of each response.
import { z } from 'zod';
import type {
  CallOptions,
  Client,
  ClientOptions,
  DeleteOptions,
  ListOptions,
  ListPage,
  PatchOptions,
  RawRequest,
  Selection,
  WatchEvent,
  WatchOptions,
  WriteOptions,
} from './client.ts';
import type { Connection } from './connection.ts';
import { deadline } from './deadline.ts';
import { ApiError, isApiStatus } from '../errors.ts';
import { splitLines } from './lines.ts';
import { pathOf } from './path.ts';
import type { KubeObject, Manifest, ObjectRef, Resource } from '../object.ts';
import { apiVersionOf } from '../object.ts';
import type { Exchange } from './transport.ts';
import { exchange, parseJson, readText, streamError, unreachable } from './transport.ts';

const LIST_PAGE = 500;
/** A watch that has not ended this long after its own time limit has lost its server. */
const WATCH_GRACE_MS = 30_000;

const ListEnvelope = z.looseObject({
  metadata: z.looseObject({ resourceVersion: z.string(), continue: z.string().optional() }),
  items: z.array(z.unknown()).nullable(),
});
const WatchLine = z.looseObject({ type: z.string(), object: z.unknown() });

/** Makes a client over a connection (see `inClusterConnection`, `fileConnection`). */
export function createClient(connection: Connection, options: ClientOptions = {}): Client {
  return new HttpClient(connection, options);
}

class HttpClient implements Client {
  readonly #connection: Connection;
  readonly #timeoutMs: number;
  readonly #userAgent: string;

  constructor(connection: Connection, options: ClientOptions) {
    this.#connection = connection;
    this.#timeoutMs = options.timeoutMs ?? 30_000;
    this.#userAgent = options.userAgent ?? 'moorage';
  }

  async get<T extends KubeObject>(
    resource: Resource<T>,
    ref: ObjectRef,
    options: CallOptions = {},
  ): Promise<T | undefined> {
    try {
      return asObject(
        resource,
        await this.request({ ...options, method: 'GET', path: pathOf(resource, named(resource, ref)) }),
      );
    } catch (error) {
      if (isApiStatus(error, 404)) return undefined;
      throw error;
    }
  }

  async list<T extends KubeObject>(resource: Resource<T>, options: ListOptions = {}): Promise<ListPage<T>> {
    const { namespace, labelSelector, fieldSelector, limit, resourceVersion } = options;
    const path = pathOf(
      resource,
      { namespace },
      { labelSelector, fieldSelector, limit, resourceVersion, continue: options.continue },
    );
    const parsed = ListEnvelope.safeParse(await this.request({ ...options, method: 'GET', path }));
    if (!parsed.success)
      throw malformed(`The list of ${resource.plural} is not a list: ${z.prettifyError(parsed.error)}`);
    const { metadata, items } = parsed.data;
    const token = metadata.continue;
    return {
      items: (items ?? []).map((item) => asObject(resource, item)),
      resourceVersion: metadata.resourceVersion,
      continue: token === '' ? undefined : token,
    };
  }

  async *listAll<T extends KubeObject>(
    resource: Resource<T>,
    options: CallOptions & Selection = {},
  ): AsyncGenerator<T, void, undefined> {
    let token: string | undefined;
    do {
      const page = await this.list(resource, { ...options, limit: LIST_PAGE, continue: token });
      yield* page.items;
      token = page.continue;
    } while (token !== undefined);
  }

  async *watch<T extends KubeObject>(
    resource: Resource<T>,
    options: WatchOptions,
  ): AsyncGenerator<WatchEvent<T>, void, undefined> {
    const { namespace, labelSelector, fieldSelector, resourceVersion, timeoutSeconds } = options;
    const path = pathOf(
      resource,
      { namespace },
      { labelSelector, fieldSelector, resourceVersion, timeoutSeconds, watch: true, allowWatchBookmarks: true },
    );
    const limit = deadline(options.signal, options.timeoutMs ?? this.#timeoutMs, `watch of ${resource.plural}`);
    try {
      const answer = await exchange(this.#connection, this.#exchange('GET', path, limit.signal));
      limit.set(timeoutSeconds * 1000 + WATCH_GRACE_MS);
      options.onOpen?.();
      try {
        for await (const line of splitLines(answer as AsyncIterable<Uint8Array>)) yield parseLine(resource, line);
      } finally {
        answer.destroy();
      }
    } catch (error) {
      throw limit.signal.aborted ? limit.signal.reason : unreachable(this.#connection, error);
    } finally {
      limit.clear();
    }
  }

  async create<T extends KubeObject>(resource: Resource<T>, object: Manifest, options: WriteOptions = {}): Promise<T> {
    const { namespace } = object.metadata;
    const path = pathOf(resource, { namespace }, { fieldManager: options.fieldManager });
    return asObject(resource, await this.request({ ...options, method: 'POST', path, body: object }));
  }

  async replace<T extends KubeObject>(
    resource: Resource<T>,
    object: Manifest | T,
    options: WriteOptions = {},
  ): Promise<T> {
    const path = pathOf(
      resource,
      { ...named(resource, object.metadata), subresource: options.subresource },
      { fieldManager: options.fieldManager },
    );
    return asObject(resource, await this.request({ ...options, method: 'PUT', path, body: object }));
  }

  async patch<T extends KubeObject>(
    resource: Resource<T>,
    ref: ObjectRef,
    patch: unknown,
    options: PatchOptions,
  ): Promise<T> {
    const { fieldManager, force, subresource } = options;
    const path = pathOf(
      resource,
      { ...named(resource, ref), subresource },
      { fieldManager, force, dryRun: options.dryRun === true ? 'All' : undefined },
    );
    return asObject(
      resource,
      await this.request({ ...options, method: 'PATCH', path, body: patch, contentType: options.type }),
    );
  }

  async delete(resource: Resource, ref: ObjectRef, options: DeleteOptions = {}): Promise<boolean> {
    const { uid, resourceVersion, propagation = 'Background', gracePeriodSeconds } = options;
    const body = {
      kind: 'DeleteOptions',
      apiVersion: 'v1',
      propagationPolicy: propagation,
      gracePeriodSeconds,
      preconditions: { uid, resourceVersion },
    };
    try {
      await this.request({ ...options, method: 'DELETE', path: pathOf(resource, named(resource, ref)), body });
      return true;
    } catch (error) {
      if (isApiStatus(error, 404)) return false;
      throw error;
    }
  }

  async request(request: RawRequest): Promise<unknown> {
    const limit = deadline(request.signal, request.timeoutMs ?? this.#timeoutMs, `${request.method} ${request.path}`);
    try {
      const answer = await exchange(
        this.#connection,
        this.#exchange(request.method, request.path, limit.signal, request),
      );
      const text = await readText(answer);
      return (answer.headers['content-type'] ?? '').includes('json') ? parseJson(text) : text;
    } catch (error) {
      throw limit.signal.aborted ? limit.signal.reason : unreachable(this.#connection, error);
    } finally {
      limit.clear();
    }
  }

  close(): void {
    this.#connection.close();
  }

  #exchange(
    method: string,
    path: string,
    signal: AbortSignal,
    content?: Pick<RawRequest, 'body' | 'contentType'>,
  ): Exchange {
    const headers: Record<string, string> = { accept: 'application/json', 'user-agent': this.#userAgent };
    const body = content?.body === undefined ? undefined : JSON.stringify(content.body);
    if (body !== undefined) {
      headers['content-type'] = content?.contentType ?? 'application/json';
      headers['content-length'] = String(Buffer.byteLength(body));
    }
    return { method, path, headers, body, signal };
  }
}

function named(resource: Resource, ref: ObjectRef): { name: string; namespace?: string | undefined } {
  if (resource.namespaced && (ref.namespace === undefined || ref.namespace === '')) {
    throw new Error(`${resource.kind} "${ref.name}" needs a namespace: the kind is namespaced.`);
  }
  return { name: ref.name, namespace: ref.namespace };
}

function parseLine<T extends KubeObject>(resource: Resource<T>, line: string): WatchEvent<T> {
  const parsed = WatchLine.safeParse(parseJson(line));
  if (!parsed.success) throw malformed(`A line of the watch of ${resource.plural} is no event: ${line.slice(0, 200)}`);
  const { type, object } = parsed.data;
  switch (type) {
    case 'ADDED':
    case 'MODIFIED':
    case 'DELETED':
      return { type, object: asObject(resource, object) };
    case 'BOOKMARK':
      return { type, resourceVersion: bookmarkVersion(object) };
    case 'ERROR':
      throw streamError(object);
    default:
      throw malformed(`The watch of ${resource.plural} has an event of unknown type "${type}".`);
  }
}

const Bookmark = z.looseObject({ metadata: z.looseObject({ resourceVersion: z.string() }) });

function bookmarkVersion(object: unknown): string {
  return Bookmark.parse(object).metadata.resourceVersion;
}

/**
 * Checks only what the runtime itself relies on, and copies nothing: the server has checked the rest against its
 * schema.
 */
function asObject<T extends KubeObject>(resource: Resource<T>, value: unknown): T {
  if (!isObject(value) || !isObject(value['metadata']) || typeof value['metadata']['name'] !== 'string') {
    throw malformed(`The API server's answer is no ${resource.kind}: it has no metadata.name.`);
  }
  value['apiVersion'] ??= apiVersionOf(resource);
  value['kind'] ??= resource.kind;
  return value as unknown as T;
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null;
}

function malformed(message: string): ApiError {
  return new ApiError(0, 'Malformed', message);
}
