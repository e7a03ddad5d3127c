// The page of an app: state, source, use, benchmark, and how to call it.
import { type ProjectDetail, projectDetail, type TelemetryWindow, windows } from '../catalog/index.ts';
import { appToolPath, appToolResult, appTools, type AppTools, appToolsPath } from '../apps/index.ts';
import { type Endpoint, type Html, html, type RequestContext } from '../http/index.ts';
import { Problem } from '../../lib/problem.ts';
import { parseAcceptedRepository } from '../../lib/repository.ts';
import { readToolArguments, renderTools, type ToolAttempt } from './app-tools.ts';
import { type Calls, createPageEndpoint, type Page, type PageInput, redirectTo } from './page.ts';
import {
  renderAuthored,
  renderBadge,
  renderCode,
  renderCommit,
  renderComponents,
  renderEnglish,
  renderFacts,
  renderMissing,
  formatOrMissing,
  renderOutwardLink,
  renderTable,
  chooseTranslation,
} from './parts.ts';
import { readField, type PageSite, type Visit } from './visit.ts';
import { translateCategory } from './front-page.ts';

export function createAppPages(site: PageSite, calls: Calls): Endpoint[] {
  const readProject = calls.find('GET', '/api/projects/{slug}', projectDetail);
  if (readProject === undefined) return [];
  const list = calls.find('GET', appToolsPath, appTools);
  const call = calls.find('POST', appToolPath, appToolResult);
  /** The tools of an app; undefined if it is not live. */
  const readTools = (context: RequestContext, slug: string): Promise<AppTools | undefined> =>
    list?.(context, { params: { slug } }).catch((error: unknown) => {
      if (error instanceof Problem) return undefined;
      throw error;
    }) ?? Promise.resolve(undefined);
  const attemptCall = async (
    { params, form }: PageInput,
    tools: AppTools | undefined,
    visit: Visit,
    context: RequestContext,
  ): Promise<ToolAttempt> => {
    const tool = readField(form, 'tool') ?? '';
    const listed = tools?.tools.find(({ name }) => name === tool);
    if (listed === undefined || call === undefined) return { tool, fields: form, fault: visit.text.tools.gone };
    const { values, invalid } = readToolArguments(listed, form);
    if (invalid !== undefined) return { tool, fields: form, fault: visit.text.tools.notJson(invalid) };
    try {
      const result = await call(context, { params: { ...params, tool }, body: { arguments: values } });
      return { tool, fields: form, result };
    } catch (error) {
      if (error instanceof Problem) return { tool, fields: form, fault: error.message };
      throw error;
    }
  };
  return [
    createPageEndpoint(site, {
      path: '/apps/{slug}',
      operation: 'showApp',
      summary: 'An app',
      render: async ({ params }, visit, context) => {
        const app = await readProject(context, { params });
        // The app was renamed.
        if (app.slug !== params['slug']) return redirectTo(visit.link(`/apps/${encodeURIComponent(app.slug)}`));
        return buildAppPage(app, await readTools(context, app.slug), undefined, visit);
      },
    }),
    ...(call === undefined
      ? []
      : [
          createPageEndpoint(site, {
            method: 'POST',
            path: '/apps/{slug}',
            operation: 'tryAppTool',
            summary: 'Call a tool of an app by form',
            formLimit,
            render: async (input, visit, context) => {
              const app = await readProject(context, { params: input.params });
              const tools = await readTools(context, app.slug);
              return buildAppPage(app, tools, await attemptCall(input, tools, visit, context), visit);
            },
          }),
        ]),
  ];
}

const formLimit = 256 * 1024;

function buildAppPage(
  app: ProjectDetail,
  tools: AppTools | undefined,
  attempt: ToolAttempt | undefined,
  visit: Visit,
): Page {
  const { text, site } = visit;
  const title = chooseTranslation(visit, app.title, app.title_zh);
  const about = chooseTranslation(visit, app.description, app.description_zh);
  return {
    title,
    description: about,
    isPrivate: attempt !== undefined,
    json: `/api/projects/${encodeURIComponent(app.slug)}`,
    main: html`<div class="heading">
        <h1>${renderAuthored(title)}</h1>
        ${renderBadge(app.state, visit)}
      </div>
      ${about === '' ? '' : html`<p class="lead">${renderAuthored(about)}</p>`} ${renderReason(app, visit)}
      <p class="actions">${renderActions(app, visit)}</p>
      <section aria-labelledby="about">
        <h2 id="about">${text.app.about}</h2>
        ${renderAbout(app, visit)}
      </section>
      ${renderTools(tools, attempt, visit)}
      <section aria-labelledby="use">
        <h2 id="use">${text.app.telemetry}</h2>
        ${renderTelemetry(app, visit)}
      </section>
      <section aria-labelledby="bench">
        <h2 id="bench">${text.app.bench}</h2>
        ${renderBenchmark(app, visit)}
      </section>
      ${site.isServed('/api/projects/{slug}/call') ? renderCallSection(app, visit) : ''}`,
  };
}

function renderReason({ state, state_reason: why }: ProjectDetail, visit: Visit): Html {
  return state === 'live' || why === null ? html`` : html`<p class="notice ${state}">${renderEnglish(why, visit)}</p>`;
}

function renderActions({ slug, state, url, status_url: status }: ProjectDetail, visit: Visit): Html {
  const open =
    state === 'live' && typeof url === 'string' && /^https?:\/\//.test(url)
      ? html`<a class="button" href="${url}" rel="noopener">${visit.text.app.open}</a>`
      : '';
  const statusPath = typeof status === 'string' ? toStatusPath(status, visit) : undefined;
  return html`${open}
  ${statusPath === undefined ? '' : html`<a class="button quiet" href="${statusPath}">${visit.text.app.status}</a>`}
  ${statusPath === undefined ? '' : renderManageLink(slug, visit)}`;
}

/** To the page where the author signs in and runs the app. */
export function renderManageLink(slug: string, visit: Visit): Html {
  if (!visit.site.isServed('/apps/{slug}/manage')) return html``;
  return html`<a class="button quiet" href="${visit.link(`/apps/${encodeURIComponent(slug)}/manage`)}"
    >${visit.text.app.manage}</a
  >`;
}

/** Converts the URL of a status in the API to the path of its page. */
export function toStatusPath(statusUrl: string, visit: Visit): string | undefined {
  if (!URL.canParse(statusUrl, visit.site.baseUrl)) return undefined;
  const { pathname, searchParams } = new URL(statusUrl, visit.site.baseUrl);
  if (!pathname.startsWith('/api/submit-status/')) return undefined;
  return visit.link(pathname.replace('/api/submit-status/', '/status/'), {
    host: searchParams.get('host') ?? undefined,
  });
}

function renderAbout(app: ProjectDetail, visit: Visit): Html {
  const { text, format } = visit;
  const starsAt =
    typeof app.stars_at === 'string' ? html` <small>${text.app.asOf} ${format.date(app.stars_at)}</small>` : '';
  return renderFacts([
    [text.app.source, renderRepository(app, visit)],
    [text.author.author, renderAuthorLink(app.repo, visit)],
    [
      text.app.stars,
      typeof app.stars === 'number'
        ? html`${format.integer(app.stars)}${starsAt}`
        : renderUnknown(app.stars_reason, visit),
    ],
    [
      text.app.license,
      typeof app.license === 'string' ? renderAuthored(app.license) : renderUnknown(app.license_reason, visit),
    ],
    [text.app.category, translateCategory(app.category, visit)],
    [text.app.commit, typeof app.commit === 'string' ? renderCommit(app.commit) : undefined],
    [text.app.since, typeof app.since === 'string' ? format.dateTime(app.since) : undefined],
    ...listRestFacts(app.idle, visit),
    [visit.text.app.components, renderComponents(app.components, visit)],
  ]);
}

/** A link to a private repository would lead visitors to an error. */
export function renderRepository(
  { repo, private: isPrivate }: { readonly repo: string; readonly private?: true | undefined },
  { text }: Visit,
): Html {
  const address = renderAuthored(repo.replace(/^https?:\/\//, ''));
  return isPrivate === true ? html`${address} <small>${text.status.private}</small>` : renderOutwardLink(repo, address);
}

/** The state of an app that rests when it is not used. */
function listRestFacts(idle: ProjectDetail['idle'], { text, format }: Visit): [string, Html | undefined][] {
  if (idle === null) return [];
  const { state, idle_seconds: seconds, wakes } = idle;
  const after = text.app.restAfter(format.duration(seconds * 1_000));
  const measured =
    wakes === undefined
      ? undefined
      : html`${text.app.wakesOf(format.integer(wakes.count), format.duration(wakes.p50_ms), format.duration(wakes.p95_ms))}`;
  return [
    [text.app.rest, html`${text.app.restState[state]} <small>${after}</small>`],
    [text.app.wakes, measured],
  ];
}

/** An unknown value with its reason. */
function renderUnknown(why: string | null, visit: Visit): Html {
  return why === null ? renderMissing(visit) : html`<small>${renderEnglish(why, visit)}</small>`;
}

type Measure = readonly [name: string, value: (telemetry: TelemetryWindow) => Html | string];

function createMeasures(visit: Visit): Measure[] {
  const { text, format } = visit;
  return [
    [text.app.uptime, ({ uptime }) => formatOrMissing(uptime, format.percent, visit)],
    [text.app.visits, ({ visits }) => formatOrMissing(visits, format.integer, visit)],
    [text.app.requests, ({ requests }) => formatOrMissing(requests, format.integer, visit)],
    [text.app.callers, ({ callers }) => formatOrMissing(callers, format.integer, visit)],
    [
      text.app.latency,
      ({ latency_ms: latency }) =>
        html`${formatOrMissing(latency.p50, format.duration, visit)} ·
        ${formatOrMissing(latency.p95, format.duration, visit)}`,
    ],
    [text.app.errors, ({ error_rate: rate }) => formatOrMissing(rate, format.percent, visit)],
    [text.app.calls, ({ model_calls: calls }) => formatOrMissing(calls, format.integer, visit)],
    [text.app.cost, ({ model_cost_usd: cost }) => formatOrMissing(cost, format.money, visit)],
    [
      text.app.cpu,
      ({ compute }) =>
        formatOrMissing(compute?.cpu_seconds ?? null, (seconds) => format.duration(seconds * 1_000), visit),
    ],
    [text.app.memory, ({ compute }) => formatOrMissing(compute?.memory_gib_hours ?? null, format.decimal, visit)],
  ];
}

function renderTelemetry({ telemetry }: ProjectDetail, visit: Visit): Html {
  const { text } = visit;
  const measuredWindows = windows.map((name) => ({ name, figures: telemetry[name] }));
  const columns = [
    { title: text.app.measure },
    ...measuredWindows.map(({ name }) => ({ title: text.app.window[name], number: true })),
  ];
  const rows = createMeasures(visit).map(([name, value]) => [
    name,
    ...measuredWindows.map(({ figures }) => value(figures)),
  ]);
  const reasons = new Map(measuredWindows.flatMap(({ figures }) => Object.entries(figures.unmeasured)));
  return html`<p>${text.app.telemetryLead}</p>
    ${renderTable(text.app.telemetry, columns, rows)}
    ${
      reasons.size === 0
        ? ''
        : html`<details>
            <summary>${text.app.why}</summary>
            <ul>
              ${[...reasons].map(([name, why]) => html`<li><code>${name}</code>: ${renderEnglish(why, visit)}</li>`)}
            </ul>
          </details>`
    }`;
}

function renderBenchmark({ slug, benchmark: entry, benchmark_reason: why }: ProjectDetail, visit: Visit): Html {
  const { text, format } = visit;
  if (entry === null)
    return html`<p class="empty">${typeof why === 'string' ? renderEnglish(why, visit) : text.app.noBench}</p>`;
  const counts = text.bench.counts(
    format.integer(entry.runs),
    format.integer(entry.models),
    format.integer(entry.tasks),
  );
  return html`<p class="verdict">${chooseTranslation(visit, entry.verdict, entry.verdict_zh)}</p>
    <p class="meta"><span>${counts}</span></p>
    <p><a href="${visit.link(`/bench/${encodeURIComponent(slug)}`)}">${text.app.benchAll}</a></p>`;
}

function renderCallSection({ slug }: ProjectDetail, { text, site: { baseUrl } }: Visit): Html {
  const url = `${baseUrl}/api/projects/${slug}/call`;
  return html`<section aria-labelledby="call">
    <h2 id="call">${text.app.call}</h2>
    <p>${text.app.callLead}</p>
    ${renderCode(`curl ${url} --json '{"method": "GET", "path": "/"}'\ncurl ${url}/`, text.app.call)}
  </section>`;
}

/** A link to the page of the repository's owner. */
function renderAuthorLink(repo: string, { site, link }: Visit): Html | undefined {
  if (!URL.canParse(repo) || !site.isServed('/authors/{handle}')) return undefined;
  const { host, owner, name } = parseAcceptedRepository(repo);
  if (name === '') return undefined;
  return html`<a href="${link(`/authors/${encodeURIComponent(owner)}`, { host })}">${renderAuthored(owner)}</a>`;
}
