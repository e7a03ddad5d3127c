// The page on which an author runs an app: sign-in with the author key, actions, releases, and the audit log. Each action is a
// form with the token of the session, and calls the endpoint that programs call.
import type { z } from 'zod';
import { Problem } from '../../lib/problem.ts';
import { auditView, ownAppView, stopView } from '../apps/index.ts';
import { type Endpoint, type Html, html, type RequestContext } from '../http/index.ts';
import {
  type Calls,
  createPageEndpoint,
  fillPath,
  type EndpointAction,
  type EndpointCall,
  redirectTo,
  type Page,
} from './page.ts';
import {
  renderCode,
  renderCommit,
  renderEnglish,
  renderErrorSummary,
  renderFacts,
  renderMissing,
  renderTable,
  renderTextField,
} from './parts.ts';
import type { Session, Sessions } from './session.ts';
import { readField, type PageSite, type Visit } from './visit.ts';

const path = '/apps/{slug}/manage';
const endpointPath = '/api/apps/{slug}';

type OwnApp = z.output<typeof ownAppView>;

/** An action of the page: the endpoint that it calls, and what of the form it sends. */
interface PageAction {
  readonly call: EndpointAction;
  readonly toBody?: (read: (name: string) => string) => unknown;
}

/** What this installation offers to authors. */
interface Services {
  readonly readApp: EndpointCall<OwnApp>;
  readonly readAudit: EndpointCall<z.output<typeof auditView>> | undefined;
  readonly actions: ReadonlyMap<string, PageAction>;
  readonly sessions: Sessions;
}

export function createManagePages(site: PageSite, calls: Calls, sessions: Sessions): Endpoint[] {
  const readApp = calls.find('GET', endpointPath, ownAppView);
  if (readApp === undefined) return [];
  const services: Services = {
    readApp,
    readAudit: calls.find('GET', `${endpointPath}/audit`, auditView),
    actions: findActions(calls),
    sessions,
  };
  return [
    createPageEndpoint(site, {
      path,
      operation: 'showOwnApp',
      summary: 'The page on which an author runs an app',
      async render({ params: { slug = '' } }, visit, context) {
        const session = sessions.read(context.headers);
        if (session === undefined) return buildSignInPage(slug, undefined, visit);
        try {
          return await buildManagePage(services, { slug, session }, visit, context);
        } catch (error) {
          // The key is another app's, or its line was removed.
          if (error instanceof Problem && error.type.status === 404) return buildSignInPage(slug, error, visit);
          throw error;
        }
      },
    }),
    createPageEndpoint(site, {
      method: 'POST',
      path,
      operation: 'manageApp',
      summary: 'What an author does with an app, by form',
      formLimit: 256 * 1024,
      async render({ params: { slug = '' }, form }, visit, context) {
        const read = (name: string): string => (readField(form, name) ?? '').trim();
        const action = read('action');
        const here = visit.link(toManagePath(slug));
        if (action === 'sign-in') return signIn(services, slug, read('key'), visit, context);
        if (action === 'sign-out') return redirectWithCookie(here, sessions.end());
        const session = sessions.read(context.headers);
        if (session === undefined || !sessions.isGenuine(session, readField(form, 'token')))
          return { ...buildSignInPage(slug, undefined, visit, visit.text.manage.ended), status: 403 };
        const found = services.actions.get(action);
        if (found === undefined) return redirectTo(here);
        try {
          await found.call(context, { params: { slug }, body: found.toBody?.(read), key: session.key });
        } catch (error) {
          if (!(error instanceof Problem)) throw error;
          return buildManagePage(services, { slug, session, problem: error }, visit, context);
        }
        return redirectTo(visit.link(toManagePath(slug), { done: action }));
      },
    }),
  ];
}

const stopPath = '/notifications/stop/{token}';

/**
 * The page behind the link in a mail. Opening it changes nothing, because mail scanners open links; its form stops the mails,
 * and so does the POST of a mail program (RFC 8058).
 */
export function createStopPages(site: PageSite, calls: Calls): Endpoint[] {
  const endpoint = '/api/notifications/stop/{token}';
  const read = calls.find('GET', endpoint, stopView);
  const stop = calls.find('POST', endpoint, stopView);
  if (read === undefined || stop === undefined) return [];
  const shared = { path: stopPath, summary: 'The page that stops mails about an app' };
  return [
    createPageEndpoint(site, {
      ...shared,
      operation: 'showStopPage',
      render: async ({ params }, visit, context) => buildStopPage(await read(context, { params }), params, visit),
    }),
    createPageEndpoint(site, {
      ...shared,
      method: 'POST',
      operation: 'stopByPage',
      ignoresForm: true,
      render: async ({ params }, visit, context) => buildStopPage(await stop(context, { params }), params, visit),
    }),
  ];
}

function buildStopPage(
  { slug, stopped }: z.output<typeof stopView>,
  params: Readonly<Record<string, string>>,
  visit: Visit,
): Page {
  const { text } = visit;
  const title = text.manage.stop.title(slug);
  return {
    title,
    isPrivate: true,
    main: html`<h1>${title}</h1>
      <p class="lead">${stopped ? text.manage.stop.stopped : text.manage.stop.lead}</p>
      ${
        stopped
          ? ''
          : html`<form method="post" action="${visit.link(fillPath(stopPath, params))}">
              <button type="submit">${text.manage.stop.submit}</button>
            </form>`
      }`,
  };
}

function toManagePath(slug: string): string {
  return `/apps/${encodeURIComponent(slug)}/manage`;
}

/** The actions whose endpoints exist here. */
function findActions(calls: Calls): ReadonlyMap<string, PageAction> {
  const known: readonly (readonly [name: string, toBody?: PageAction['toBody']])[] = [
    ['restart'],
    ['suspend'],
    ['resume'],
  ];
  return new Map(
    known.flatMap(([name, toBody]) => {
      const call = calls.findAction('POST', `${endpointPath}/${name}`);
      return call === undefined ? [] : [[name, { call, ...(toBody === undefined ? {} : { toBody }) }] as const];
    }),
  );
}

async function signIn(
  { readApp, sessions }: Services,
  slug: string,
  key: string,
  visit: Visit,
  context: RequestContext,
): Promise<Page | Response> {
  try {
    await readApp(context, { params: { slug }, key });
  } catch (error) {
    if (!(error instanceof Problem)) throw error;
    return buildSignInPage(slug, error, visit);
  }
  return redirectWithCookie(visit.link(toManagePath(slug)), sessions.begin(key));
}

function redirectWithCookie(location: string, cookie: string): Response {
  const response = redirectTo(location);
  response.headers.append('set-cookie', cookie);
  return response;
}

function buildSignInPage(slug: string, problem: Problem | undefined, visit: Visit, notice?: string): Page {
  const { text, site } = visit;
  const lines = [
    `curl -X POST ${site.baseUrl}/api/apps/${encodeURIComponent(slug)}/keys`,
    `echo 'moorage-author-sha256-…' >> .moorage-owner`,
    `git add .moorage-owner && git commit -m 'Add my author key' && git push`,
  ];
  const key = { name: 'key', label: text.author.key, help: text.manage.keyHelp, value: '', maxLength: 100 };
  return {
    title: text.manage.signIn(slug),
    isPrivate: true,
    ...(problem === undefined ? {} : { status: problem.type.status }),
    main: html`<h1>${text.manage.signIn(slug)}</h1>
      <p class="lead">${text.manage.lead}</p>
      ${notice === undefined ? '' : html`<p class="notice rejected" role="alert">${notice}</p>`}
      ${problem === undefined ? '' : renderErrorSummary(text.manage.refused, problem, ['key'], visit)}
      <form class="panel" method="post" action="${visit.link(toManagePath(slug))}">
        ${renderTextField({ ...key, type: 'password', isRequired: true }, problem?.errors ?? [], visit)}
        <button type="submit" name="action" value="sign-in">${text.manage.submitSignIn}</button>
      </form>
      <section>
        <h2>${text.manage.getKey}</h2>
        <p>${text.manage.getKeyLead}</p>
        ${renderCode(lines.join('\n'), text.manage.getKey)}
      </section>`,
  };
}

interface ManageContent {
  readonly slug: string;
  readonly session: Session;
  readonly problem?: Problem;
}

/** @throws Problem (app-private) if the key of the session does not open this app */
async function buildManagePage(
  { readApp, readAudit, actions }: Services,
  { slug, session, problem }: ManageContent,
  visit: Visit,
  context: RequestContext,
): Promise<Page> {
  const { text } = visit;
  const input = { params: { slug }, key: session.key };
  const app = await readApp(context, input);
  const audit = await readAudit?.(context, { ...input, query: { limit: '20' } });
  const done = readField(visit.query, 'done');
  const render: ActionRenderer = (name, content = html``, label) =>
    actions.has(name)
      ? html`<form method="post" action="${visit.link(toManagePath(slug))}">
          <input type="hidden" name="token" value="${session.csrf}" />${content}
          <button type="submit" class="quiet" name="action" value="${name}">
            ${label ?? text.manage.actions[name as keyof typeof text.manage.actions]}
          </button>
        </form>`
      : html``;
  return {
    title: text.manage.title(slug),
    isPrivate: true,
    json: `/api/apps/${encodeURIComponent(slug)}`,
    ...(problem === undefined ? {} : { status: problem.type.status }),
    main: html`<h1>${text.manage.title(slug)}</h1>
      ${problem === undefined ? '' : renderErrorSummary(text.manage.refused, problem, [], visit)}
      ${problem === undefined && done !== undefined && actions.has(done) ? html`<p class="notice live" role="status">${text.manage.done}</p>` : ''}
      ${renderFacts([
        [text.app.source, app.repository],
        [text.manage.state, app.suspended ? text.manage.suspended : text.manage.running],
      ])}
      <p class="actions">
        <a class="button quiet" href="${visit.link(`/apps/${encodeURIComponent(slug)}`)}">${text.manage.publicPage}</a>
      </p>
      <section aria-labelledby="control">
        <h2 id="control">${text.manage.control}</h2>
        <div class="actions">${app.suspended ? render('resume') : html`${render('restart')} ${render('suspend')}`}</div>
      </section>
      ${renderReleases(app, visit)} ${audit === undefined ? '' : renderAudit(audit.entries, visit)}
      <form method="post" action="${visit.link(toManagePath(slug))}">
        <button type="submit" class="quiet" name="action" value="sign-out">${text.manage.signOut}</button>
      </form>`,
  };
}

/** Renders the button of an action, with the fields that its form has; nothing if this installation does not offer it. */
type ActionRenderer = (name: string, content?: Html, label?: string) => Html;

function renderReleases({ releases }: OwnApp, visit: Visit): Html {
  const { text, format } = visit;
  return html`<section aria-labelledby="releases">
    <h2 id="releases">${text.manage.releases}</h2>
    ${
      releases.length === 0
        ? html`<p class="empty">${text.manage.noReleases}</p>`
        : renderTable(
            text.manage.releases,
            [
              { title: text.app.commit },
              { title: text.manage.readyAt },
              { title: text.manage.crashedAt },
              { title: text.manage.state },
            ],
            releases.map(({ commit, ready_at: readyAt, crashed_at: crashedAt, serving, good }) => [
              renderCommit(commit),
              format.dateTime(readyAt),
              crashedAt === undefined ? renderMissing(visit) : format.dateTime(crashedAt),
              serving ? text.manage.serving : good ? text.manage.good : text.manage.unproven,
            ]),
          )
    }
  </section>`;
}

function renderAudit(entries: z.output<typeof auditView>['entries'], visit: Visit): Html {
  const { text, format } = visit;
  return html`<section aria-labelledby="audit">
    <h2 id="audit">${text.manage.audit}</h2>
    <p>${text.manage.auditLead}</p>
    ${
      entries.length === 0
        ? html`<p class="empty">${text.manage.noAudit}</p>`
        : renderTable(
            text.manage.audit,
            [
              { title: text.manage.at },
              { title: text.manage.action },
              { title: text.manage.detail },
              { title: text.manage.actor },
              { title: text.manage.outcome },
            ],
            entries.map(({ at, action, detail, actor, outcome }) => [
              format.dateTime(at),
              html`<code>${action}</code>`,
              Object.keys(detail).length === 0 ? renderMissing(visit) : html`<code>${JSON.stringify(detail)}</code>`,
              html`<code>${actor}</code>`,
              renderEnglish(outcome, visit),
            ]),
          )
    }
  </section>`;
}
