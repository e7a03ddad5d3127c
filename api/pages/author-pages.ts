// The pages of authors and of the price list. An author's page shows the statement of a month to the holder of their key.
import type { z } from 'zod';
import { Problem } from '../../lib/problem.ts';
import { type Endpoint, type Html, html } from '../http/index.ts';
import {
  authorView,
  priceListView,
  type PriceListView,
  provenStatement,
  type StatementView,
} from '../accounting/index.ts';
import { type Calls, createPageEndpoint, type EndpointCall, type Page } from './page.ts';
import { readField, type PageSite, type Visit } from './visit.ts';
import { formatUsd } from '../billing/index.ts';
import {
  renderAuthored,
  renderCode,
  renderEnglish,
  renderFacts,
  renderMissing,
  renderTable,
  renderErrorSummary,
  renderTextField,
} from './parts.ts';

const authorPath = '/api/authors/{handle}';

export function createAuthorPages(site: PageSite, calls: Calls): Endpoint[] {
  const readAuthor = calls.find('GET', authorPath, authorView);
  const readStatement = calls.find('GET', `${authorPath}/statement`, provenStatement);
  return [
    ...(readAuthor === undefined
      ? []
      : [
          createAuthorPage(site, readAuthor),
          ...(readStatement === undefined ? [] : [createStatementPage(site, readAuthor, readStatement)]),
        ]),
    ...createPricePages(site, calls),
  ];
}

type AuthorReader = EndpointCall<z.output<typeof authorView>>;

function createAuthorPage(site: PageSite, readAuthor: AuthorReader): Endpoint {
  return createPageEndpoint(site, {
    path: '/authors/{handle}',
    operation: 'showAuthor',
    summary: 'An author, and how to access their statements',
    async render({ params, query }, visit, context) {
      const record = toRecord(params, await readAuthor(context, { params, query: toHostQuery(query['host']) }));
      return buildAuthorPage({ record, month: readMonth(readField(query, 'month')) }, visit);
    },
  });
}

function createStatementPage(
  site: PageSite,
  readAuthor: AuthorReader,
  readStatement: EndpointCall<StatementView>,
): Endpoint {
  return createPageEndpoint(site, {
    method: 'POST',
    path: '/authors/{handle}',
    operation: 'showStatement',
    summary: 'The statement of an author for a month',
    async render({ params, query, form }, visit, context) {
      const host = toHostQuery(query['host']);
      const record = toRecord(params, await readAuthor(context, { params, query: host }));
      const month = readMonth(readField(form, 'month'));
      try {
        const key = (readField(form, 'key') ?? '').trim();
        const statement = await readStatement(context, { params, query: { month, ...host }, key });
        return buildAuthorPage({ record, month, statement }, visit);
      } catch (error) {
        if (!(error instanceof Problem)) throw error;
        return buildAuthorPage({ record, month, problem: error }, visit);
      }
    },
  });
}

function toRecord(
  { handle = '' }: Readonly<Record<string, string>>,
  { author, apps, has_key: hasKey }: z.output<typeof authorView>,
): AuthorRecord {
  return { handle, hasKey, name: author, apps };
}

function toHostQuery(host: unknown): { host?: string } {
  return typeof host === 'string' && host !== '' ? { host } : {};
}

/** Reads the month from a form; default the current month. */
function readMonth(value: string | undefined): string {
  return value === undefined || value.trim() === '' ? new Date().toISOString().slice(0, 7) : value.trim();
}

function createPricePages(site: PageSite, calls: Calls): Endpoint[] {
  const readPrices = calls.find('GET', '/api/prices', priceListView);
  if (readPrices === undefined) return [];
  return [
    createPageEndpoint(site, {
      path: '/prices',
      operation: 'showPrices',
      summary: 'The price list',
      render: async (_input, visit, context) => buildPricesPage(await readPrices(context), visit),
    }),
  ];
}

interface AuthorRecord {
  readonly handle: string;
  /** Git host and owner. */
  readonly name: string;
  readonly apps: readonly { readonly id: string; readonly slug: string; readonly share: number }[];
  readonly hasKey: boolean;
}

interface AuthorContent {
  readonly record: AuthorRecord;
  readonly month: string;
  readonly statement?: StatementView;
  readonly problem?: Problem | undefined;
}

const fields = ['key', 'month'];

function buildAuthorPage({ record, month, statement, problem }: AuthorContent, visit: Visit): Page {
  const { text } = visit;
  return {
    title: text.author.title(record.name),
    json: `/api/authors/${encodeURIComponent(record.handle)}?host=${encodeURIComponent(parseHost(record))}`,
    isPrivate: statement !== undefined,
    main: html`<h1>${renderAuthored(record.name)}</h1>
      ${renderApps(record, visit)}
      ${problem === undefined ? '' : renderErrorSummary(text.author.refused, problem, fields, visit)}
      ${statement === undefined ? '' : renderStatement(statement, record, visit)}
      ${renderKeyForm(record, { month, problem }, visit)} ${renderInstructions(record, visit)}`,
  };
}

function renderApps({ apps: list }: AuthorRecord, visit: Visit): Html {
  const { text, format } = visit;
  return html`<section>
    <h2>${text.author.apps}</h2>
    ${renderTable(
      text.author.apps,
      [{ title: text.author.app }, { title: text.author.share, number: true }],
      list.map(({ slug, share }) => [
        html`<a href="${visit.link(`/apps/${encodeURIComponent(slug)}`)}">${slug}</a>`,
        format.percent(share),
      ]),
    )}
  </section>`;
}

/** Every address includes the git host, since another host may have an owner of this name at any time. */
function parseHost({ name }: AuthorRecord): string {
  return name.slice(0, name.indexOf('/'));
}

function renderKeyForm(
  record: AuthorRecord,
  { month, problem }: Pick<AuthorContent, 'month' | 'problem'>,
  visit: Visit,
): Html {
  const { text } = visit;
  const errors = problem?.errors ?? [];
  return html`<section>
    <h2>${text.author.read}</h2>
    <form
      class="panel"
      method="post"
      action="${visit.link(`/authors/${encodeURIComponent(record.handle)}`, { host: parseHost(record) })}"
    >
      ${renderTextField(
        {
          name: 'month',
          label: text.author.month,
          help: text.author.monthHelp,
          value: month,
          maxLength: 7,
          isRequired: true,
        },
        errors,
        visit,
      )}
      ${renderTextField(
        {
          name: 'key',
          label: text.author.key,
          help: text.author.keyHelp,
          value: '',
          maxLength: 100,
          type: 'password',
          isRequired: true,
        },
        errors,
        visit,
      )}
      <button type="submit">${text.author.show}</button>
    </form>
  </section>`;
}

function renderInstructions(record: AuthorRecord, visit: Visit): Html {
  const { handle, hasKey } = record;
  const { text, site } = visit;
  const lines = [
    `curl -X POST ${site.baseUrl}/api/authors/${encodeURIComponent(handle)}/keys?host=${encodeURIComponent(parseHost(record))}`,
    `echo 'moorage-author-sha256-…' >> .moorage-owner`,
    `git add .moorage-owner && git commit -m 'Let me read my statements' && git push`,
  ];
  return html`<section>
    <h2>${text.author.proof}</h2>
    <p>${text.author.proofLead}</p>
    ${renderCode(lines.join('\n'), text.author.proof)}
    <p>${hasKey ? text.author.proven : text.author.unproven}</p>
  </section>`;
}

function renderStatement(statement: StatementView, record: AuthorRecord, visit: Visit): Html {
  const { text, format } = visit;
  return html`<section>
    <h2>${text.author.statement(statement.month)}</h2>
    ${renderFacts([
      [text.author.state, text.author.states[statement.state]],
      [text.author.until, format.dateTime(statement.disputes_until)],
      [text.author.opening, formatUsd(statement.opening_usd)],
      [text.author.earned, formatUsd(statement.earned_usd)],
      [text.author.corrected, formatUsd(statement.corrected_usd)],
      [text.author.paid, formatUsd(statement.paid_usd)],
      [text.author.closing, html`<strong>${formatUsd(statement.closing_usd)}</strong>`],
    ])}
    ${statement.lines.length === 0 ? html`<p class="empty">${text.author.empty}</p>` : renderLines(statement, record, visit)}
    ${renderCapped(statement, visit)} ${renderLosses(statement, visit)} ${renderDisputes(statement, visit)}
  </section>`;
}

/** A line has the name under which it is signed; the current one of a renamed app is shown with it. */
function formatLineApp(id: string, { apps }: AuthorRecord): string {
  const slug = apps.find((app) => app.id === id)?.slug ?? id;
  return slug === id ? id : `${slug} (${id})`;
}

function renderLines({ lines: list }: StatementView, record: AuthorRecord, visit: Visit): Html {
  const { text, format } = visit;
  const number = true;
  return renderTable(
    text.author.lines,
    [
      { title: text.author.day },
      { title: text.author.kind },
      { title: text.author.app },
      { title: text.author.uses, number },
      { title: text.author.gross, number },
      { title: text.author.share, number },
      { title: text.author.amount, number },
      { title: text.author.version },
    ],
    list.map((line) => [
      line.day ?? format.date(line.posted_at),
      html`${text.author.kinds[line.kind]}${line.item === null ? '' : html`, ${text.author.items[line.item]}`}${line.reason === null ? '' : html`<br /><small>${renderAuthored(line.reason)}</small>`}`,
      line.app === null ? renderMissing(visit) : formatLineApp(line.app, record),
      format.integer(line.uses),
      formatUsd(line.gross_usd),
      line.share === null ? renderMissing(visit) : format.percent(Number(line.share)),
      formatUsd(line.amount_usd),
      line.price_version ?? renderMissing(visit),
    ]),
  );
}

function renderCapped({ capped: list = [] }: StatementView, { text, format }: Visit): Html {
  if (list.length === 0) return html``;
  const sumField = (field: 'uses' | 'accrued' | 'over_budget'): number =>
    list.reduce((sum, day) => sum + day[field], 0);
  const [uses, accrued, budget] = [sumField('uses'), sumField('accrued'), sumField('over_budget')];
  return html`<p class="notice in_pipeline">
    ${text.author.capped(format.integer(uses - accrued), format.integer(uses), format.integer(budget))}
  </p>`;
}

function renderLosses({ losses: list }: StatementView, { text, format }: Visit): Html {
  if (list.length === 0) return html``;
  return html`<p class="notice in_pipeline">
    ${text.author.losses(format.integer(list.reduce((sum, { requests }) => sum + requests, 0)))}
  </p>`;
}

function renderDisputes({ disputes: list }: StatementView, visit: Visit): Html {
  const { text, format } = visit;
  if (list.length === 0) return html``;
  return html`<h3>${text.author.disputes}</h3>
    <ul>
      ${list.map(
        ({ message, opened_at: at, resolution }) =>
          html`<li>
            ${format.date(at)}: ${renderAuthored(message)}<br />
            ${resolution === null ? text.author.unanswered : renderEnglish(resolution, visit)}
          </li>`,
      )}
    </ul>`;
}

type Version = PriceListView['versions'][number];

function buildPricesPage({ current, versions }: PriceListView, visit: Visit): Page {
  const { text } = visit;
  const [now, ...others] = [...versions].sort((a, b) => Number(b.version === current) - Number(a.version === current));
  return {
    title: text.prices.title,
    description: text.prices.lead,
    json: '/api/prices',
    main: html`<h1>${text.prices.title}</h1>
      <p class="lead">${text.prices.lead}</p>
      ${now === undefined ? '' : renderVersion(now, text.prices.current, visit)}
      ${others.map((version) => renderVersion(version, text.prices.other, visit))}`,
  };
}

function renderVersion({ version, from, note, free, ...prices }: Version, title: string, visit: Visit): Html {
  const { text, format } = visit;
  const name = (item: string): Html => html`<code>${item}</code>`;
  return html`<section>
    <h2>${title}: ${version}</h2>
    <p>
      ${text.prices.from} ${format.date(`${from}T00:00:00Z`)}. ${note === undefined ? '' : renderEnglish(note, visit)}
    </p>
    ${renderTable(
      text.prices.title,
      [{ title: text.prices.item }, { title: text.prices.price, number: true }],
      [
        [text.prices.use, formatUsd(prices.use_usd)],
        [text.prices.call, formatPrice('call', prices.call_usd, free, visit)],
        [text.prices.margin, format.percent(Number(prices.model_margin))],
        ...Object.entries(prices.tools).map(([tool, price]) => [name(tool), formatPrice(tool, price, free, visit)]),
      ],
    )}
  </section>`;
}

function formatPrice(item: string, price: string, free: readonly string[], { text }: Visit): string {
  return free.includes(item) ? `${formatUsd(price)} (${text.prices.free})` : formatUsd(price);
}
