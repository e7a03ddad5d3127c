// The page on which an author runs an app: sign-in with the author key or a token, and what each of its forms does. A form carries the
// token of the session, and calls the endpoint that programs call.
import type { z } from 'zod';
import { Problem } from '../../lib/problem.ts';
import { parseAcceptedRepository } from '../../lib/repository.ts';
import {
  accessView,
  appCrashesView,
  appLogView,
  auditView,
  deployKeyView,
  domainsView,
  figuresView,
  forgeTokenView,
  hookSecretView,
  notificationsView,
  createdTokenView,
  createdKeyView,
  ownAppView,
  previewsView,
  runsView,
  secretsView,
  settingsView,
  type SignInProvider,
  tasksView,
  tokensView,
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
import { readFigureRange } from './manage-figures.ts';
import { renderManagePage } from './manage-sections.ts';
import {
  type Calls,
  createPageEndpoint,
  type EndpointAction,
  type EndpointCall,
  redirectTo,
  type Page,
} from './page.ts';
import { renderCode, renderErrorSummary, renderTextField } from './parts.ts';
import type { Session, Sessions } from './session.ts';
import { type PageSite, readField, readList, type Visit } from './visit.ts';

const path = '/apps/{slug}/manage';
const endpointPath = '/api/apps/{slug}';

type FormReader = ((name: string) => string) & { readonly list: (name: string) => string[] };

/** An action of the page: the endpoint that it calls, and what of the form it sends. */
interface PageAction {
  /** Returns a secret that is shown once, if the endpoint makes one. */
  readonly call: (...input: Parameters<EndpointAction>) => Promise<ShownSecret | undefined>;
  /** What a token needs for it. */
  readonly scope: string | undefined;
  readonly toBody?: ((read: FormReader) => unknown) | undefined;
  /** Fields of the form that have other names than those of the body, by these. */
  readonly formFields?: Readonly<Record<string, string>> | undefined;
  /** Parameters of its path, besides the slug. */
  readonly toParams?: ((read: FormReader) => Readonly<Record<string, string>>) | undefined;
}

/** A forge with whose accounts authors sign in. */
type Provider = Pick<SignInProvider, 'id' | 'label'>;

/** What this installation offers to authors. */
interface Services {
  readonly readApp: EndpointCall<OwnApp>;
  readonly readAudit: EndpointCall<z.output<typeof auditView>> | undefined;
  readonly readFigures: EndpointCall<z.output<typeof figuresView>> | undefined;
  readonly readSecrets: EndpointCall<z.output<typeof secretsView>> | undefined;
  readonly readSettings: EndpointCall<z.output<typeof settingsView>> | undefined;
  readonly readAccess: EndpointCall<z.output<typeof accessView>> | undefined;
  readonly readDomains: EndpointCall<z.output<typeof domainsView>> | undefined;
  readonly readLog: EndpointCall<z.output<typeof appLogView>> | undefined;
  readonly readCrashes: EndpointCall<z.output<typeof appCrashesView>> | undefined;
  readonly readPreviews: EndpointCall<z.output<typeof previewsView>> | undefined;
  readonly readNotifications: EndpointCall<z.output<typeof notificationsView>> | undefined;
  readonly readTokens: EndpointCall<z.output<typeof tokensView>> | undefined;
  readonly readDeployKey: EndpointCall<z.output<typeof deployKeyView>> | undefined;
  readonly readForgeToken: EndpointCall<z.output<typeof forgeTokenView>> | undefined;
  readonly readTasks: EndpointCall<z.output<typeof tasksView>> | undefined;
  readonly readRuns: EndpointCall<z.output<typeof runsView>> | undefined;
  readonly actions: ReadonlyMap<string, PageAction>;
  readonly sessions: Sessions;
  readonly providers: readonly Provider[];
}

export function createManagePages(
  site: PageSite,
  calls: Calls,
  sessions: Sessions,
  providers: readonly Provider[] = [],
): Endpoint[] {
  const readApp = calls.find('GET', endpointPath, ownAppView);
  if (readApp === undefined) return [];
  const services: Services = {
    readApp,
    readAudit: calls.find('GET', `${endpointPath}/audit`, auditView),
    readFigures: calls.find('GET', `${endpointPath}/figures`, figuresView),
    readSecrets: calls.find('GET', `${endpointPath}/secrets`, secretsView),
    readSettings: calls.find('GET', `${endpointPath}/settings`, settingsView),
    readAccess: calls.find('GET', `${endpointPath}/access`, accessView),
    readDomains: calls.find('GET', `${endpointPath}/domains`, domainsView),
    readLog: calls.find('GET', `${endpointPath}/logs`, appLogView),
    readCrashes: calls.find('GET', `${endpointPath}/crashes`, appCrashesView),
    readPreviews: calls.find('GET', `${endpointPath}/previews`, previewsView),
    readDeployKey: calls.find('GET', '/api/deploy-keys/{owner}/{name}', deployKeyView),
    readForgeToken: calls.find('GET', `${endpointPath}/forge-token`, forgeTokenView),
    readTasks: calls.find('GET', `${endpointPath}/tasks`, tasksView),
    readRuns: calls.find('GET', `${endpointPath}/runs`, runsView),
    readNotifications: calls.find('GET', `${endpointPath}/notifications`, notificationsView),
    readTokens: calls.find('GET', `${endpointPath}/tokens`, tokensView),
    actions: new Map([...findActions(calls), ...findSecretActions(calls)]),
    ...{ sessions, providers },
  };
  return [
    createPageEndpoint(site, {
      path,
      operation: 'showOwnApp',
      summary: 'The page on which an author runs an app',
      async render({ params: { slug = '' } }, visit, context) {
        const session = sessions.read(context.headers);
        if (session === undefined) return buildSignInPage(services, { slug }, visit);
        try {
          return await buildManagePage(services, { slug, session }, visit, context);
        } catch (error) {
          // The key is another app's, its line was removed, or it is a token that may not read.
          if (error instanceof Problem && [403, 404].includes(error.type.status))
            return buildSignInPage(services, { slug, problem: error }, visit);
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
        const read = createFormReader(form);
        const action = read('action');
        const here = visit.link(toManagePath(slug));
        if (action === 'sign-in') return signIn(services, slug, read('key'), visit, context);
        if (action === 'sign-out') return redirectWithCookie(here, sessions.end());
        const session = sessions.read(context.headers);
        if (session === undefined || !sessions.isGenuine(session, readField(form, 'token'))) {
          const page = buildSignInPage(services, { slug, notice: visit.text.manage.ended }, visit);
          return { ...page, status: 403 };
        }
        const sent = { slug, session, read, action };
        const { problem, shown } = await performAction(services.actions.get(action), sent, context);
        if (problem !== undefined) return buildRefusalPage(services, { slug, session, problem }, visit, context);
        return shown === undefined
          ? redirectTo(visit.link(toManagePath(slug), { done: action }))
          : buildManagePage(services, { slug, session, shown }, visit, context);
      },
    }),
  ];
}

function createFormReader(form: RequestFields): FormReader {
  const read = (name: string): string => {
    const text = (readField(form, name) ?? '').replaceAll('\r\n', '\n');
    // The spaces of a secret or password may matter.
    return name === 'value' || name === 'password' ? text : text.trim();
  };
  return Object.assign(read, { list: (name: string) => readList(form, name) });
}

/** The page with why an action was refused; the sign-in page if the session does not even open the app any more. */
async function buildRefusalPage(
  services: Services,
  state: ManageState & { readonly problem: Problem },
  visit: Visit,
  context: RequestContext,
): Promise<Page | Response> {
  try {
    return await buildManagePage(services, state, visit, context);
  } catch (error) {
    if (!(error instanceof Problem)) throw error;
    return buildSignInPage(services, { slug: state.slug, problem: state.problem }, visit);
  }
}

/** Names the fields of a problem as the form does. */
function renameFields(problem: Problem, formFields: Readonly<Record<string, string>> = {}): Problem {
  if (!problem.errors.some(({ field }) => Object.hasOwn(formFields, field))) return problem;
  return createValidationProblem(
    problem.errors.map((error) => ({ ...error, field: formFields[error.field] ?? error.field })),
  );
}

interface SentAction {
  readonly slug: string;
  readonly session: Session;
  readonly read: FormReader;
  readonly action: string;
}

/** What became of an action: why it was refused, or what is shown once. Neither if it was done, or if there is none. */
interface ActionResult {
  readonly problem?: Problem | undefined;
  readonly shown?: ShownSecret | undefined;
}

async function performAction(
  found: PageAction | undefined,
  { slug, session, read, action }: SentAction,
  context: RequestContext,
): Promise<ActionResult> {
  try {
    if (action === 'delete' && read('slug') !== slug) throw createConfirmationProblem(slug);
    const params = { slug, ...found?.toParams?.(read) };
    return { shown: await found?.call(context, { params, body: found.toBody?.(read), key: session.key }) };
  } catch (error) {
    if (error instanceof Problem) return { problem: renameFields(error, found?.formFields) };
    throw error;
  }
}

function toManagePath(slug: string): string {
  return `/apps/${encodeURIComponent(slug)}/manage`;
}

/** The actions whose endpoints exist here. */
function findActions(calls: Calls): ReadonlyMap<string, PageAction> {
  return new Map(
    actions.flatMap(([name, method, subpath, sent = {}]) => {
      const endpoint = `${endpointPath}${subpath}`;
      const call = calls.findAction(method, endpoint);
      if (call === undefined) return [];
      const forget = async (...input: Parameters<EndpointAction>): Promise<undefined> => {
        await call(...input);
        return undefined;
      };
      return [[name, { call: forget, scope: calls.findScope(method, endpoint), ...sent }] as const];
    }),
  );
}

/** The actions whose answers have a secret. */
function findSecretActions(calls: Calls): ReadonlyMap<string, PageAction> {
  const define = <View extends z.ZodType>(
    ...[name, method, subpath, view, show, sent = {}]: readonly [
      name: string,
      method: 'POST' | 'PUT',
      subpath: string,
      view: View,
      show: (answer: z.output<View>) => ShownSecret,
      sent?: Omit<PageAction, 'call' | 'scope'>,
    ]
  ): (readonly [string, PageAction])[] => {
    const endpoint = `${endpointPath}${subpath}`;
    const call = calls.find(method, endpoint, view);
    if (call === undefined) return [];
    const callAndShow: PageAction['call'] = async (...input) => show(await call(...input));
    return [[name, { call: callAndShow, scope: calls.findScope(method, endpoint), ...sent }]];
  };
  const showHook = ({ secret, message }: z.output<typeof hookSecretView>): ShownSecret => ({ secret, message });
  const replacement = ['POST', '/push-hook-secret/replace', hookSecretView, showHook] as const;
  return new Map([
    ...define('set-webhook', 'PUT', '/notifications/webhook', webhookView, (shown) => shown, {
      toBody: (read) => ({ url: read('url'), events: read.list('events') }),
    }),
    ...define('show-hook', 'POST', '/push-hook-secret', hookSecretView, showHook),
    ...define('replace-hook', ...replacement, { toBody: () => ({ end_previous: false }) }),
    ...define('replace-hook-now', ...replacement, { toBody: () => ({ end_previous: true }) }),
    ...define(
      ...(['create-token', 'POST', '/tokens', createdTokenView] as const),
      ({ token, message }) => ({ secret: token, message }),
      { toBody: readTokenForm, formFields: { name: 'token-name' } },
    ),
    ...define(
      ...(['create-access-key', 'POST', '/access/keys', createdKeyView] as const),
      ({ key, message }) => ({ secret: key, message }),
      { toBody: (read) => ({ name: read('key-name') }), formFields: { name: 'key-name' } },
    ),
  ]);
}

function readTokenForm(read: FormReader): unknown {
  const days = read('expires_in_days');
  return {
    name: read('token-name'),
    scopes: read.list('scopes'),
    ...(days === '' ? {} : { expires_in_days: Number(days) }),
  };
}

const toNameParameter = (read: FormReader): Readonly<Record<string, string>> => ({ name: read('name') });

/** Each action by the name that its button sends. */
const actions: readonly (readonly [
  name: string,
  method: 'POST' | 'PUT' | 'DELETE',
  subpath: string,
  sent?: Omit<PageAction, 'call' | 'scope'>,
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
  [
    ...(['rename', 'POST', '/rename'] as const),
    { toBody: (read) => ({ slug: read('new-slug') }), formFields: { slug: 'new-slug' } },
  ],
  ['set-secret', 'PUT', '/secrets/{name}', { toParams: toNameParameter, toBody: (read) => ({ value: read('value') }) }],
  ['delete-secret', 'DELETE', '/secrets/{name}', { toParams: toNameParameter }],
  ['change-settings', 'PUT', '/settings', { toBody: readSettingsForm }],
  ['revoke-token', 'DELETE', '/tokens/{id}', { toParams: (read) => ({ id: read('id') }) }],
  ['set-access', 'PUT', '/access', { toBody: readAccessForm }],
  ['revoke-access-key', 'DELETE', '/access/keys/{name}', { toParams: toNameParameter }],
  ['add-domain', 'POST', '/domains', { toBody: (read) => ({ domain: read('domain') }) }],
  ['check-domain', 'POST', '/domains/{domain}/check', { toParams: (read) => ({ domain: read('domain') }) }],
  ['remove-domain', 'DELETE', '/domains/{domain}', { toParams: (read) => ({ domain: read('domain') }) }],
  ['delete', 'DELETE', ''],
  ['add-contact', 'POST', '/notifications/contacts', { toBody: (read) => ({ address: read('address') }) }],
  ['remove-contact', 'DELETE', '/notifications/contacts/{id}', { toParams: (read) => ({ id: read('id') }) }],
  ['start-mail', 'PUT', '/notifications/mail'],
  [
    ...(['choose-mail-events', 'PUT', '/notifications/{channel}/events'] as const),
    { toParams: () => ({ channel: 'mail' }), toBody: (read) => ({ events: read.list('events') }) },
  ],
  ['remove-webhook', 'DELETE', '/notifications/webhook'],
  ['test-notifications', 'POST', '/notifications/test'],
  ['end-previous-hook', 'DELETE', '/push-hook-secret/previous'],
  [
    ...(['set-forge-token', 'PUT', '/forge-token'] as const),
    { toBody: (read) => ({ token: read('forge-token') }), formFields: { token: 'forge-token' } },
  ],
  ['delete-forge-token', 'DELETE', '/forge-token'],
];

/** An empty password keeps the one before. */
function readAccessForm(read: FormReader): unknown {
  const password = read('password');
  return { access: read('access'), ...(password === '' ? {} : { password }) };
}

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
  services: Services,
  slug: string,
  key: string,
  visit: Visit,
  context: RequestContext,
): Promise<Page | Response> {
  try {
    await services.readApp(context, { params: { slug }, key });
  } catch (error) {
    if (!(error instanceof Problem)) throw error;
    return buildSignInPage(services, { slug, problem: error }, visit);
  }
  return redirectWithCookie(visit.link(toManagePath(slug)), services.sessions.begin(key));
}

function redirectWithCookie(location: string, cookie: string): Response {
  const response = redirectTo(location);
  response.headers.append('set-cookie', cookie);
  return response;
}

interface SignInState {
  readonly slug: string;
  readonly problem?: Problem;
  readonly notice?: string;
}

function buildSignInPage({ providers }: Services, { slug, problem, notice }: SignInState, visit: Visit): Page {
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
      ${
        providers.length === 0
          ? ''
          : html`<p>${text.manage.signInLead}</p>
              <p class="actions">
                ${providers.map(
                  ({ id, label }) =>
                    html`<a class="button" href="${visit.link(`/sign-in/${id}`, { app: slug })}" rel="nofollow"
                      >${text.manage.signInWith(label)}</a
                    >`,
                )}
              </p>`
      }
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

interface ManageState {
  readonly slug: string;
  readonly session: Session;
  readonly problem?: Problem | undefined;
  readonly shown?: ShownSecret | undefined;
}

/** @throws Problem (app-private, missing-scope) if the key of the session does not open this app */
async function buildManagePage(
  services: Services,
  { slug: asked, session, problem, shown }: ManageState,
  visit: Visit,
  context: RequestContext,
): Promise<Page | Response> {
  const input = { params: { slug: asked }, key: session.key };
  const app: OwnApp = await services.readApp(context, input);
  const { slug } = app;
  const done = readField(visit.query, 'done');
  // The app was renamed, perhaps just now.
  if (slug !== asked && problem === undefined && shown === undefined)
    return redirectTo(visit.link(toManagePath(slug), done === undefined ? {} : { done }));
  const search = readField(visit.query, 'search') ?? '';
  const run = readField(visit.query, 'run') ?? '';
  const allowed = new Set<string>(app.allowed);
  /** What the session may not read is left out, like what this installation does not have. */
  const load = async <View>(
    call: EndpointCall<View> | undefined,
    scope: string,
    query: Readonly<Record<string, string>> = {},
  ): Promise<View | undefined> => (allowed.has(scope) ? call?.(context, { ...input, query }) : undefined);
  const loaded = await awaitAll({
    audit: load(services.readAudit, 'read', { limit: '20' }),
    secrets: load(services.readSecrets, 'read'),
    settings: load(services.readSettings, 'read'),
    log: load(services.readLog, 'logs', {
      tail: '200',
      ...(search === '' ? {} : { search }),
      ...(run === '' ? {} : { run }),
    }),
    crashes: load(services.readCrashes, 'logs'),
    tokens: load(services.readTokens, 'owner'),
    notifications: load(services.readNotifications, 'read'),
    access: load(services.readAccess, 'read'),
    tasks: load(services.readTasks, 'read'),
    runs: load(services.readRuns, 'read'),
    domains: load(services.readDomains, 'read'),
    previews: load(services.readPreviews, 'read'),
    figures: load(services.readFigures, 'read', { range: readFigureRange(readField(visit.query, 'range')) }),
    forgeToken: load(services.readForgeToken, 'read'),
    deployKey: readDeployKey(services, app, context),
  });
  const actionNames = [...services.actions].filter(([, { scope }]) => scope === undefined || allowed.has(scope));
  const content: ManageContent = {
    ...{ slug, app, ...loaded },
    ...{ search, run, problem, shown },
    path: visit.link(toManagePath(slug)),
    token: session.csrf,
    actions: new Set(actionNames.map(([name]) => name)),
    done,
  };
  return renderManagePage(content, visit);
}

/** The deploy key of a private repository. The page is shown without it while the operator does not answer. */
async function readDeployKey(
  { readDeployKey: read }: Services,
  app: OwnApp,
  context: RequestContext,
): Promise<z.output<typeof deployKeyView> | undefined> {
  if (!app.private || read === undefined) return undefined;
  const { host, owner, name } = parseAcceptedRepository(app.repository);
  return read(context, { params: { owner, name }, query: { host } }).catch((error: unknown) => {
    if (error instanceof Problem) return undefined;
    throw error;
  });
}

/** Waits for all values of an object at once. */
async function awaitAll<Values extends Readonly<Record<string, unknown>>>(promises: {
  readonly [Name in keyof Values]: Promise<Values[Name]>;
}): Promise<Values> {
  const entries = Object.entries<Promise<unknown>>(promises).map(async ([name, value]) => [name, await value] as const);
  return Object.fromEntries(await Promise.all(entries)) as Values;
}
