// The page on which an author runs an app: sign-in with the author key, and what each of its forms does. A form carries the
// token of the session, and calls the endpoint that programs call.
import type { z } from 'zod';
import { Problem } from '../../lib/problem.ts';
import {
  appCrashesView,
  appLogView,
  auditView,
  confirmView,
  hookSecretView,
  notificationsView,
  ownAppView,
  secretsView,
  settingsView,
  stopView,
  webhookView,
} from '../apps/index.ts';
import {
  createValidationProblem,
  type Endpoint,
  html,
  type RequestContext,
  type RequestFields,
} from '../http/index.ts';
import type { ManageContent, OwnApp, ShownSecret } from './manage-content.ts';
import { renderManagePage } from './manage-sections.ts';
import {
  type Calls,
  createPageEndpoint,
  fillPath,
  type EndpointAction,
  type EndpointCall,
  redirectTo,
  type Page,
  type PageInput,
} from './page.ts';
import { renderCode, renderErrorSummary, renderTextField } from './parts.ts';
import type { Session, Sessions } from './session.ts';
import { type PageSite, readField, readList, type Visit } from './visit.ts';

const path = '/apps/{slug}/manage';
const endpointPath = '/api/apps/{slug}';

type FormReader = (name: string) => string;

/** An action of the page: the endpoint that it calls, and what of the form it sends. */
interface PageAction {
  /** Returns a secret that is shown once, if the endpoint makes one. */
  readonly call: (...input: Parameters<EndpointAction>) => Promise<ShownSecret | undefined>;
  readonly toBody?: ((read: FormReader, form: RequestFields) => unknown) | undefined;
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
  readonly readNotifications: EndpointCall<z.output<typeof notificationsView>> | undefined;
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
    readNotifications: calls.find('GET', `${endpointPath}/notifications`, notificationsView),
    actions: new Map([...findActions(calls), ...findSecretActions(calls)]),
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
        const sent = { slug, session, read, form, action };
        const { problem, shown } = await performAction(services.actions.get(action), sent, context);
        return problem === undefined && shown === undefined
          ? redirectTo(visit.link(toManagePath(slug), { done: action }))
          : buildManagePage(services, { slug, session, problem, shown }, visit, context);
      },
    }),
  ];
}

interface SentAction {
  readonly slug: string;
  readonly session: Session;
  readonly read: FormReader;
  readonly form: RequestFields;
  readonly action: string;
}

/** What became of an action: why it was refused, or what is shown once. Neither if it was done, or if there is none. */
interface ActionResult {
  readonly problem?: Problem | undefined;
  readonly shown?: ShownSecret | undefined;
}

async function performAction(
  found: PageAction | undefined,
  { slug, session, read, form, action }: SentAction,
  context: RequestContext,
): Promise<ActionResult> {
  try {
    if (action === 'delete' && read('slug') !== slug) throw createConfirmationProblem(slug);
    const params = { slug, ...found?.toParams?.(read) };
    return { shown: await found?.call(context, { params, body: found.toBody?.(read, form), key: session.key }) };
  } catch (error) {
    if (error instanceof Problem) return { problem: error };
    throw error;
  }
}

/** What a page behind a link in a mail shows, and whether its form was sent. */
interface LinkState {
  readonly slug: string;
  readonly isDone: boolean;
}

interface LinkPage {
  /** Last folder of its path, and the name of its words. */
  readonly name: 'stop' | 'confirm';
  readonly operations: readonly [show: string, submit: string];
  readonly summary: string;
  readonly find: (method: 'GET' | 'POST', path: string) => EndpointCall<LinkState> | undefined;
}

/**
 * The pages behind the links in mails. Opening one changes nothing, because mail scanners open links; its form does, and so
 * does the POST of a mail program (RFC 8058).
 */
export function createMailLinkPages(site: PageSite, calls: Calls): Endpoint[] {
  const pages: readonly LinkPage[] = [
    {
      ...{ name: 'stop', operations: ['showStopPage', 'stopByPage'] },
      summary: 'The page that stops mails about an app',
      find: (method, path) => {
        const call = calls.find(method, path, stopView);
        return call && (async (...input) => call(...input).then(({ slug, stopped }) => ({ slug, isDone: stopped })));
      },
    },
    {
      ...{ name: 'confirm', operations: ['showConfirmPage', 'confirmByPage'] },
      summary: 'The page that confirms an address for mails about an app',
      find: (method, path) => {
        const call = calls.find(method, path, confirmView);
        return (
          call && (async (...input) => call(...input).then(({ slug, confirmed }) => ({ slug, isDone: confirmed })))
        );
      },
    },
  ];
  return pages.flatMap((page) => createMailLinkPage(site, page));
}

function createMailLinkPage(site: PageSite, { name, operations, summary, find }: LinkPage): Endpoint[] {
  const path = `/notifications/${name}/{token}`;
  const [read, submit] = [find('GET', `/api${path}`), find('POST', `/api${path}`)];
  if (read === undefined || submit === undefined) return [];
  const render =
    (call: EndpointCall<LinkState>) =>
    async ({ params }: PageInput, visit: Visit, context: RequestContext): Promise<Page> => {
      const { slug, isDone } = await call(context, { params });
      const text = visit.text.manage.links[name];
      const title = text.title(slug);
      const form = html`<form method="post" action="${visit.link(fillPath(path, params))}">
        <button type="submit">${text.submit}</button>
      </form>`;
      const main = html`<h1>${title}</h1>
        <p class="lead">${isDone ? text.done : text.lead}</p>
        ${isDone ? '' : form}`;
      return { title, isPrivate: true, main };
    };
  const shared = { path, summary };
  return [
    createPageEndpoint(site, { ...shared, operation: operations[0], render: render(read) }),
    createPageEndpoint(site, {
      ...{ ...shared, method: 'POST', operation: operations[1], ignoresForm: true },
      render: render(submit),
    }),
  ];
}

function toManagePath(slug: string): string {
  return `/apps/${encodeURIComponent(slug)}/manage`;
}

/** The actions whose endpoints exist here. */
function findActions(calls: Calls): ReadonlyMap<string, PageAction> {
  return new Map(
    actions.flatMap(([name, method, subpath, sent = {}]) => {
      const call = calls.findAction(method, `${endpointPath}${subpath}`);
      if (call === undefined) return [];
      const forget = async (...input: Parameters<EndpointAction>): Promise<undefined> => {
        await call(...input);
        return undefined;
      };
      return [[name, { call: forget, ...sent }] as const];
    }),
  );
}

/** The actions whose answers have a secret. */
function findSecretActions(calls: Calls): ReadonlyMap<string, PageAction> {
  const setWebhook = calls.find('PUT', `${endpointPath}/notifications/webhook`, webhookView);
  const showHook = calls.find('POST', `${endpointPath}/push-hook-secret`, hookSecretView);
  const replaceHook = calls.find('POST', `${endpointPath}/push-hook-secret/replace`, hookSecretView);
  const found: readonly (readonly [name: string, action: PageAction | undefined])[] = [
    [
      'set-webhook',
      setWebhook && {
        call: setWebhook,
        toBody: (read, form) => ({ url: read('url'), events: readList(form, 'events') }),
      },
    ],
    ['show-hook', showHook && { call: showHook }],
    ['replace-hook', replaceHook && { call: replaceHook, toBody: () => ({ end_previous: false }) }],
    ['replace-hook-now', replaceHook && { call: replaceHook, toBody: () => ({ end_previous: true }) }],
  ];
  return new Map(found.flatMap(([name, action]) => (action === undefined ? [] : [[name, action] as const])));
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
  ['restore', 'POST', '/restore'],
  ['set-secret', 'PUT', '/secrets/{name}', { toParams: toNameParameter, toBody: (read) => ({ value: read('value') }) }],
  ['delete-secret', 'DELETE', '/secrets/{name}', { toParams: toNameParameter }],
  ['change-settings', 'PUT', '/settings', { toBody: readSettingsForm }],
  ['delete', 'DELETE', ''],
  ['add-contact', 'POST', '/notifications/contacts', { toBody: (read) => ({ address: read('address') }) }],
  ['remove-contact', 'DELETE', '/notifications/contacts/{id}', { toParams: (read) => ({ id: read('id') }) }],
  ['start-mail', 'PUT', '/notifications/mail'],
  [
    ...(['choose-mail-events', 'PUT', '/notifications/{channel}/events'] as const),
    { toParams: () => ({ channel: 'mail' }), toBody: (_read, form) => ({ events: readList(form, 'events') }) },
  ],
  ['remove-webhook', 'DELETE', '/notifications/webhook'],
  ['test-notifications', 'POST', '/notifications/test'],
  ['end-previous-hook', 'DELETE', '/push-hook-secret/previous'],
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
  { slug, session, problem, shown }: ActionResult & { readonly slug: string; readonly session: Session },
  visit: Visit,
  context: RequestContext,
): Promise<Page> {
  const input = { params: { slug }, key: session.key };
  const app: OwnApp = await services.readApp(context, input);
  const search = readField(visit.query, 'search') ?? '';
  const [audit, secrets, settings, log, crashes, notifications] = await Promise.all([
    services.readAudit?.(context, { ...input, query: { limit: '20' } }),
    services.readSecrets?.(context, input),
    services.readSettings?.(context, input),
    services.readLog?.(context, { ...input, query: { tail: '200', ...(search === '' ? {} : { search }) } }),
    services.readCrashes?.(context, input),
    services.readNotifications?.(context, input),
  ]);
  const content: ManageContent = {
    ...{ slug, app, audit, secrets, settings, log, crashes, notifications, search, problem, shown },
    path: visit.link(toManagePath(slug)),
    token: session.csrf,
    actions: new Set(services.actions.keys()),
    done: readField(visit.query, 'done'),
  };
  return renderManagePage(content, visit);
}
