// The page that compares models: by form, and with its script as the answers come.
import { Problem } from '../../lib/problem.ts';
import { moneyToNumber } from '../billing/index.ts';
import type { Endpoint, RequestFields } from '../http/index.ts';
import { type Catalog as ModelList, comparisonResult, maxModels } from '../models/index.ts';
import type { Calls } from './calls.ts';
import { type Page, pageEndpoint } from './page.ts';
import { type CompareForm, comparePage } from './views/compare.ts';
import { field, type PageSite, type Visit } from './visit.ts';

/** A prompt at its limit, of letters that a form writes as nine each. */
const formLimit = 2_000_000;

export function comparePages(site: PageSite, calls: Calls, list: ModelList): Endpoint[] {
  if (!calls.has('POST', '/api/compare')) return [];
  const models = list.models.map(({ id, label, tier, in_per_m: input, out_per_m: output }) => ({
    id,
    label,
    tier,
    inPrice: moneyToNumber(input),
    outPrice: moneyToNumber(output),
  }));
  const page = (
    visit: Visit,
    form: CompareForm,
    more: Pick<Parameters<typeof comparePage>[0], 'problem' | 'result'> = {},
  ): Page => comparePage({ form, models, maximum: maxModels, ...more }, visit);
  return [
    pageEndpoint(site, {
      path: '/compare',
      operation: 'showComparison',
      summary: 'Compare models',
      render: (_input, visit) => page(visit, { prompt: '', models: [] }),
    }),
    pageEndpoint(site, {
      method: 'POST',
      path: '/compare',
      operation: 'sendComparison',
      summary: 'Compare models by form',
      formLimit,
      async render({ form: given }, visit, context) {
        const form = formOf(given);
        const key = (field(given, 'key') ?? '').trim();
        try {
          const result = await calls.json('POST', '/api/compare', comparisonResult, context, {
            body: { prompt: form.prompt, ...(form.models.length === 0 ? {} : { models: form.models }) },
            ...(key === '' ? {} : { key }),
          });
          return page(visit, form, { result });
        } catch (error) {
          if (!(error instanceof Problem)) throw error;
          return page(visit, form, { problem: error });
        }
      },
    }),
  ];
}

/** Browsers send the lines of a text with CR LF. */
function formOf(given: RequestFields): CompareForm {
  const models = Object.hasOwn(given, 'models') ? [given['models'] ?? []].flat() : [];
  return { prompt: (field(given, 'prompt') ?? '').replaceAll('\r\n', '\n'), models };
}
