// The page on which an author runs an app: sign-in with the author key, and what each of its forms does. A form carries the
// token of the session, and calls the endpoint that programs call.
import type { z } from 'zod';
import { Problem } from '../../lib/problem.ts';
import {
  appCrashesView,
  appLogView,
  auditView,
  ownAppView,
  runsView,
  secretsView,
  settingsView,
  stopView,
  tasksView,
} from '../apps/index.ts';
import { createValidationProblem, type Endpoint, html, type RequestContext } from '../http/index.ts';
import { type ManageContent, type OwnApp, renderManagePage } from './manage-sections.ts';
import {
  type Calls,
  createPageEndpoint,
  fillPath,
  type EndpointAction,
  type EndpointCall,
  redirectTo,
  type Page,
} from './page.ts';
import { renderCode, renderErrorSummary, renderTextField } from './parts.ts';
import type { Session, Sessions } from './session.ts';
import { readField, type PageSite, type Visit } from './visit.ts';

const path = '/apps/{slug}/manage';
const endpointPath = '/api/apps/{slug}';

type FormReader = (name: string) => string;

/** An action of the page: the endpoint that it calls, and what of the form it sends. */
interface PageAction {
  readonly call: EndpointAction;
  readonly toBody?: ((read: FormReader) => unknown) | undefined;
  /** Parameters of its path, besides the slug. */
  readonly toParams?: ((read: FormReader) => Readonly<Record<string, string>>) | undefined;
}

/** What this installation offers to authors. */
interface Services {
  readonly readApp: EndpointCall<OwnApp>;
  readonly readAudit: EndpointCall<z.output<typeof auditView>> | undefined;
  readonly readSecrets: EndpointCall<z.output<typeof secretsView>> | undefined;
  readonly readSettings: EndpointCall<z.output<typeof settingsView>> | undefined;
  readonly readLog: EndpointCall<z.output<typeof appLogView>> | undefined;
  readonly readCrashes: EndpointCall<z.output<typeof appCrashesView>> | undefined;
  readonly readTasks: EndpointCall<z.output<typeof tasksView>> | undefined;
  readonly readRuns: EndpointCall<z.output<typeof runsView>> | undefined;
  readonly actions: ReadonlyMap<string, PageAction>;
  readonly sessions: Sessions;
}

export function createManagePages(site: PageSite, calls: Calls, sessions: Sessions): Endpoint[] {
  const readApp = calls.find('GET', endpointPath, ownAppView);
  if (readApp === undefined) return [];
  const services: Services = {
    readApp,
    readAudit: calls.find('GET', `${endpointPath}/audit`, auditView),
    readSecrets: calls.find('GET', `${endpointPath}/secrets`, secretsView),
    readSettings: calls.find('GET', `${endpointPath}/settings`, settingsView),
    readLog: calls.find('GET', `${endpointPath}/logs`, appLogView),
    readCrashes: calls.find('GET', `${endpointPath}/crashes`, appCrashesView),
    readTasks: calls.find('GET', `${endpointPath}/tasks`, tasksView),
    readRuns: calls.find('GET', `${endpointPath}/runs`, runsView),
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
        const read = (name: string): string => {
          const text = (readField(form, name) ?? '').replaceAll('\r\n', '\n');
          // The spaces of a secret may matter.
          return name === 'value' ? text : text.trim();
        };
        const action = read('action');
        const here = visit.link(toManagePath(slug));
        if (action === 'sign-in') return signIn(services, slug, read('key'), visit, context);
        if (action === 'sign-out') return redirectWithCookie(here, sessions.end());
        const session = sessions.read(context.headers);
        if (session === undefined || !sessions.isGenuine(session, readField(form, 'token')))
          return { ...buildSignInPage(slug, undefined, visit, visit.text.manage.ended), status: 403 };
        const problem = await performAction(services.actions.get(action), { slug, session, read, action }, context);
        return problem === undefined
          ? redirectTo(visit.link(toManagePath(slug), { done: action }))
          : buildManagePage(services, { slug, session, problem }, visit, context);
      },
    }),
  ];
}

/** Carries out an action of a form. Returns why it was refused; undefined if it was done, or if there is no such action. */
async function performAction(
  found: PageAction | undefined,
  { slug, session, read, action }: { slug: string; session: Session; read: FormReader; action: string },
  context: RequestContext,
): Promise<Problem | undefined> {
  try {
    if (action === 'delete' && read('slug') !== slug) throw createConfirmationProblem(slug);
    const params = { slug, ...found?.toParams?.(read) };
    await found?.call(context, { params, body: found.toBody?.(read), key: session.key });
    return undefined;
  } catch (error) {
    if (error instanceof Problem) return error;
    throw error;
  }
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
  return new Map(
    actions.flatMap(([name, method, subpath, sent = {}]) => {
      const call = calls.findAction(method, `${endpointPath}${subpath}`);
      return call === undefined ? [] : [[name, { call, ...sent }] as const];
    }),
  );
}

const toNameParameter = (read: FormReader): Readonly<Record<string, string>> => ({ name: read('name') });

/** Each action by the name that its button sends. */
const actions: readonly (readonly [
  name: string,
  method: 'POST' | 'PUT' | 'DELETE',
  subpath: string,
  sent?: Omit<PageAction, 'call'>,
])[] = [
  ['restart', 'POST', '/restart'],
  ['suspend', 'POST', '/suspend'],
  ['resume', 'POST', '/resume'],
  ['deploy', 'POST', '/deploy'],
  ['rebuild', 'POST', '/rebuild', { toBody: () => ({ cache: true }) }],
  ['rebuild-without-cache', 'POST', '/rebuild', { toBody: () => ({ cache: false }) }],
  ['rollback', 'POST', '/rollback', { toBody: (read) => ({ commit: read('commit') }) }],
  ['run-task', 'POST', '/tasks/{name}/runs', { toParams: toNameParameter }],
  ['restore', 'POST', '/restore'],
  ['set-secret', 'PUT', '/secrets/{name}', { toParams: toNameParameter, toBody: (read) => ({ value: read('value') }) }],
  ['delete-secret', 'DELETE', '/secrets/{name}', { toParams: toNameParameter }],
  ['change-settings', 'PUT', '/settings', { toBody: readSettingsForm }],
  ['delete', 'DELETE', ''],
];

/** The settings in a form; an empty field removes one. */
function readSettingsForm(read: FormReader): unknown {
  const toText = (name: string): string | null => (read(name) === '' ? null : read(name));
  const replicas = read('replicas');
  const env = read('env')
    .split(/\r?\n/)
    .filter((line) => line.trim() !== '')
    .map((line) => {
      const [name = '', ...value] = line.split('=');
      return { name: name.trim(), value: value.join('=') };
    });
  return {
    replicas: replicas === '' ? null : Number(replicas),
    idleAfter: toText('idleAfter'),
    healthPath: toText('healthPath'),
    env: env.length === 0 ? null : env,
  };
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

/** Deletion is confirmed by typing the app's name. */
function createConfirmationProblem(slug: string): Problem {
  const message = 'is not the name of the app';
  return createValidationProblem([{ in: 'body', field: 'slug', message, fix: `Enter ${slug}.` }]);
}

/** @throws Problem (app-private) if the key of the session does not open this app */
async function buildManagePage(
  services: Services,
  { slug, session, problem }: { readonly slug: string; readonly session: Session; readonly problem?: Problem },
  visit: Visit,
  context: RequestContext,
): Promise<Page> {
  const input = { params: { slug }, key: session.key };
  const app: OwnApp = await services.readApp(context, input);
  const search = readField(visit.query, 'search') ?? '';
  const run = readField(visit.query, 'run') ?? '';
  const [audit, secrets, settings, log, crashes, tasks, runs] = await Promise.all([
    services.readAudit?.(context, { ...input, query: { limit: '20' } }),
    services.readSecrets?.(context, input),
    services.readSettings?.(context, input),
    services.readLog?.(context, {
      ...input,
      query: { tail: '200', ...(search === '' ? {} : { search }), ...(run === '' ? {} : { run }) },
    }),
    services.readCrashes?.(context, input),
    services.readTasks?.(context, input),
    services.readRuns?.(context, input),
  ]);
  const content: ManageContent = {
    ...{ slug, app, audit, secrets, settings, log, crashes, tasks, runs, search, run, problem },
    path: visit.link(toManagePath(slug)),
    token: session.csrf,
    actions: new Set(services.actions.keys()),
    done: readField(visit.query, 'done'),
  };
  return renderManagePage(content, visit);
}
