// Calls of endpoints from pages, inside the process: the same validation, the same words, the same payer, and no HTTP.
import type { z } from 'zod';
import type { Endpoint, RequestContext } from '../http/index.ts';

export interface EndpointCall {
  readonly params?: Readonly<Record<string, string>>;
  readonly query?: Readonly<Record<string, string>>;
  readonly body?: unknown;
  /** Key for the model router that the visitor gave. */
  readonly key?: string;
}

export type Method = 'GET' | 'POST';

/** Finds and calls endpoints. */
export class Calls {
  readonly #byName: ReadonlyMap<string, Endpoint>;

  constructor(endpoints: readonly Endpoint[]) {
    this.#byName = new Map(endpoints.map((endpoint) => [`${endpoint.method} ${endpoint.path}`, endpoint]));
  }

  has(method: Method, path: string): boolean {
    return this.#byName.has(`${method} ${path}`);
  }

  /** What the endpoint answers as JSON. @throws Problem as the endpoint does */
  async json<Schema extends z.ZodType>(
    method: Method,
    path: string,
    schema: Schema,
    context: RequestContext,
    call: EndpointCall = {},
  ): Promise<z.output<Schema>> {
    const endpoint = this.#byName.get(`${method} ${path}`);
    if (endpoint === undefined) throw new TypeError(`there is no endpoint ${method} ${path}`);
    const { params = {}, query = {}, body, key } = call;
    const response = await endpoint.run({ params, query, body }, contextOf(context, key));
    return schema.parse(await response.json());
  }
}

/** The caller and the time of the visit, without headers that speak of the page: a validator of its copy, a language. */
function contextOf(context: RequestContext, key: string | undefined): RequestContext {
  return {
    id: context.id,
    headers: new Headers(key === undefined ? {} : { authorization: `Bearer ${key}` }),
    mediaType: 'application/json',
    caller: () => context.caller(),
    signal: context.signal,
    log: context.log,
    onFinished: (done) => {
      context.onFinished(done);
    },
  };
}
