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
import { authored, commit, english, facts, missing, orMissing, outward, rateCell, table, translated } from './parts.ts';
import { latencyPlot, selectTimed, selectDrawable, scatter } from './plots.ts';
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
      render: async (_input, visit, context) => benchIndexPage(await listBenchmarks(context), visit),
    }),
    createPageEndpoint(site, {
      path: '/bench/{slug}',
      operation: 'showBenchmark',
      summary: 'A benchmark',
      render: async ({ params }, visit, context) => benchPage(await readBenchmark(context, { params }), visit),
    }),
  ];
}

function benchIndexPage(entries: readonly BenchmarkEntry[], visit: Visit): Page {
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
              <h2><a href="${visit.link(`/bench/${encodeURIComponent(entry.slug)}`)}">${authored(entry.title)}</a></h2>
              <p>${translated(visit, entry.verdict, entry.verdict_zh)}</p>
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

function benchPage(bench: BenchmarkDetail, visit: Visit): Page {
  const { text, format } = visit;
  const verdict = translated(visit, bench.verdict, bench.verdict_zh);
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
      ${plots(bench.models, visit)}
      <section aria-labelledby="models">
        <h2 id="models">${text.bench.models}</h2>
        <p>
          <strong>${text.bench.quality}:</strong> ${text.bench.qualityNote}
          <strong>${text.bench.delivered}:</strong> ${text.bench.deliveredNote}
        </p>
        ${modelTable(bench.models, visit)}
      </section>
      ${pairsSection(bench.pairs, visit)} ${tasksSection(bench, visit)} ${errorsSection(bench.errors, visit)}
      <section aria-labelledby="method">
        <h2 id="method">${text.bench.method}</h2>
        <p>${english(bench.method, visit)}</p>
        ${sources(bench, visit)}
      </section>`,
  };
}

function plots(models: readonly ModelView[], visit: Visit): Html {
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
            ${scatter(dots, visit)}
            ${left.length === 0 ? '' : html`<p class="note">${text.bench.notDrawn(format.list(left))}</p>`}
          </figure>`
    }
    ${
      rows.length === 0
        ? ''
        : html`<figure tabindex="0">
            <figcaption>${text.bench.latencyPlot}</figcaption>
            ${latencyPlot(rows, visit)}
          </figure>`
    }
  </div>`;
}

function modelTable(models: readonly ModelView[], visit: Visit): Html {
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
    rateCell(model.quality, visit),
    rateCell(model.delivered, visit),
    costPerSuccess(model, visit),
    orMissing(model.cost_per_run_usd, format.money, visit),
    orMissing(model.latency_ms.p50, format.duration, visit),
    orMissing(model.latency_ms.p95, format.duration, visit),
  ]);
  return table(text.bench.models, columns, rows);
}

function costPerSuccess(model: ModelView, visit: Visit): Html | string {
  const { text, format } = visit;
  const { cost_per_success_usd: cost, cost_per_success_at_least_usd: bound } = model;
  if (typeof cost === 'number') return format.money(cost);
  return typeof bound === 'number' ? text.bench.atLeast(format.money(bound)) : missing(visit);
}

function pairsSection(pairs: readonly PairView[], visit: Visit): Html {
  const { text, format } = visit;
  if (pairs.length === 0) return html``;
  const signed = (value: number): string => `${value > 0 ? '+' : ''}${format.percent(value)}`;
  const rows = pairs.map((pair) => [
    html`${pair.a} – ${pair.b}`,
    pair.verdict === 'tie' ? text.bench.tie : text.bench.better(pair[pair.verdict]),
    orMissing(pair.difference, signed, visit),
    Array.isArray(pair.interval) ? html`${signed(pair.interval[0])} … ${signed(pair.interval[1])}` : missing(visit),
    typeof pair.runs_to_decide === 'number' ? format.integer(pair.runs_to_decide) : missing(visit),
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
    ${table(text.bench.pairs, columns, rows)}
  </section>`;
}

function tasksSection({ models, tasks: described }: BenchmarkDetail, visit: Visit): Html {
  const { text, format } = visit;
  const tasks = [...new Set(models.flatMap(({ by_task: byTask }) => byTask.map(({ task }) => task)))];
  if (tasks.length === 0) return html``;
  const columns = [{ title: text.bench.task }, ...models.map(({ model }) => ({ title: model, number: true }))];
  const titleOf = (slug: string): string => {
    const found = described.find((one) => one.slug === slug);
    return found === undefined ? slug : translated(visit, found.title, found.title_zh);
  };
  const rows = tasks.map((task) => [
    html`${titleOf(task)}<br /><small><code>${task}</code></small>`,
    ...models.map(({ by_task: byTask }) => {
      const found = byTask.find((one) => one.task === task);
      if (found === undefined) return missing(visit);
      const cost = found.cost_per_run_usd;
      return html`${rateCell({ ...found.quality, interval: null }, visit)}${typeof cost === 'number' ? html`<br /><small>${format.money(cost)}</small>` : ''}`;
    }),
  ]);
  return html`<section aria-labelledby="tasks">
    <h2 id="tasks">${text.bench.tasks}</h2>
    ${table(text.bench.tasks, columns, rows)}
  </section>`;
}

function errorsSection(errors: BenchmarkDetail['errors'], { text, format }: Visit): Html {
  const counted = Object.entries(errors).flatMap(([cause, count]) => (count > 0 ? [{ cause, count }] : []));
  if (counted.length === 0) return html``;
  const columns = [{ title: text.bench.cause }, { title: text.bench.count, number: true }];
  return html`<section aria-labelledby="errors">
    <h2 id="errors">${text.bench.errors}</h2>
    ${table(
      text.bench.errors,
      columns,
      counted.map(({ cause, count }) => [html`<code>${cause}</code>`, format.integer(count)]),
    )}
  </section>`;
}

function sources(bench: BenchmarkDetail, visit: Visit): Html {
  const { text } = visit;
  const { app, csv_url: csv, data_url: data, license } = bench;
  return html`${facts([
      [
        text.bench.app,
        html`<a href="${visit.link(`/apps/${encodeURIComponent(bench.slug)}`)}">${authored(bench.title)}</a>`,
      ],
      [text.bench.commit, typeof app.commit === 'string' ? commit(app.commit) : undefined],
      [text.bench.image, typeof app.image === 'string' ? html`<code>${app.image}</code>` : undefined],
    ])}
    <p class="actions">
      ${typeof csv === 'string' ? outward(csv, text.bench.csv) : ''}
      ${typeof data === 'string' ? outward(data, text.bench.lines) : ''}
      <span>${text.bench.license(license)}</span>
    </p>`;
}
