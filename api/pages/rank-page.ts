// The ranking: five scores an app, and a total by weights that the visitor chooses.
import { criteria, type Criterion, type RankList, rankList, type Score, type Weights } from '../catalog/index.ts';
import { type Endpoint, type Html, html } from '../http/index.ts';
import { type Calls, createPageEndpoint, type Page, readCursor } from './page.ts';
import {
  renderAuthored,
  renderEnglish,
  renderLanguageField,
  renderMissing,
  renderOutwardLink,
  renderTable,
} from './parts.ts';
import { type PageSite, readField, type Visit } from './visit.ts';

export function createRankPages(site: PageSite, calls: Calls): Endpoint[] {
  const readRanking = calls.find('GET', '/api/rank', rankList);
  if (readRanking === undefined) return [];
  return [
    createPageEndpoint(site, {
      path: '/rank',
      operation: 'showRanking',
      summary: 'The ranking',
      async render({ query }, visit, context) {
        const weights = parseWeights((name) => readField(query, name));
        const isWeighted = Object.values(weights).some((weight) => weight > 0);
        const cursor = readField(query, 'cursor') ?? '';
        const weightPairs = Object.entries(weights).map(([name, weight]) => `${name}:${weight}`);
        const ranking = await readRanking(context, {
          query: { ...(isWeighted ? { weights: weightPairs.join(',') } : {}), ...(cursor === '' ? {} : { cursor }) },
        });
        return buildRankPage(ranking, { weights, next: readCursor(ranking.next) }, visit);
      },
    }),
  ];
}

const highestWeight = 10;

/** Parses the weights in a query. Ignores anything but numbers from 0 to 10. */
function parseWeights(read: (name: Criterion) => string | undefined): Weights {
  return Object.fromEntries(
    criteria.flatMap((name) => {
      const text = read(name) ?? '';
      const weight = Number(text);
      // The API accepts three decimals.
      return text.trim() !== '' && weight >= 0 && weight <= highestWeight
        ? [[name, Math.round(weight * 1_000) / 1_000]]
        : [];
    }),
  );
}

interface RankChoice {
  readonly weights: Weights;
  /** Cursor of the next page. */
  readonly next: string | undefined;
}

function buildRankPage(rank: RankList, { weights, next }: RankChoice, visit: Visit): Page {
  const { text } = visit;
  return {
    title: text.rank.title,
    description: text.rank.lead,
    json: '/api/rank',
    main: html`<h1>${text.rank.title}</h1>
      <p class="lead">${text.rank.lead}</p>
      ${renderWeightForm(weights, visit)}
      ${rank.apps.length === 0 ? html`<p class="empty">${text.rank.empty}</p>` : renderRanking(rank, visit)}
      ${next === undefined ? '' : html`<p class="paging"><a class="button quiet" rel="next" href="${visit.link('/rank', { ...weights, cursor: next })}">${text.front.next}</a></p>`}
      ${typeof rank.formulas === 'string' ? html`<p>${renderOutwardLink(rank.formulas, text.rank.formulas)}</p>` : ''}
      ${renderReasons(rank, visit)}`,
  };
}

function renderWeightForm(weights: Weights, visit: Visit): Html {
  const { text } = visit;
  return html`<form class="weights" method="get" action="/rank">
    ${renderLanguageField(visit)}
    <fieldset>
      <legend>${text.rank.weights}</legend>
      <p id="weights-help">${text.rank.weightsLead}</p>
      <div class="weightfields">
        ${criteria.map(
          (name) =>
            html`<div class="field">
              <label for="${name}">${text.rank.scores[name]}</label>
              <input
                id="${name}"
                name="${name}"
                type="number"
                min="0"
                max="${highestWeight}"
                step="any"
                inputmode="decimal"
                value="${weights[name] ?? ''}"
                aria-describedby="weights-help"
              />
            </div>`,
        )}
        <button type="submit" class="quiet">${text.rank.apply}</button>
      </div>
    </fieldset>
  </form>`;
}

function renderRanking({ apps, weights }: RankList, visit: Visit): Html {
  const { text, format } = visit;
  const isWeighted = weights !== null;
  const columns = [
    { title: text.rank.app },
    ...(isWeighted ? [{ title: text.rank.total, number: true }] : []),
    ...criteria.map((name) => ({ title: text.rank.scores[name], number: true })),
  ];
  const rows = apps.map((app) => [
    html`<a href="${visit.link(`/apps/${encodeURIComponent(app.slug)}`)}">${renderAuthored(app.title)}</a>`,
    ...(isWeighted
      ? [typeof app.score === 'number' ? html`<strong>${format.decimal(app.score)}</strong>` : renderMissing(visit)]
      : []),
    ...criteria.map((name) => renderScore(app.scores[name], visit)),
  ]);
  return renderTable(text.rank.title, columns, rows);
}

function renderScore({ value, interval, n, detail }: Score, visit: Visit): Html {
  const { text, format } = visit;
  if (typeof value !== 'number') return renderMissing(visit);
  const range = Array.isArray(interval)
    ? text.rank.interval(format.decimal(interval[0]), format.decimal(interval[1]))
    : '';
  const count = typeof n === 'number' ? text.rank.n(format.integer(n)) : '';
  const median = detail?.seconds.p50;
  const visits =
    typeof median === 'number' ? text.rank.visit(detail?.requests ?? 0, format.duration(median * 1_000)) : '';
  const notes = [[range, count].filter((one) => one !== '').join(' · '), visits].filter((one) => one !== '');
  return html`${format.decimal(value)}${notes.map((note) => html`<br /><small>${note}</small>`)}`;
}

/** Lists each reason once, with the scores and apps that it applies to. */
function renderReasons({ apps }: RankList, visit: Visit): Html {
  const { text, format } = visit;
  const missed = apps.flatMap(({ title, scores }) =>
    criteria.flatMap((name) => {
      const { value, reason } = scores[name];
      return typeof value === 'number' || typeof reason !== 'string' ? [] : [{ name, reason, title }];
    }),
  );
  if (missed.length === 0) return html``;
  const groups = [...Map.groupBy(missed, ({ name, reason }) => `${name} ${reason}`).values()];
  return html`<details>
    <summary>${text.rank.reasons}</summary>
    <ul>
      ${groups.map((group) => {
        const [first] = group;
        return first === undefined
          ? ''
          : html`<li>
              <strong>${text.rank.scores[first.name]}</strong>
              (${renderAuthored(format.list(group.map(({ title }) => title)))}): ${renderEnglish(first.reason, visit)}
            </li>`;
      })}
    </ul>
  </details>`;
}
