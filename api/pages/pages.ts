// Starts the pages that people see, made from the same endpoints that programs call, and the page of a problem.
import Negotiator from 'negotiator';
import { a2aPath, type FrontPage } from '../protocols/index.ts';
import type { Offer, SignIn } from '../apps/index.ts';
import { type Endpoint, type RefusedRequest, html } from '../http/index.ts';
import { type Problem, problemMediaType } from '../../lib/problem.ts';
import type { Catalog as ModelList } from '../models/index.ts';
import { assetEndpoint } from './assets.ts';
import { Calls, htmlType, createPageResponse, type Page } from './page.ts';
import { createAuthorPages } from './author-pages.ts';
import { createAppPages } from './app-page.ts';
import { createBenchPages } from './bench-pages.ts';
import { createGuidePages } from './guide-pages.ts';
import { createMailLinkPages } from './mail-link-pages.ts';
import { createManagePages } from './manage-pages.ts';
import { createSessions } from './session.ts';
import { createSignInPages } from './sign-in-pages.ts';
import { createRankPages } from './rank-page.ts';
import { createComparePages } from './compare-pages.ts';
import { createFrontPage } from './front-page.ts';
import { createReconciliationPages } from './reconciliation-pages.ts';
import { createStatusPages, createSubmitPages } from './submit-pages.ts';
import { type PageSite, createVisit, type Visit } from './visit.ts';
import { renderEnglish, renderFacts } from './parts.ts';

export interface PagesOptions {
  readonly offer: Pick<Offer, 'baseUrl' | 'tools' | 'explainOff' | 'protocols'>;
  /** Endpoints that pages call and link to. */
  readonly endpoints: readonly Endpoint[];
  readonly models: ModelList;
  /** Secret of the installation, from which the keys of sessions are derived. */
  readonly secret: string;
  /** How authors sign in with accounts of forges; undefined if they cannot. */
  readonly signIn: SignIn | undefined;
}

export interface Pages {
  /** Pages and their files. They are for people, so no document for programs describes them. */
  readonly endpoints: readonly Endpoint[];
  /** The page at `/`, whose endpoint also answers programs. */
  readonly front: FrontPage;
  /** The page of a problem, if a person would see it. */
  readonly buildProblemPage: (problem: Problem, request: RefusedRequest) => Response | undefined;
}

/** Documents of discovery, whose endpoints are created after the pages. */
const discovered = ['/', '/openapi.json', '/llms.txt', '/agent-capabilities.json'];
const card = '/.well-known/agent-card.json';

export function startPages({ offer, endpoints, models, secret, signIn }: PagesOptions): Pages {
  const calls = new Calls(endpoints);
  const paths = new Set([...discovered, ...[...endpoints, ...offer.protocols].map(({ path }) => path)]);
  if (paths.has(a2aPath)) paths.add(card);
  const site: PageSite = { baseUrl: offer.baseUrl, isServed: (path) => paths.has(path) };
  const sessions = createSessions(secret);
  const pages = [
    ...createAppPages(site, calls),
    ...createBenchPages(site, calls),
    ...createGuidePages(site, calls),
    ...createRankPages(site, calls),
    ...createSubmitPages(site, calls),
    ...createStatusPages(site, calls, sessions),
    ...createComparePages(site, calls, models),
    ...createAuthorPages(site, calls),
    ...createMailLinkPages(site, calls),
    ...createManagePages(site, calls, sessions, signIn?.providers ?? []),
    ...(signIn === undefined ? [] : createSignInPages(site, signIn, sessions)),
    ...createReconciliationPages(site, calls),
  ];
  for (const { path } of pages) paths.add(path);
  return {
    endpoints: [assetEndpoint, ...pages],
    front: createFrontPage(site, calls, offer),
    buildProblemPage: createProblemPage(site),
  };
}

/** Paths of programs, where even a browser receives the problem itself. */
const programPaths = /^\/(?:api|t|v1|mcp|a2a|problems|assets|\.well-known)(?:\/|$)|\.(?:json|txt)$/;

export function createProblemPage(site: PageSite): (problem: Problem, request: RefusedRequest) => Response | undefined {
  return (problem, request) => {
    const accept = request.headers.get('accept') ?? '*/*';
    const [preferred] = new Negotiator({ headers: { accept } }).mediaTypes([
      problemMediaType,
      'application/json',
      htmlType,
    ]);
    if (preferred !== htmlType || programPaths.test(request.path)) return undefined;
    const visit = createVisit(site, request);
    return createPageResponse(buildProblemPage(problem, request.id, visit), visit, request.headers, problem.headers);
  };
}

/** Shows a problem in the words of the API, with a link to the front page. */
function buildProblemPage(problem: Problem, requestId: string, visit: Visit): Page {
  const { text } = visit;
  const { status, slug } = problem.type;
  const title = chooseHeadline(status, visit);
  return {
    title,
    status,
    main: html`<p class="meta"><span>${text.problem.title(String(status))}</span></p>
      <h1>${title}</h1>
      <p class="lead">${renderEnglish(problem.message, visit)}</p>
      ${problem.errors.map(({ fix }) => html`<p>${renderEnglish(fix, visit)}</p>`)}
      <p class="actions"><a class="button" href="${visit.link('/')}">${text.problem.home}</a></p>
      ${renderFacts([
        [text.status.rule, html`<a href="/problems/${slug}"><code>${slug}</code></a>`],
        [text.problem.id, html`<code>${requestId}</code>`],
      ])}`,
  };
}

function chooseHeadline(status: number, { text }: Visit): string {
  if (status === 404) return text.problem.notFound;
  if (status === 429 || status === 503) return text.problem.busy;
  return status >= 500 ? text.problem.ours : text.problem.wrong;
}
