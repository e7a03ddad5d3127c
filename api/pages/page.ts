// A page: what it contains, the endpoint that answers with it, and the headers that guard it.
import { z } from 'zod';
import {
  createBufferedResponse,
  defineEndpoint,
  type Endpoint,
  computeEtag,
  type RequestFields,
  type Html,
  matchesEtag,
  type RawInput,
  type RequestContext,
} from '../http/index.ts';
import type { AssetName } from './assets.ts';
import { layout } from './layout.ts';
import { type PageSite, type Visit, visitOf } from './visit.ts';

/** What a page shows inside the layout. */
export interface Page {
  readonly title: string;
  readonly description?: string;
  readonly main: Html;
  /** More elements of the head. */
  readonly head?: Html;
  readonly scripts?: readonly AssetName[];
  /** The same for programs. */
  readonly json?: string | undefined;
  readonly status?: number;
  /** Holds what was made for this visitor alone. */
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
  readonly render: (input: PageInput, visit: Visit, context: RequestContext) => Promise<Page | Response> | Page;
}

export const htmlType = 'text/html';

/** No script or style but our own files, no frame, and forms to this site only. */
const guards = {
  'content-type': `${htmlType}; charset=utf-8`,
  'content-security-policy':
    "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self' data:; connect-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'",
  // Not `no-referrer`: a form would be sent without its origin.
  'referrer-policy': 'same-origin',
  'cross-origin-opener-policy': 'same-origin',
  'permissions-policy': 'camera=(), geolocation=(), microphone=(), payment=()',
};

const anything = z.record(z.string(), z.union([z.string(), z.array(z.string())]));

/** The endpoint of a page. A field of the query that it does not know is let pass: links are shared with all kinds. */
export function pageEndpoint(site: PageSite, definition: PageDefinition): Endpoint {
  const { method = 'GET', path, operation, summary, formLimit, render } = definition;
  return defineEndpoint({
    method,
    path,
    operation,
    tag: 'pages',
    summary,
    description: summary,
    ...(method === 'GET' ? { head: 'as GET' as const } : { body: anything, bodyForm: 'form' as const }),
    ...(formLimit === undefined ? {} : { bodyLimit: formLimit }),
    read: ({ params, query, body }: RawInput): PageInput => ({ params, query, form: anything.catch({}).parse(body) }),
    output: z.string(),
    outputDescription: 'The page.',
    produces: [htmlType],
    async handler(input, context) {
      const visit = visitOf(site, { path: filled(path, input.params), query: input.query, headers: context.headers });
      const page = await render(input, visit, context);
      return page instanceof Response ? page : pageResponse(page, visit, context.headers);
    },
  });
}

/** The address of a page, from its path as it is defined. */
export function filled(path: string, params: Readonly<Record<string, string>>): string {
  return path.replaceAll(/\{(\w+)\}/g, (_whole, name: string) => encodeURIComponent(params[name] ?? ''));
}

export function pageResponse(
  page: Page,
  visit: Visit,
  asked: Headers,
  more: Readonly<Record<string, string>> = {},
): Response {
  const content = layout(page, visit).toString();
  const { status = 200, isPrivate = false } = page;
  const kept = status === 200 && !isPrivate;
  const headers = {
    ...guards,
    vary: 'accept, accept-language',
    'content-language': visit.language === 'zh' ? 'zh-Hans' : 'en',
    'cache-control': kept ? 'no-cache' : 'no-store',
    ...more,
  };
  if (!kept) return createBufferedResponse(content, { status, headers });
  const etag = computeEtag(content);
  return matchesEtag(asked, etag)
    ? new Response(null, { status: 304, headers: { ...headers, etag } })
    : createBufferedResponse(content, { headers: { ...headers, etag } });
}

/** Leads a browser on after a form. */
export function seeOther(location: string): Response {
  return new Response(null, { status: 303, headers: { location, 'cache-control': 'no-store' } });
}
