// The pages of an author, with his statement once he shows his key, and of the price list.
import { Problem } from '../../lib/problem.ts';
import type { Endpoint, RequestContext } from '../http/index.ts';
import { statementView } from '../accounting/index.ts';
import type { Calls } from './calls.ts';
import { author, priceList } from './data.ts';
import { pageEndpoint } from './page.ts';
import { authorPage, type AuthorRecord } from './views/author.ts';
import { pricesPage } from './views/prices.ts';
import { field, type PageSite } from './visit.ts';

const source = '/api/authors/{handle}';

export function authorPages(site: PageSite, calls: Calls): Endpoint[] {
  return [
    ...(calls.has('GET', source) ? [showAuthor(site, calls), showStatement(site, calls)] : []),
    ...prices(site, calls),
  ];
}

function showAuthor(site: PageSite, calls: Calls): Endpoint {
  return pageEndpoint(site, {
    path: '/authors/{handle}',
    operation: 'showAuthor',
    summary: 'An author, and the way to his statements',
    async render({ params, query }, visit, context) {
      const record = await read(calls, params, query['host'], context);
      return authorPage({ record, month: monthOf(field(query, 'month')) }, visit);
    },
  });
}

function showStatement(site: PageSite, calls: Calls): Endpoint {
  return pageEndpoint(site, {
    method: 'POST',
    path: '/authors/{handle}',
    operation: 'showStatement',
    summary: 'The statement of an author for a month',
    async render({ params, query, form }, visit, context) {
      const record = await read(calls, params, query['host'], context);
      const month = monthOf(field(form, 'month'));
      try {
        const statement = await calls.json('GET', `${source}/statement`, statementView, context, {
          params: { handle: record.handle },
          query: { month, ...hostOf(query['host']) },
          key: (field(form, 'key') ?? '').trim(),
        });
        return authorPage({ record, month, statement }, visit);
      } catch (error) {
        if (!(error instanceof Problem)) throw error;
        return authorPage({ record, month, problem: error }, visit);
      }
    },
  });
}

async function read(
  calls: Calls,
  { handle = '' }: Readonly<Record<string, string>>,
  host: unknown,
  context: RequestContext,
): Promise<AuthorRecord> {
  const { apps, ...rest } = await calls.json('GET', source, author, context, {
    params: { handle },
    query: hostOf(host),
  });
  return { handle, hasKey: rest.has_key, name: rest.author, apps };
}

function hostOf(host: unknown): { host?: string } {
  return typeof host === 'string' && host !== '' ? { host } : {};
}

/** What a form says, or the current month. */
function monthOf(given: string | undefined): string {
  return given === undefined || given.trim() === '' ? new Date().toISOString().slice(0, 7) : given.trim();
}

function prices(site: PageSite, calls: Calls): Endpoint[] {
  if (!calls.has('GET', '/api/prices')) return [];
  return [
    pageEndpoint(site, {
      path: '/prices',
      operation: 'showPrices',
      summary: 'The price list',
      render: async (_input, visit, context) =>
        pricesPage(await calls.json('GET', '/api/prices', priceList, context), visit),
    }),
  ];
}
