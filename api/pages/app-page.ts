// The page of an app: state, source, use, benchmark, and how to call it.
import { type ProjectDetail, projectDetail, type TelemetryWindow, windows } from '../catalog/index.ts';
import { type Endpoint, type Html, html } from '../http/index.ts';
import { type Calls, createPageEndpoint, type Page } from './page.ts';
import {
  authored,
  badge,
  code,
  commit,
  english,
  facts,
  missing,
  orMissing,
  outward,
  table,
  translated,
} from './parts.ts';
import type { PageSite, Visit } from './visit.ts';
import { categoryName } from './front-page.ts';

export function createAppPages(site: PageSite, calls: Calls): Endpoint[] {
  const readProject = calls.find('GET', '/api/projects/{slug}', projectDetail);
  if (readProject === undefined) return [];
  return [
    createPageEndpoint(site, {
      path: '/apps/{slug}',
      operation: 'showApp',
      summary: 'An app',
      render: async ({ params }, visit, context) => appPage(await readProject(context, { params }), visit),
    }),
  ];
}

function appPage(app: ProjectDetail, visit: Visit): Page {
  const { text, site } = visit;
  const title = translated(visit, app.title, app.title_zh);
  const about = translated(visit, app.description, app.description_zh);
  return {
    title,
    description: about,
    json: `/api/projects/${encodeURIComponent(app.slug)}`,
    main: html`<div class="heading">
        <h1>${authored(title)}</h1>
        ${badge(app.state, visit)}
      </div>
      ${about === '' ? '' : html`<p class="lead">${authored(about)}</p>`} ${reason(app, visit)}
      <p class="actions">${actions(app, visit)}</p>
      <section aria-labelledby="about">
        <h2 id="about">${text.app.about}</h2>
        ${aboutFacts(app, visit)}
      </section>
      <section aria-labelledby="use">
        <h2 id="use">${text.app.telemetry}</h2>
        ${telemetryTable(app, visit)}
      </section>
      <section aria-labelledby="bench">
        <h2 id="bench">${text.app.bench}</h2>
        ${benchmark(app, visit)}
      </section>
      ${site.answersAt('/api/projects/{slug}/call') ? callSection(app, visit) : ''}`,
  };
}

function reason({ state, state_reason: why }: ProjectDetail, visit: Visit): Html {
  return state === 'live' || why === null ? html`` : html`<p class="notice ${state}">${english(why, visit)}</p>`;
}

function actions({ state, url, status_url: status }: ProjectDetail, visit: Visit): Html {
  const open =
    state === 'live' && typeof url === 'string' && /^https?:\/\//.test(url)
      ? html`<a class="button" href="${url}" rel="noopener">${visit.text.app.open}</a>`
      : '';
  const own = typeof status === 'string' ? statusPath(status, visit) : undefined;
  return html`${open}
  ${own === undefined ? '' : html`<a class="button quiet" href="${own}">${visit.text.app.status}</a>`}`;
}

/** Converts the URL of a status in the API to the path of its page. */
export function statusPath(statusUrl: string, visit: Visit): string | undefined {
  if (!URL.canParse(statusUrl, visit.site.baseUrl)) return undefined;
  const { pathname, searchParams } = new URL(statusUrl, visit.site.baseUrl);
  if (!pathname.startsWith('/api/submit-status/')) return undefined;
  return visit.link(pathname.replace('/api/submit-status/', '/status/'), {
    host: searchParams.get('host') ?? undefined,
  });
}

function aboutFacts(app: ProjectDetail, visit: Visit): Html {
  const { text, format } = visit;
  const starsAt =
    typeof app.stars_at === 'string' ? html` <small>${text.app.asOf} ${format.date(app.stars_at)}</small>` : '';
  return facts([
    [text.app.source, outward(app.repo, authored(app.repo.replace(/^https?:\/\//, '')))],
    [text.author.author, authorLink(app.repo, visit)],
    [
      text.app.stars,
      typeof app.stars === 'number' ? html`${format.integer(app.stars)}${starsAt}` : unknown(app.stars_reason, visit),
    ],
    [text.app.license, typeof app.license === 'string' ? authored(app.license) : unknown(app.license_reason, visit)],
    [text.app.category, categoryName(app.category, visit)],
    [text.app.commit, typeof app.commit === 'string' ? commit(app.commit) : undefined],
    [text.app.since, typeof app.since === 'string' ? format.dateTime(app.since) : undefined],
    ...restFacts(app.idle, visit),
  ]);
}

/** The state of an app that rests when it is not used. */
function restFacts(idle: ProjectDetail['idle'], { text, format }: Visit): [string, Html | undefined][] {
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
function unknown(why: string | null, visit: Visit): Html {
  return why === null ? missing(visit) : html`<small>${english(why, visit)}</small>`;
}

type Measure = readonly [name: string, value: (telemetry: TelemetryWindow) => Html | string];

function measures(visit: Visit): Measure[] {
  const { text, format } = visit;
  return [
    [text.app.uptime, ({ uptime }) => orMissing(uptime, format.percent, visit)],
    [text.app.visits, ({ visits }) => orMissing(visits, format.integer, visit)],
    [text.app.requests, ({ requests }) => orMissing(requests, format.integer, visit)],
    [text.app.callers, ({ callers }) => orMissing(callers, format.integer, visit)],
    [
      text.app.latency,
      ({ latency_ms: latency }) =>
        html`${orMissing(latency.p50, format.duration, visit)} · ${orMissing(latency.p95, format.duration, visit)}`,
    ],
    [text.app.errors, ({ error_rate: rate }) => orMissing(rate, format.percent, visit)],
    [text.app.calls, ({ model_calls: calls }) => orMissing(calls, format.integer, visit)],
    [text.app.cost, ({ model_cost_usd: cost }) => orMissing(cost, format.money, visit)],
    [
      text.app.cpu,
      ({ compute }) => orMissing(compute?.cpu_seconds ?? null, (seconds) => format.duration(seconds * 1_000), visit),
    ],
    [text.app.memory, ({ compute }) => orMissing(compute?.memory_gib_hours ?? null, format.decimal, visit)],
  ];
}

function telemetryTable({ telemetry }: ProjectDetail, visit: Visit): Html {
  const { text } = visit;
  const measured = windows.map((name) => ({ name, found: telemetry[name] }));
  const columns = [
    { title: text.app.measure },
    ...measured.map(({ name }) => ({ title: text.app.window[name], number: true })),
  ];
  const rows = measures(visit).map(([name, value]) => [name, ...measured.map(({ found }) => value(found))]);
  const reasons = new Map(measured.flatMap(({ found }) => Object.entries(found.unmeasured)));
  return html`<p>${text.app.telemetryLead}</p>
    ${table(text.app.telemetry, columns, rows)}
    ${
      reasons.size === 0
        ? ''
        : html`<details>
            <summary>${text.app.why}</summary>
            <ul>
              ${[...reasons].map(([name, why]) => html`<li><code>${name}</code>: ${english(why, visit)}</li>`)}
            </ul>
          </details>`
    }`;
}

function benchmark({ slug, benchmark: entry, benchmark_reason: why }: ProjectDetail, visit: Visit): Html {
  const { text, format } = visit;
  if (entry === null)
    return html`<p class="empty">${typeof why === 'string' ? english(why, visit) : text.app.noBench}</p>`;
  const counts = text.bench.counts(
    format.integer(entry.runs),
    format.integer(entry.models),
    format.integer(entry.tasks),
  );
  return html`<p class="verdict">${translated(visit, entry.verdict, entry.verdict_zh)}</p>
    <p class="meta"><span>${counts}</span></p>
    <p><a href="${visit.link(`/bench/${encodeURIComponent(slug)}`)}">${text.app.benchAll}</a></p>`;
}

function callSection({ slug }: ProjectDetail, { text, site: { baseUrl } }: Visit): Html {
  const url = `${baseUrl}/api/projects/${slug}/call`;
  return html`<section aria-labelledby="call">
    <h2 id="call">${text.app.call}</h2>
    <p>${text.app.callLead}</p>
    ${code(`curl ${url} --json '{"method": "GET", "path": "/"}'\ncurl ${url}/`, text.app.call)}
  </section>`;
}

/** A link to the page of the repository's owner. */
function authorLink(repo: string, { site, link }: Visit): Html | undefined {
  const [, host = '', owner] = /^https?:\/\/([^/]+)\/([^/]+)\//.exec(repo) ?? [];
  if (owner === undefined || !site.answersAt('/authors/{handle}')) return undefined;
  return html`<a href="${link(`/authors/${encodeURIComponent(owner)}`, { host })}">${authored(owner)}</a>`;
}
