// The pages of signing in with an account of a forge: the way there, and the way back. They exist only where providers are
// configured.
import type { SignIn } from '../apps/index.ts';
import { createValidationProblem, type Endpoint, html, type RequestFields } from '../http/index.ts';
import { createPageEndpoint, createPageResponse, type Page, redirectTo } from './page.ts';
import type { Sessions } from './session.ts';
import { createVisit, type PageSite, readField, type Visit } from './visit.ts';

const path = '/sign-in/{provider}';

export function createSignInPages(site: PageSite, signIn: SignIn, sessions: Sessions): Endpoint[] {
  return [
    createPageEndpoint(site, {
      path,
      operation: 'beginSignIn',
      summary: 'The way to a forge, to sign in with an account there',
      async render({ params: { provider = '' }, query }, visit) {
        const { url, attempt } = await signIn.begin(provider, readSlug(query));
        const language = visit.isNamed ? visit.language : undefined;
        const response = redirectTo(url);
        response.headers.append('set-cookie', sessions.beginAttempt(attempt, language));
        return response;
      },
    }),
    createPageEndpoint(site, {
      path: `${path}/callback`,
      operation: 'completeSignIn',
      summary: 'The way back from a forge, which begins a session',
      async render({ params: { provider = '' }, query }, visit, { headers }) {
        const attempt = sessions.readAttempt(headers);
        const account = await signIn.complete(provider, toParameters(query), attempt?.attempt);
        const back =
          attempt?.language === undefined
            ? visit
            : createVisit(site, { ...visit, query: { lang: attempt.language }, headers });
        const response = createPageResponse(buildSignedInPage(attempt?.attempt.slug ?? '', back), back, headers);
        // A new value each time, so that no value from before the sign-in is a session after it.
        response.headers.append('set-cookie', sessions.begin(account));
        response.headers.append('set-cookie', sessions.endAttempt());
        return response;
      },
    }),
  ];
}

/** The app is all that a link may choose, so that a sign-in never ends at another site. */
function readSlug(query: RequestFields): string {
  const slug = readField(query, 'app') ?? '';
  if (/^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/.test(slug)) return slug;
  throw createValidationProblem([
    {
      in: 'query',
      field: 'app',
      message: 'is not the name of an app',
      fix: 'Open /apps/<name>/manage, and sign in there.',
    },
  ]);
}

/** With repeated fields, which are refused later. */
function toParameters(query: RequestFields): URLSearchParams {
  return new URLSearchParams(
    Object.entries(query).flatMap(([name, value]) => [value].flat().map((each): [string, string] => [name, each])),
  );
}

/**
 * A page, not a redirect: browsers send the cookie of the session only to a page that one of this site leads to, and the way
 * here began at the forge.
 */
function buildSignedInPage(slug: string, visit: Visit): Page {
  const { text } = visit;
  const to = visit.link(`/apps/${encodeURIComponent(slug)}/manage`);
  return {
    title: text.manage.signedIn,
    isPrivate: true,
    head: html`<meta http-equiv="refresh" content="0; url=${to}" />`,
    main: html`<h1>${text.manage.signedIn}</h1>
      <p class="actions"><a class="button" href="${to}">${text.manage.title(slug)}</a></p>`,
  };
}
