// The benchmark of an app: verdict, plots, and every figure of them in tables.
import {
  type BenchmarkDetail,
  benchmarkDetail,
  type BenchmarkEntry,
  benchmarkList,
  type ModelView,
  type PairView,
} from '../catalog/index.ts';
import { type Endpoint, type Html, html } from '../http/index.ts';
import { type Calls, createPageEndpoint, type Page } from './page.ts';
import {
  renderAuthored,
  renderCommit,
  renderEnglish,
  renderFacts,
  renderMissing,
  formatOrMissing,
  renderOutwardLink,
  renderRate,
  renderTable,
  chooseTranslation,
} from './parts.ts';
import { renderLatencyPlot, selectTimed, selectDrawable, renderScatterPlot } from './plots.ts';
import type { PageSite, Visit } from './visit.ts';

export function createBenchPages(site: PageSite, calls: Calls): Endpoint[] {
  const listBenchmarks = calls.find('GET', '/api/bench', benchmarkList);
  const readBenchmark = calls.find('GET', '/api/bench/{slug}', benchmarkDetail);
  if (listBenchmarks === undefined || readBenchmark === undefined) return [];
  return [
    createPageEndpoint(site, {
      path: '/bench',
      operation: 'showBenchmarks',
      summary: 'The benchmarks',
      render: async (_input, visit, context) => buildBenchIndexPage(await listBenchmarks(context), visit),
    }),
    createPageEndpoint(site, {
      path: '/bench/{slug}',
      operation: 'showBenchmark',
      summary: 'A benchmark',
      render: async ({ params }, visit, context) => buildBenchPage(await readBenchmark(context, { params }), visit),
    }),
  ];
}

function buildBenchIndexPage(entries: readonly BenchmarkEntry[], visit: Visit): Page {
  const { text, format } = visit;
  return {
    title: text.bench.title,
    description: text.bench.lead,
    json: '/api/bench',
    main: html`<h1>${text.bench.title}</h1>
      <p class="lead">${text.bench.lead}</p>
      ${entries.length === 0 ? html`<p class="empty">${text.bench.empty}</p>` : ''}
      <ul class="rows">
        ${entries.map(
          (entry) =>
            html`<li>
              <h2>
                <a href="${visit.link(`/bench/${encodeURIComponent(entry.slug)}`)}">${renderAuthored(entry.title)}</a>
              </h2>
              <p>${chooseTranslation(visit, entry.verdict, entry.verdict_zh)}</p>
              <p class="meta">
                <span
                  >${text.bench.counts(format.integer(entry.runs), format.integer(entry.models), format.integer(entry.tasks))}</span
                >
                ${typeof entry.updated === 'string' ? html`<span>${text.bench.updated} ${format.date(entry.updated)}</span>` : ''}
              </p>
            </li>`,
        )}
      </ul>`,
  };
}

function buildBenchPage(bench: BenchmarkDetail, visit: Visit): Page {
  const { text, format } = visit;
  const verdict = chooseTranslation(visit, bench.verdict, bench.verdict_zh);
  return {
    title: text.bench.of(bench.title),
    description: verdict,
    json: `/api/bench/${encodeURIComponent(bench.slug)}`,
    main: html`<h1>${text.bench.of(bench.title)}</h1>
      <p class="verdict">${verdict}</p>
      <p class="meta">
        <span
          >${text.bench.counts(format.integer(bench.runs), format.integer(bench.models.length), format.integer(bench.tasks.length))}</span
        >
        ${typeof bench.updated === 'string' ? html`<span>${text.bench.updated} ${format.date(bench.updated)}</span>` : ''}
      </p>
      ${renderPlots(bench.models, visit)}
      <section aria-labelledby="models">
        <h2 id="models">${text.bench.models}</h2>
        <p>
          <strong>${text.bench.quality}:</strong> ${text.bench.qualityNote}
          <strong>${text.bench.delivered}:</strong> ${text.bench.deliveredNote}
        </p>
        ${renderModels(bench.models, visit)}
      </section>
      ${renderPairs(bench.pairs, visit)} ${renderTasks(bench, visit)} ${renderErrors(bench.errors, visit)}
      <section aria-labelledby="method">
        <h2 id="method">${text.bench.method}</h2>
        <p>${renderEnglish(bench.method, visit)}</p>
        ${renderSources(bench, visit)}
      </section>`,
  };
}

function renderPlots(models: readonly ModelView[], visit: Visit): Html {
  const { text, format } = visit;
  const dots = selectDrawable(models);
  const rows = selectTimed(models);
  const left = models.filter(({ model }) => dots.every(({ name }) => name !== model)).map(({ model }) => model);
  return html`<div class="plots">
    ${
      dots.length === 0
        ? ''
        : html`<figure tabindex="0">
            <figcaption>${text.bench.scatter}</figcaption>
            ${renderScatterPlot(dots, visit)}
            ${left.length === 0 ? '' : html`<p class="note">${text.bench.notDrawn(format.list(left))}</p>`}
          </figure>`
    }
    ${
      rows.length === 0
        ? ''
        : html`<figure tabindex="0">
            <figcaption>${text.bench.latencyPlot}</figcaption>
            ${renderLatencyPlot(rows, visit)}
          </figure>`
    }
  </div>`;
}

function renderModels(models: readonly ModelView[], visit: Visit): Html {
  const { text, format } = visit;
  const columns = [
    { title: text.bench.model },
    { title: text.bench.quality, number: true },
    { title: text.bench.delivered, number: true },
    { title: text.bench.costPerSuccess, number: true },
    { title: text.bench.costPerRun, number: true },
    { title: text.bench.latency, number: true },
    { title: text.bench.p95, number: true },
  ];
  const rows = models.map((model) => [
    html`${model.model}`,
    renderRate(model.quality, visit),
    renderRate(model.delivered, visit),
    formatCostPerSuccess(model, visit),
    formatOrMissing(model.cost_per_run_usd, format.money, visit),
    formatOrMissing(model.latency_ms.p50, format.duration, visit),
    formatOrMissing(model.latency_ms.p95, format.duration, visit),
  ]);
  return renderTable(text.bench.models, columns, rows);
}

function formatCostPerSuccess(model: ModelView, visit: Visit): Html | string {
  const { text, format } = visit;
  const { cost_per_success_usd: cost, cost_per_success_at_least_usd: bound } = model;
  if (typeof cost === 'number') return format.money(cost);
  return typeof bound === 'number' ? text.bench.atLeast(format.money(bound)) : renderMissing(visit);
}

function renderPairs(pairs: readonly PairView[], visit: Visit): Html {
  const { text, format } = visit;
  if (pairs.length === 0) return html``;
  const formatSigned = (value: number): string => `${value > 0 ? '+' : ''}${format.percent(value)}`;
  const rows = pairs.map((pair) => [
    html`${pair.a} – ${pair.b}`,
    pair.verdict === 'tie' ? text.bench.tie : text.bench.better(pair[pair.verdict]),
    formatOrMissing(pair.difference, formatSigned, visit),
    Array.isArray(pair.interval)
      ? html`${formatSigned(pair.interval[0])} … ${formatSigned(pair.interval[1])}`
      : renderMissing(visit),
    typeof pair.runs_to_decide === 'number' ? format.integer(pair.runs_to_decide) : renderMissing(visit),
  ]);
  const columns = [
    { title: text.bench.models },
    { title: text.bench.result },
    { title: text.bench.difference, number: true },
    { title: text.bench.interval, number: true },
    { title: text.bench.decide, number: true },
  ];
  return html`<section aria-labelledby="pairs">
    <h2 id="pairs">${text.bench.pairs}</h2>
    <p>${text.bench.pairsNote}</p>
    ${renderTable(text.bench.pairs, columns, rows)}
  </section>`;
}

function renderTasks({ models, tasks: taskEntries }: BenchmarkDetail, visit: Visit): Html {
  const { text, format } = visit;
  const tasks = [...new Set(models.flatMap(({ by_task: byTask }) => byTask.map(({ task }) => task)))];
  if (tasks.length === 0) return html``;
  const columns = [{ title: text.bench.task }, ...models.map(({ model }) => ({ title: model, number: true }))];
  const findTitle = (slug: string): string => {
    const entry = taskEntries.find((one) => one.slug === slug);
    return entry === undefined ? slug : chooseTranslation(visit, entry.title, entry.title_zh);
  };
  const rows = tasks.map((task) => [
    html`${findTitle(task)}<br /><small><code>${task}</code></small>`,
    ...models.map(({ by_task: byTask }) => {
      const taskResult = byTask.find((one) => one.task === task);
      if (taskResult === undefined) return renderMissing(visit);
      const cost = taskResult.cost_per_run_usd;
      return html`${renderRate({ ...taskResult.quality, interval: null }, visit)}${typeof cost === 'number' ? html`<br /><small>${format.money(cost)}</small>` : ''}`;
    }),
  ]);
  return html`<section aria-labelledby="tasks">
    <h2 id="tasks">${text.bench.tasks}</h2>
    ${renderTable(text.bench.tasks, columns, rows)}
  </section>`;
}

function renderErrors(errors: BenchmarkDetail['errors'], { text, format }: Visit): Html {
  const counted = Object.entries(errors).flatMap(([cause, count]) => (count > 0 ? [{ cause, count }] : []));
  if (counted.length === 0) return html``;
  const columns = [{ title: text.bench.cause }, { title: text.bench.count, number: true }];
  return html`<section aria-labelledby="errors">
    <h2 id="errors">${text.bench.errors}</h2>
    ${renderTable(
      text.bench.errors,
      columns,
      counted.map(({ cause, count }) => [html`<code>${cause}</code>`, format.integer(count)]),
    )}
  </section>`;
}

function renderSources(bench: BenchmarkDetail, visit: Visit): Html {
  const { text } = visit;
  const { app, csv_url: csv, data_url: data, license } = bench;
  return html`${renderFacts([
      [
        text.bench.app,
        html`<a href="${visit.link(`/apps/${encodeURIComponent(bench.slug)}`)}">${renderAuthored(bench.title)}</a>`,
      ],
      [text.bench.commit, typeof app.commit === 'string' ? renderCommit(app.commit) : undefined],
      [text.bench.image, typeof app.image === 'string' ? html`<code>${app.image}</code>` : undefined],
    ])}
    <p class="actions">
      ${typeof csv === 'string' ? renderOutwardLink(csv, text.bench.csv) : ''}
      ${typeof data === 'string' ? renderOutwardLink(data, text.bench.lines) : ''}
      <span>${text.bench.license(license)}</span>
    </p>`;
}
