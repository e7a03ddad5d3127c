// The form that submits a repository, and the page on which its build is followed.
import { z } from 'zod';
import { Problem } from '../../lib/problem.ts';
import { statusView } from '../apps/index.ts';
import type { Endpoint, RequestFields } from '../http/index.ts';
import type { Calls } from './calls.ts';
import { pageEndpoint, seeOther } from './page.ts';
import { statusPath } from './views/app.ts';
import { statusPage, unsubmittedPage } from './views/status.ts';
import { type SubmitForm, submitPage } from './views/submit.ts';
import { field, type PageSite } from './visit.ts';

const submitted = z.looseObject({ status_url: z.string() });

export function submitPages(site: PageSite, calls: Calls): Endpoint[] {
  if (!calls.has('POST', '/api/submit')) return [];
  return [
    pageEndpoint(site, {
      path: '/submit',
      operation: 'showSubmitForm',
      summary: 'Submit a repository',
      render: ({ query }, visit) => submitPage(formOf(query), undefined, visit),
    }),
    pageEndpoint(site, {
      method: 'POST',
      path: '/submit',
      operation: 'sendSubmitForm',
      summary: 'Submit a repository by form',
      async render({ form: given }, visit, context) {
        const form = formOf(given);
        try {
          const view = await calls.json('POST', '/api/submit', submitted, context, { body: bodyOf(form) });
          return seeOther(statusPath(view.status_url, visit) ?? visit.link('/submit'));
        } catch (error) {
          if (!(error instanceof Problem)) throw error;
          return submitPage(form, error, visit);
        }
      },
    }),
  ];
}

function formOf(given: RequestFields): SubmitForm {
  const read = (name: string): string => (field(given, name) ?? '').trim();
  return { repo: read('repo'), contact: read('contact'), note: read('note') };
}

/** An empty field of a form is none. */
function bodyOf({ repo, contact, note }: SubmitForm): Record<string, string> {
  return { repo, ...(contact === '' ? {} : { contact }), ...(note === '' ? {} : { note }) };
}

export function statusPages(site: PageSite, calls: Calls): Endpoint[] {
  const source = '/api/submit-status/{owner}/{name}';
  if (!calls.has('GET', source)) return [];
  return [
    pageEndpoint(site, {
      path: '/status/{owner}/{name}',
      operation: 'showStatus',
      summary: 'The status of a submitted repository',
      async render({ params, query: given }, visit, context) {
        const { owner = '', name = '' } = params;
        const host = field(given, 'host');
        try {
          const query = host === undefined ? {} : { host };
          const view = await calls.json('GET', source, statusView, context, { params: { owner, name }, query });
          return statusPage({ owner, name, view }, visit);
        } catch (error) {
          if (error instanceof Problem && error.type.status === 404) return unsubmittedPage(`${owner}/${name}`, visit);
          throw error;
        }
      },
    }),
  ];
}
