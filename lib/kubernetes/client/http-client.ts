// Implements the client of the Kubernetes API: builds paths, sends JSON, and checks the shape of each response.
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
import { startDeadline } from '../clock.ts';
import { ApiError, isApiStatus } from '../errors.ts';
import {
  splitLines,
  type Exchange,
  exchange,
  parseJson,
  readText,
  createStreamError,
  createUnreachable,
} from './transport.ts';
import { type KubeObject, type Manifest, type ObjectRef, type Resource, formatApiVersion } from '../object.ts';

const LIST_PAGE = 500;
/** A watch that has not ended this long after its own time limit has lost its server. */
const WATCH_GRACE_MS = 30_000;

const ListEnvelope = z.looseObject({
  metadata: z.looseObject({ resourceVersion: z.string(), continue: z.string().optional() }),
  items: z.array(z.unknown()).nullable(),
});
const WatchLine = z.looseObject({ type: z.string(), object: z.unknown() });

/** Creates a client over a connection (see `readInClusterConnection`, `readFileConnection`). */
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
      return toObject(
        resource,
        await this.request({ ...options, method: 'GET', path: buildPath(resource, requireNamespace(resource, ref)) }),
      );
    } catch (error) {
      if (isApiStatus(error, 404)) return undefined;
      throw error;
    }
  }

  async list<T extends KubeObject>(resource: Resource<T>, options: ListOptions = {}): Promise<ListPage<T>> {
    const { namespace, labelSelector, fieldSelector, limit, resourceVersion } = options;
    const path = buildPath(
      resource,
      { namespace },
      { labelSelector, fieldSelector, limit, resourceVersion, continue: options.continue },
    );
    const parsed = ListEnvelope.safeParse(await this.request({ ...options, method: 'GET', path }));
    if (!parsed.success)
      throw createMalformed(`The list of ${resource.plural} is not a list: ${z.prettifyError(parsed.error)}`);
    const { metadata, items } = parsed.data;
    const token = metadata.continue;
    return {
      items: (items ?? []).map((item) => toObject(resource, item)),
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
    const path = buildPath(
      resource,
      { namespace },
      { labelSelector, fieldSelector, resourceVersion, timeoutSeconds, watch: true, allowWatchBookmarks: true },
    );
    const limit = startDeadline(options.signal, options.timeoutMs ?? this.#timeoutMs, `watch of ${resource.plural}`);
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
      throw limit.signal.aborted ? limit.signal.reason : createUnreachable(this.#connection, error);
    } finally {
      limit.clear();
    }
  }

  async create<T extends KubeObject>(resource: Resource<T>, object: Manifest, options: WriteOptions = {}): Promise<T> {
    const { namespace } = object.metadata;
    const path = buildPath(resource, { namespace }, { fieldManager: options.fieldManager });
    return toObject(resource, await this.request({ ...options, method: 'POST', path, body: object }));
  }

  async replace<T extends KubeObject>(
    resource: Resource<T>,
    object: Manifest | T,
    options: WriteOptions = {},
  ): Promise<T> {
    const path = buildPath(
      resource,
      { ...requireNamespace(resource, object.metadata), subresource: options.subresource },
      { fieldManager: options.fieldManager },
    );
    return toObject(resource, await this.request({ ...options, method: 'PUT', path, body: object }));
  }

  async patch<T extends KubeObject>(
    resource: Resource<T>,
    ref: ObjectRef,
    patch: unknown,
    options: PatchOptions,
  ): Promise<T> {
    const { fieldManager, force, subresource } = options;
    const path = buildPath(
      resource,
      { ...requireNamespace(resource, ref), subresource },
      { fieldManager, force, dryRun: options.dryRun === true ? 'All' : undefined },
    );
    return toObject(
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
      await this.request({
        ...options,
        method: 'DELETE',
        path: buildPath(resource, requireNamespace(resource, ref)),
        body,
      });
      return true;
    } catch (error) {
      if (isApiStatus(error, 404)) return false;
      throw error;
    }
  }

  async request(request: RawRequest): Promise<unknown> {
    const limit = startDeadline(
      request.signal,
      request.timeoutMs ?? this.#timeoutMs,
      `${request.method} ${request.path}`,
    );
    try {
      const answer = await exchange(
        this.#connection,
        this.#exchange(request.method, request.path, limit.signal, request),
      );
      const text = await readText(answer);
      return (answer.headers['content-type'] ?? '').includes('json') ? parseJson(text) : text;
    } catch (error) {
      throw limit.signal.aborted ? limit.signal.reason : createUnreachable(this.#connection, error);
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

/** Query parameters; those that are undefined or empty are left out. */
type Query = Record<string, string | number | boolean | undefined>;

/** Path of a resource, or of one object in it. */
export function buildPath(
  resource: Resource,
  where: { namespace?: string | undefined; name?: string | undefined; subresource?: string | undefined } = {},
  query: Query = {},
): string {
  const root = resource.group === '' ? `/api/${resource.version}` : `/apis/${resource.group}/${resource.version}`;
  const scope = resource.namespaced && where.namespace !== undefined ? ['namespaces', where.namespace] : [];
  const parts = [...scope, resource.plural, where.name, where.subresource].filter((part) => part !== undefined);
  const search = new URLSearchParams();
  for (const [name, value] of Object.entries(query))
    if (value !== undefined && value !== '') search.set(name, String(value));
  const path = [root, ...parts.map(encodeURIComponent)].join('/');
  return search.size === 0 ? path : `${path}?${search.toString()}`;
}

function requireNamespace(resource: Resource, ref: ObjectRef): { name: string; namespace?: string | undefined } {
  if (resource.namespaced && (ref.namespace === undefined || ref.namespace === '')) {
    throw new Error(`${resource.kind} "${ref.name}" needs a namespace: the kind is namespaced.`);
  }
  return { name: ref.name, namespace: ref.namespace };
}

function parseLine<T extends KubeObject>(resource: Resource<T>, line: string): WatchEvent<T> {
  const parsed = WatchLine.safeParse(parseJson(line));
  if (!parsed.success)
    throw createMalformed(`A line of the watch of ${resource.plural} is no event: ${line.slice(0, 200)}`);
  const { type, object } = parsed.data;
  switch (type) {
    case 'ADDED':
    case 'MODIFIED':
    case 'DELETED':
      return { type, object: toObject(resource, object) };
    case 'BOOKMARK':
      return { type, resourceVersion: readBookmarkVersion(object) };
    case 'ERROR':
      throw createStreamError(object);
    default:
      throw createMalformed(`The watch of ${resource.plural} has an event of unknown type "${type}".`);
  }
}

const Bookmark = z.looseObject({ metadata: z.looseObject({ resourceVersion: z.string() }) });

function readBookmarkVersion(object: unknown): string {
  return Bookmark.parse(object).metadata.resourceVersion;
}

/** Checks only what the runtime relies on, and copies nothing: the server has checked the rest against its schema. */
function toObject<T extends KubeObject>(resource: Resource<T>, value: unknown): T {
  if (!isObject(value) || !isObject(value['metadata']) || typeof value['metadata']['name'] !== 'string') {
    throw createMalformed(`The API server's answer is no ${resource.kind}: it has no metadata.name.`);
  }
  value['apiVersion'] ??= formatApiVersion(resource);
  value['kind'] ??= resource.kind;
  return value as unknown as T;
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null;
}

function createMalformed(message: string): ApiError {
  return new ApiError(0, 'Malformed', message);
}
