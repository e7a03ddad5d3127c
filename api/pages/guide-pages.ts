// Guides: their list, and one of them with its answer, steps, tool and evidence.
import { type EvidenceEntry, type GuideEntry, guideList, type GuideRecord, guideRecord } from '../catalog/index.ts';
import { type Endpoint, type Html, html } from '../http/index.ts';
import { type Calls, createPageEndpoint, type Page } from './page.ts';
import { renderCode, renderEnglish, renderMissing, formatOrMissing, renderTable, chooseTranslation } from './parts.ts';
import type { PageSite, Visit } from './visit.ts';

export function createGuidePages(site: PageSite, calls: Calls): Endpoint[] {
  const listGuides = calls.find('GET', '/api/agent-guides', guideList);
  const readGuide = calls.find('GET', '/api/agent-guides/{slug}', guideRecord);
  if (listGuides === undefined || readGuide === undefined) return [];
  return [
    createPageEndpoint(site, {
      path: '/guides',
      operation: 'showGuides',
      summary: 'The guides',
      render: async (_input, visit, context) => buildGuideIndexPage(await listGuides(context), visit),
    }),
    createPageEndpoint(site, {
      path: '/guides/{slug}',
      operation: 'showGuide',
      summary: 'A guide',
      render: async ({ params }, visit, context) => buildGuidePage(await readGuide(context, { params }), visit),
    }),
  ];
}

function buildGuideIndexPage(guides: readonly GuideEntry[], visit: Visit): Page {
  const { text, format } = visit;
  return {
    title: text.guide.title,
    description: text.guide.lead,
    json: '/api/agent-guides',
    main: html`<h1>${text.guide.title}</h1>
      <p class="lead">${text.guide.lead}</p>
      ${guides.length === 0 ? html`<p class="empty">${text.guide.empty}</p>` : ''}
      <ul class="rows">
        ${guides.map(
          (guide) =>
            html`<li>
              <h2>
                <a href="${visit.link(`/guides/${encodeURIComponent(guide.slug)}`)}">${chooseTitle(guide, visit)}</a>
              </h2>
              ${typeof guide.updated === 'string' ? html`<p class="meta"><span>${text.guide.updated} ${format.date(guide.updated)}</span></p>` : ''}
            </li>`,
        )}
      </ul>`,
  };
}

function chooseTitle({ question, title_zh: chinese }: GuideEntry, visit: Visit): string {
  return chooseTranslation(visit, question, chinese);
}

function buildGuidePage(guide: GuideRecord, visit: Visit): Page {
  const { text, format } = visit;
  const answer = chooseTranslation(visit, guide.answer, guide.answer_zh);
  return {
    title: chooseTitle(guide, visit),
    description: answer,
    json: `/api/agent-guides/${encodeURIComponent(guide.slug)}`,
    main: html`<article class="prose">
        <h1>${chooseTitle(guide, visit)}</h1>
        <p class="lead">${answer}</p>
        <h2>${text.guide.steps}</h2>
        <ol>
          ${guide.steps.map((step) => html`<li>${renderEnglish(step, visit)}</li>`)}
        </ol>
        <h2>${text.guide.tool}</h2>
        ${renderTool(guide, visit)}
      </article>
      <section aria-labelledby="evidence">
        <h2 id="evidence">${text.guide.evidence}</h2>
        ${renderEvidence(guide.evidence, visit)}
        <h3>${text.guide.method}</h3>
        <p class="measure">${renderEnglish(guide.method, visit)}</p>
        <p class="meta">
          ${typeof guide.updated === 'string' ? html`<span>${text.guide.updated} ${format.date(guide.updated)}</span>` : ''}
          <span>${text.guide.license(guide.license)}</span>
        </p>
      </section>`,
  };
}

function renderTool({ tool }: GuideRecord, visit: Visit): Html {
  const { text, site } = visit;
  const call = `curl ${site.baseUrl}/t/${tool.name} --json ${quoteForShell(JSON.stringify(tool.arguments_example))}`;
  return html`<p>
      <a href="/t#${tool.name}"><code>${tool.name}</code></a> ${renderEnglish(tool.description, visit)}
    </p>
    ${renderCode(call, text.guide.tool)}
    <p>${text.guide.mcp}: <code>${tool.mcp_endpoint}</code></p>`;
}

/** Quotes a text as one shell word. */
export function quoteForShell(text: string): string {
  return `'${text.replaceAll("'", String.raw`'\''`)}'`;
}

function renderEvidence(evidence: readonly EvidenceEntry[], visit: Visit): Html {
  const { text, format } = visit;
  const measured = evidence.filter(({ available }) => available);
  if (measured.length === 0) return html`<p class="empty">${text.guide.noEvidence}</p>`;
  const columns = [
    { title: text.guide.evidenceOf },
    { title: text.guide.best },
    { title: text.guide.models, number: true },
    { title: text.guide.runs, number: true },
    { title: text.guide.failed },
    { title: text.guide.missing },
    { title: text.guide.updated },
  ];
  const formatNames = (list: readonly string[]): string => (list.length === 0 ? text.site.none : format.list(list));
  const rows = measured.map((one) => [
    html`<a href="${visit.link(`/bench/${encodeURIComponent(one.slug)}`)}">${one.slug}</a>`,
    one.best_measured_value === null
      ? renderMissing(visit)
      : html`${one.best_measured_value.model}<br /><small
            >${formatOrMissing(one.best_measured_value.usd_per_run, (cost) => text.guide.perRun(format.money(cost)), visit)}</small
          >`,
    formatOrMissing(one.models_tested, format.integer, visit),
    formatOrMissing(one.runs_per_task, format.integer, visit),
    formatNames(one.failed_all_tasks),
    formatNames(one.not_measured),
    typeof one.updated === 'string' ? format.date(one.updated) : renderMissing(visit),
  ]);
  return renderTable(text.guide.evidence, columns, rows);
}
