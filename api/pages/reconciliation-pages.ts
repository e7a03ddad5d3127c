// The pages of reconciliation: the days that were compared, and one day with both sides and each difference by its cause.
import { type Endpoint, type Html, html } from '../http/index.ts';
import {
  reconciliation,
  reconciliationList,
  type ComparisonResult,
  type Reconciliation,
  type ReconciliationSummary,
} from '../accounting/index.ts';
import { type Calls, createPageEndpoint, type Page } from './page.ts';
import { readField, type PageSite, type Visit } from './visit.ts';
import { formatUsd } from '../billing/index.ts';
import { renderAuthored, renderEnglish, renderTable } from './parts.ts';

export function createReconciliationPages(site: PageSite, calls: Calls): Endpoint[] {
  const listDays = calls.find('GET', '/api/reconciliation', reconciliationList);
  const readDay = calls.find('GET', '/api/reconciliation/{day}', reconciliation);
  if (listDays === undefined || readDay === undefined) return [];
  return [
    createPageEndpoint(site, {
      path: '/reconciliation',
      operation: 'showReconciliations',
      summary: 'The reconciled days',
      async render({ query }, visit, context) {
        const before = readField(query, 'before');
        const list = await listDays(context, { query: before === undefined ? {} : { before } });
        const next = list.next === null ? undefined : list.days.at(-1)?.day;
        return buildReconciliationsPage(list.days, next, visit);
      },
    }),
    createPageEndpoint(site, {
      path: '/reconciliation/{day}',
      operation: 'showReconciliation',
      summary: 'The reconciliation of a day',
      async render({ params }, visit, context) {
        return buildReconciliationPage(await readDay(context, { params }), visit);
      },
    }),
  ];
}

type Sum = ComparisonResult['unexplained'];
type Outcome = ComparisonResult['outcome'];

const names = ['gateway', 'ledger', 'router', 'sums'] as const;
/** The app states whose badge colours show these outcomes. */
const badges: Readonly<Record<Outcome, string>> = {
  equal: 'live',
  explained: 'live',
  different: 'rejected',
  not_known: 'in_pipeline',
};

/** `next`: the next page begins before this day. */
function buildReconciliationsPage(
  days: readonly ReconciliationSummary[],
  next: string | undefined,
  visit: Visit,
): Page {
  const words = visit.text.reconciliation;
  const columns = [
    { title: words.day },
    ...names.map((name) => ({ title: words.short[name] })),
    { title: words.unexplained, number: true },
  ];
  const rows = days.map((day) => [
    html`<a href="${visit.link(`/reconciliation/${day.day}`)}">${day.day}</a>`,
    ...names.map((name) =>
      renderOutcomeBadge(day.comparisons.find((one) => one.name === name)?.outcome ?? 'not_known', visit),
    ),
    day.unexplained.events === 0 ? '0' : formatSum(day.unexplained, visit),
  ]);
  return {
    title: words.title,
    description: words.lead,
    json: '/api/reconciliation',
    main: html`<h1>${words.title}</h1>
      <p class="lead">${words.lead}</p>
      ${days.length === 0 ? html`<p class="empty">${words.empty}</p>` : renderTable(words.title, columns, rows)}
      ${next === undefined ? '' : html`<p><a href="${visit.link('/reconciliation', { before: next })}">${words.older}</a></p>`}`,
  };
}

function buildReconciliationPage(made: Reconciliation, visit: Visit): Page {
  const { text, format } = visit;
  const words = text.reconciliation;
  const isClean = made.unexplained.events === 0;
  return {
    title: words.of(made.day),
    description: words.lead,
    json: `/api/reconciliation/${made.day}`,
    main: html`<h1>${words.of(made.day)}</h1>
      <p class="notice${isClean || made.explanation !== null ? '' : ' rejected'}">
        ${isClean ? words.nothing : words.something(format.integer(made.unexplained.events), formatUsd(made.unexplained.usd))}
      </p>
      ${made.explanation === null ? '' : html`<p>${words.explanation}: ${renderAuthored(made.explanation)}</p>`}
      <p class="meta">
        <span>${words.madeAt} ${format.dateTime(made.made_at)}</span>
        ${made.complete ? '' : html`<span>${words.untilNow}</span>`}
        ${made.waits ? html`<span>${words.waits}</span>` : ''}
      </p>
      ${made.comparisons.map((one) => renderComparison(one, visit))}
      <p><a href="${visit.link('/reconciliation')}">${words.all}</a></p>`,
  };
}

function renderComparison(one: ComparisonResult, visit: Visit): Html {
  const words = visit.text.reconciliation;
  return html`<section aria-labelledby="${one.name}">
    <h2 id="${one.name}">${words.comparison[one.name]} ${renderOutcomeBadge(one.outcome, visit)}</h2>
    <p class="measure">${words.about[one.name]}</p>
    ${one.reason === null ? '' : html`<p class="notice in_pipeline">${renderEnglish(one.reason, visit)}</p>`}
    ${one.lines.length === 0 ? '' : renderSides(one, visit)}
    ${one.differences.length === 0 ? '' : renderDifferences(one, visit)}
    ${one.apart.length === 0 ? '' : renderApart(one, visit)}
  </section>`;
}

function renderSides({ name, lines }: ComparisonResult, visit: Visit): Html {
  const words = visit.text.reconciliation;
  const [left, right] = words.sides[name];
  return renderTable(
    words.comparison[name],
    [{ title: words.line }, { title: left, number: true }, { title: right, number: true }],
    lines.map((line) => [
      line.of === null ? words.lines[line.name] : html`${words.lines[line.name]} ${renderAuthored(line.of)}`,
      formatSum(line.left, visit),
      formatSum(line.right, visit),
    ]),
  );
}

function renderDifferences({ name, differences, left_off }: ComparisonResult, visit: Visit): Html {
  const { text, format } = visit;
  const words = text.reconciliation;
  return html`<h3>${words.difference}</h3>
    ${renderTable(
      `${words.comparison[name]}: ${words.difference}`,
      [{ title: words.cause }, { title: words.difference, number: true }, { title: words.subject }],
      differences.map((one) => [
        html`${words.causes[one.kind]}
        ${one.explained ? '' : html`<span class="badge rejected">${words.unexplained}</span>`}`,
        formatSum(one, visit),
        html`${one.subject === null ? '' : html`<code class="whole">${one.subject}</code>`}
        ${one.detail === null ? '' : html`<br /><small>${renderEnglish(one.detail, visit)}</small>`}`,
      ]),
    )}
    ${left_off === 0 ? '' : html`<p class="meta"><span>${words.leftOff(format.integer(left_off))}</span></p>`}`;
}

function renderApart({ apart }: ComparisonResult, visit: Visit): Html {
  const words = visit.text.reconciliation;
  return html`<h3>${words.apart}</h3>
    <ul>
      ${apart.map((one) => html`<li>${words.aparts[one.kind]}: ${formatSum(one, visit)}</li>`)}
    </ul>`;
}

function renderOutcomeBadge(outcome: Outcome, { text }: Visit): Html {
  return html`<span class="badge ${badges[outcome]}">${text.reconciliation.outcome[outcome]}</span>`;
}

/** `12`, or `12 · $0.0025` with every digit, since the comparison is exact. */
function formatSum({ events, usd }: Sum, { format }: Visit): string {
  return usd === '0' ? format.integer(events) : `${format.integer(events)} · ${formatUsd(usd)}`;
}
