// Pages of the reconciliation, from the endpoints that programs call.
import type { Endpoint } from '../http/index.ts';
import { reconciliation, reconciliationList } from '../accounting/index.ts';
import type { Calls } from './calls.ts';
import { pageEndpoint } from './page.ts';
import { reconciliationPage, reconciliationsPage } from './views/reconciliation.ts';
import { field, type PageSite } from './visit.ts';

const list = '/api/reconciliation';
const one = '/api/reconciliation/{day}';

export function reconciliationPages(site: PageSite, calls: Calls): Endpoint[] {
  if (!calls.has('GET', list) || !calls.has('GET', one)) return [];
  return [
    pageEndpoint(site, {
      path: '/reconciliation',
      operation: 'showReconciliations',
      summary: 'The reconciled days',
      async render({ query }, visit, context) {
        const before = field(query, 'before');
        const found = await calls.json('GET', list, reconciliationList, context, {
          query: before === undefined ? {} : { before },
        });
        const next = found.next === null ? undefined : found.days.at(-1)?.day;
        return reconciliationsPage(found.days, next, visit);
      },
    }),
    pageEndpoint(site, {
      path: '/reconciliation/{day}',
      operation: 'showReconciliation',
      summary: 'The reconciliation of a day',
      async render({ params }, visit, context) {
        const made = await calls.json('GET', one, reconciliation, context, { params: { day: params['day'] ?? '' } });
        return reconciliationPage(made, visit);
      },
    }),
  ];
}
