// Serves pages: the shape of a page, its endpoint, its security headers, and its calls of other endpoints.
import { z } from 'zod';
import {
  createBufferedResponse,
  defineEndpoint,
  type Endpoint,
  eventStreamType,
  type Method,
  computeEtag,
  type RequestFields,
  type Html,
  hasMatchingEtag,
  type RawInput,
  type RequestContext,
} from '../http/index.ts';
import type { AssetName } from './assets.ts';
import { renderLayout } from './layout.ts';
import { type PageSite, type Visit, createVisit } from './visit.ts';

/** What a page shows inside the layout. */
export interface Page {
  readonly title: string;
  readonly description?: string;
  readonly main: Html;
  /** More elements of the head. */
  readonly head?: Html;
  readonly scripts?: readonly AssetName[];
  /** The same content for programs. */
  readonly json?: string | undefined;
  readonly status?: number;
  /** Contains data of this visitor alone. */
  readonly isPrivate?: boolean;
}

export interface PageInput {
  readonly params: Readonly<Record<string, string>>;
  readonly query: RequestFields;
  readonly form: RequestFields;
}

export interface PageDefinition {
  readonly method?: 'GET' | 'POST';
  /** Like `/apps/{slug}`. */
  readonly path: string;
  readonly operation: string;
  readonly summary: string;
  /** Maximum size of a form in bytes. */
  readonly formLimit?: number;
  /** The address itself is the permission and says what to do: a POST is accepted from anywhere, and its body is not read. */
  readonly ignoresForm?: boolean;
  readonly render: (input: PageInput, visit: Visit, context: RequestContext) => Promise<Page | Response> | Page;
}

export const htmlType = 'text/html';

/** Allows only this site's own scripts and styles, no frames, and forms to this site only. */
const guards = {
  'content-type': `${htmlType}; charset=utf-8`,
  'content-security-policy':
    "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self' data:; connect-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'",
  // With `no-referrer`, a form would be sent without its origin.
  'referrer-policy': 'same-origin',
  'cross-origin-opener-policy': 'same-origin',
  'permissions-policy': 'camera=(), geolocation=(), microphone=(), payment=()',
};

const anything = z.record(z.string(), z.union([z.string(), z.array(z.string())]));

/** Creates the endpoint of a page. It ignores unknown query fields, because links are shared with all kinds of them. */
export function createPageEndpoint(site: PageSite, definition: PageDefinition): Endpoint {
  const { method = 'GET', path, operation, summary, formLimit, ignoresForm = false, render } = definition;
  return defineEndpoint({
    method,
    path,
    operation,
    tag: 'pages',
    summary,
    description: summary,
    ...(method === 'GET' ? { head: 'as GET' as const } : {}),
    ...(method === 'GET' || ignoresForm ? {} : { body: anything, bodyForm: 'form' as const }),
    ...(formLimit === undefined ? {} : { bodyLimit: formLimit }),
    read: ({ params, query, body }: RawInput): PageInput => ({ params, query, form: anything.catch({}).parse(body) }),
    output: z.string(),
    outputDescription: 'The page.',
    produces: [htmlType],
    async handler(input, context) {
      const visit = createVisit(site, {
        path: fillPath(path, input.params),
        query: input.query,
        headers: context.headers,
      });
      const page = await render(input, visit, context);
      return page instanceof Response ? page : createPageResponse(page, visit, context.headers);
    },
  });
}

/** Fills the parameters of a page's path. */
export function fillPath(path: string, params: Readonly<Record<string, string>>): string {
  return path.replaceAll(/\{(\w+)\}/g, (_whole, name: string) => encodeURIComponent(params[name] ?? ''));
}

export function createPageResponse(
  page: Page,
  visit: Visit,
  requestHeaders: Headers,
  more: Readonly<Record<string, string>> = {},
): Response {
  const content = renderLayout(page, visit).toString();
  const { status = 200, isPrivate = false } = page;
  const isCacheable = status === 200 && !isPrivate;
  const headers = {
    ...guards,
    vary: 'accept, accept-language',
    'content-language': visit.language === 'zh' ? 'zh-Hans' : 'en',
    'cache-control': isCacheable ? 'no-cache' : 'no-store',
    ...more,
  };
  if (!isCacheable) return createBufferedResponse(content, { status, headers });
  const etag = computeEtag(content);
  return hasMatchingEtag(requestHeaders, etag)
    ? new Response(null, { status: 304, headers: { ...headers, etag } })
    : createBufferedResponse(content, { headers: { ...headers, etag } });
}

/** Redirects a browser after a form. */
export function redirectTo(location: string): Response {
  return new Response(null, { status: 303, headers: { location, 'cache-control': 'no-store' } });
}

export interface EndpointInput {
  readonly params?: Readonly<Record<string, string>>;
  readonly query?: Readonly<Record<string, string>>;
  readonly body?: unknown;
  /** The visitor's key, for the model router or for statements. */
  readonly key?: string;
}

/** Calls an endpoint for its effect. @throws Problem as the endpoint does */
export type EndpointAction = (context: RequestContext, input?: EndpointInput) => Promise<void>;

/** Calls an endpoint. @throws Problem as the endpoint does */
export type EndpointCall<Output> = (context: RequestContext, input?: EndpointInput) => Promise<Output>;

/** Calls endpoints inside the process: the same validation, problems and payer as over HTTP, and the same output. */
export class Calls {
  readonly #byName: ReadonlyMap<string, Endpoint>;

  constructor(endpoints: readonly Endpoint[]) {
    this.#byName = new Map(endpoints.map((endpoint) => [`${endpoint.method} ${endpoint.path}`, endpoint]));
  }

  /** Finds the endpoint whose output schema is `output`; undefined if this installation does not have it. */
  find<Output extends z.ZodType>(
    method: 'GET' | 'POST' | 'PUT',
    path: string,
    output: Output,
  ): EndpointCall<z.output<Output>> | undefined {
    const endpoint = this.#byName.get(`${method} ${path}`);
    if (endpoint === undefined) return undefined;
    if (endpoint.output !== output) throw new TypeError(`${method} ${path} has another output schema`);
    return async (context, { params = {}, query = {}, body, key } = {}) =>
      // The endpoint has parsed it by this very schema.
      (await endpoint.call({ params, query, body }, toEndpointContext(context, key))) as z.output<Output>;
  }

  /** Finds an endpoint that streams events. The page's own response is what it answers. */
  findStream(path: string): ((context: RequestContext, input: EndpointInput) => Promise<Response>) | undefined {
    const endpoint = this.#byName.get(`GET ${path}`);
    if (endpoint === undefined) return undefined;
    return async (context, { params = {}, query = {}, key }) => {
      const inner = toEndpointContext(context, key);
      const last = context.headers.get('last-event-id');
      if (last !== null) inner.headers.set('last-event-id', last);
      return endpoint.run({ params, query, body: undefined }, { ...inner, mediaType: eventStreamType });
    };
  }

  /** The scope that an author's endpoint requires of a token; undefined if this installation does not have it. */
  findScope(method: Method, path: string): string | undefined {
    return this.#byName.get(`${method} ${path}`)?.authorScope;
  }

  /** Finds an endpoint that a page calls for its effect; undefined if this installation does not have it. */
  findAction(method: Method, path: string): EndpointAction | undefined {
    const endpoint = this.#byName.get(`${method} ${path}`);
    if (endpoint === undefined) return undefined;
    return async (context, { params = {}, query = {}, body, key } = {}) => {
      await endpoint.call({ params, query, body }, toEndpointContext(context, key));
    };
  }
}

/** Keeps the caller and lifetime of the visit, but not the headers that concern the page, such as If-None-Match. */
function toEndpointContext(context: RequestContext, key: string | undefined): RequestContext {
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

/** Reads the cursor from the URL of a list's next page. */
export function readCursor(next: string | null): string | undefined {
  return next !== null && URL.canParse(next) ? (new URL(next).searchParams.get('cursor') ?? undefined) : undefined;
}
