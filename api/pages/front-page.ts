// The front page: what Moorage is, the apps as cards, the tools, and how to call all of it.
import type { z } from 'zod';
import type { Offer } from '../apps/index.ts';
import type { FrontPage } from '../protocols/index.ts';
import { buildExampleUrl } from '../tools/index.ts';
import { type ProjectEntry, projectList } from '../catalog/index.ts';
import { type Calls, createPageResponse, type Page, readCursor } from './page.ts';
import { readField, type PageSite, createVisit, type Visit } from './visit.ts';
import { type Html, html } from '../http/index.ts';
import { listing } from '../../crds/hosted-app.ts';
import { renderAuthored, renderBadge, renderCode, renderLanguageField, chooseTranslation } from './parts.ts';

const longestSearch = 100;

/** A tool without requirements, whose example is short enough to read. */
const exampleTool = 'render_diagram';

export function createFrontPage(
  site: PageSite,
  calls: Calls,
  { tools, explainOff, baseUrl }: Pick<Offer, 'tools' | 'explainOff' | 'baseUrl'>,
): FrontPage {
  const listProjects = calls.find('GET', '/api/projects', projectList);
  const example = tools.find(({ name }) => name === exampleTool);
  return async (query, context, headers) => {
    const visit = createVisit(site, { path: '/', query, headers: context.headers });
    const projectQuery = readProjectQuery((name) => readField(query, name));
    const parameters = Object.entries({
      q: projectQuery.search,
      category: projectQuery.category,
      cursor: projectQuery.cursor,
    });
    const projectPage = await listProjects?.(context, {
      query: {
        ...Object.fromEntries(parameters.filter(([, value]) => value !== '')),
        limit: String(pageSize),
        sort: 'stars',
      },
    });
    const content = {
      apps: projectPage === undefined ? undefined : { query: projectQuery, page: projectPage },
      tools: tools.map((tool) => ({ name: tool.name, title: tool.title, isOff: explainOff(tool) !== undefined })),
      example: example === undefined ? undefined : buildExampleUrl(example, baseUrl),
    };
    return createPageResponse(buildFrontPage(content, visit), visit, context.headers, headers);
  };
}

/** Ignores an unknown category. */
function readProjectQuery(read: (name: string) => string | undefined): ProjectQuery {
  return {
    search: (read('q') ?? '').trim().slice(0, longestSearch),
    category: categories.find((one) => one === read('category')) ?? '',
    cursor: read('cursor') ?? '',
  };
}

/** What the visitor searches for. */
interface ProjectQuery {
  readonly search: string;
  readonly category: string;
  /** Empty for the first page. */
  readonly cursor: string;
}

interface FrontTool {
  readonly name: string;
  readonly title: string;
  readonly isOff: boolean;
}

interface FrontContent {
  /** Undefined if there is no catalog. */
  readonly apps: { readonly query: ProjectQuery; readonly page: z.output<typeof projectList> } | undefined;
  readonly tools: readonly FrontTool[];
  /** URL of an example call of a tool. */
  readonly example: string | undefined;
}

const categories = listing.shape.category.unwrap().options;
/** A multiple of two, three and four: whole rows of cards. */
const pageSize = 24;

function buildFrontPage({ apps, tools, example }: FrontContent, visit: Visit): Page {
  const { text } = visit;
  return {
    title: text.site.name,
    description: text.front.lead,
    json: visit.site.isServed('/api/projects') ? '/api/projects' : undefined,
    main: html`<section class="hero">
        <h1>${text.front.title}</h1>
        <p class="lead">${text.front.lead}</p>
        <p class="actions">
          ${renderAction('/submit', text.front.submit, 'button', visit)}
          ${renderAction('/compare', text.front.compare, 'button quiet', visit)}
        </p>
      </section>
      ${apps === undefined ? '' : renderAppsSection(apps, visit)}
      ${tools.length === 0 ? '' : renderToolsSection(tools, visit)} ${renderCallSection(example, visit)}`,
  };
}

function renderAction(path: string, label: string, kind: string, visit: Visit): Html {
  return visit.site.isServed(path) ? html`<a class="${kind}" href="${visit.link(path)}">${label}</a>` : html``;
}

function renderAppsSection({ query, page }: NonNullable<FrontContent['apps']>, visit: Visit): Html {
  const { text, format } = visit;
  const isFiltered = query.search !== '' || query.category !== '';
  const total = format.integer(page.total);
  return html`<section aria-labelledby="apps">
    <div class="heading">
      <h2 id="apps">${text.front.apps}</h2>
      <p>${isFiltered ? text.front.found(total) : text.front.count(total)}</p>
    </div>
    ${renderFilterForm(query, isFiltered, visit)}
    ${
      page.projects.length === 0
        ? html`<p class="empty">${isFiltered ? text.front.noApps : text.front.empty}</p>`
        : html`<ul class="cards">
            ${page.projects.map((project) => renderCard(project, visit))}
          </ul>`
    }
    ${renderPaging(query, readCursor(page.next), visit)}
  </section>`;
}

function renderFilterForm({ search, category }: ProjectQuery, isFiltered: boolean, visit: Visit): Html {
  const { text } = visit;
  return html`<form class="filter" method="get" action="/" role="search">
    ${renderLanguageField(visit)}
    <div class="field">
      <label for="q">${text.front.search}</label>
      <input id="q" name="q" type="search" value="${search}" maxlength="100" />
    </div>
    <div class="field">
      <label for="category">${text.front.category}</label>
      <select id="category" name="category">
        <option value="">${text.site.all}</option>
        ${categories.map((one) => html`<option value="${one}" ${one === category ? html` selected` : ''}>${text.category[one]}</option>`)}
      </select>
    </div>
    <button type="submit" class="quiet">${text.front.filter}</button>
    ${isFiltered ? html`<a href="${visit.link('/')}">${text.front.clear}</a>` : ''}
  </form>`;
}

function renderCard(project: ProjectEntry, visit: Visit): Html {
  const { text, format } = visit;
  const { slug, title, title_zh: titleZh, description, description_zh: descriptionZh, stars, license, state } = project;
  const about = chooseTranslation(visit, description, descriptionZh);
  const meta = [
    translateCategory(project.category, visit),
    ...(license === null ? [] : [license]),
    ...(stars === null ? [] : [text.front.stars(format.compact(stars))]),
  ];
  return html`<li class="card">
    <div class="cardhead">
      <h3>
        <a href="${visit.link(`/apps/${encodeURIComponent(slug)}`)}"
          >${renderAuthored(chooseTranslation(visit, title, titleZh))}</a
        >
      </h3>
      ${renderBadge(state, visit)}
    </div>
    ${about === '' ? '' : html`<p>${renderAuthored(shortenDescription(about))}</p>`}
    <p class="meta">${meta.map((one) => html`<span>${one}</span>`)}</p>
  </li>`;
}

export function translateCategory(category: string, { text }: Visit): string {
  const known = categories.find((one) => one === category);
  return known === undefined ? category : text.category[known];
}

/** Shortens a description to fit a card. */
function shortenDescription(text: string): string {
  // Drop a lone surrogate.
  return text.length <= 160
    ? text
    : `${text
        .slice(0, 159)
        .replace(/[\ud800-\udbff]$/, '')
        .trimEnd()}…`;
}

/** Continues from a cursor, so that apps that come and go shift no page. The browser goes back. */
function renderPaging({ search, category, cursor }: ProjectQuery, next: string | undefined, visit: Visit): Html {
  const { text } = visit;
  if (cursor === '' && next === undefined) return html``;
  const filter = { q: search === '' ? undefined : search, category: category === '' ? undefined : category };
  return html`<nav class="paging" aria-label="${text.front.pages}">
    ${cursor === '' ? '' : html`<a class="button quiet" rel="first" href="${visit.link('/', filter)}">${text.front.first}</a>`}
    ${next === undefined ? '' : html`<a class="button quiet" rel="next" href="${visit.link('/', { ...filter, cursor: next })}">${text.front.next}</a>`}
  </nav>`;
}

function renderToolsSection(tools: readonly FrontTool[], { text }: Visit): Html {
  return html`<section aria-labelledby="tools">
    <h2 id="tools">${text.front.tools}</h2>
    <p>${text.front.toolsLead} <a href="/t">${text.front.toolsAll}</a></p>
    <ul class="tools">
      ${tools.map(
        ({ name, title, isOff }) =>
          html`<li${isOff ? html` class="off"` : ''}>
            <a href="/t#${name}"><code>${name}</code></a>
            <span lang="en">${title}</span>${isOff ? html`<small>${text.front.off}</small>` : ''}
          </li>`,
      )}
    </ul>
  </section>`;
}

function renderCallSection(example: string | undefined, { text, site: { baseUrl, isServed } }: Visit): Html {
  const ask = `curl ${baseUrl}/api/ask --json '{"prompt": "Why is the sky blue?"}'`;
  const submit = `curl ${baseUrl}/api/submit --json '{"repo": "owner/name"}'`;
  return html`<section aria-labelledby="call">
    <h2 id="call">${text.front.call}</h2>
    <p>${text.front.callNote}</p>
    <div class="pair">
      ${isServed('/api/ask') ? renderSample(text.front.callAsk, ask) : ''}
      ${example === undefined ? '' : renderSample(text.front.callTool, `curl '${example}'`)}
      ${isServed('/api/submit') ? renderSample(text.front.callSubmit, submit) : ''}
      ${isServed('/mcp') ? renderSample(text.front.callMcp, `${baseUrl}/mcp`) : ''}
    </div>
  </section>`;
}

function renderSample(title: string, text: string): Html {
  return html`<div>
    <h3>${title}</h3>
    ${renderCode(text, title)}
  </div>`;
}
