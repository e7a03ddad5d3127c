// GET /api/reconciliation: the days that were compared; GET /api/reconciliation/{day}: one of them in full.
import { z } from 'zod';
import { Problem } from '../../../lib/problem.ts';
import { ledgerUnavailable, ledgerUnconfigured } from '../../billing/index.ts';
import { defineEndpoint, type Endpoint, notFound } from '../../http/index.ts';
import { reconciliation, reconciliationList } from './result.ts';
import type { ReconciliationStore } from './reconciliation-store.ts';

const maxAgeSeconds = 60;
const dayField = z.iso.date('must be a day (UTC), like 2026-11-23');
const problems = [ledgerUnavailable, ledgerUnconfigured];

export function createReconciliationEndpoints(store: () => ReconciliationStore, baseUrl: string): Endpoint[] {
  const buildUrl = (day: string): string => `${baseUrl}/api/reconciliation/${day}`;
  return [
    defineEndpoint({
      method: 'GET',
      head: 'as GET',
      path: '/api/reconciliation',
      operation: 'listReconciliations',
      tag: 'billing',
      summary: 'List the reconciled days',
      description:
        'Each day (UTC) the records of this installation are compared with each other: what gateways counted, the uses recorded, the ledger, and what the model router billed. Every difference is explained or counted as unexplained.',
      query: z.strictObject({
        before: dayField.optional().describe('Only days before this one.'),
        limit: z.coerce.number().int().min(1).max(100).default(31).describe('Maximum number of days.'),
      }),
      output: reconciliationList,
      outputDescription: 'Days, the newest first.',
      maxAgeSeconds,
      problems,
      async handler({ query: { before, limit } }) {
        const days = await store().list(before, limit);
        const last = days.length === limit ? days.at(-1)?.day : undefined;
        return {
          days: days.map((day) => ({ ...day, url: buildUrl(day.day) })),
          next: last === undefined ? null : `${baseUrl}/api/reconciliation?before=${last}&limit=${limit}`,
        };
      },
    }),
    defineEndpoint({
      method: 'GET',
      head: 'as GET',
      path: '/api/reconciliation/{day}',
      operation: 'getReconciliation',
      tag: 'billing',
      summary: 'Get the reconciliation of a day',
      description: 'Both sides of each comparison, and every difference by its cause.',
      params: z.strictObject({ day: dayField.describe('The day, UTC.') }),
      output: reconciliation,
      outputDescription: 'The reconciliation.',
      maxAgeSeconds,
      problems: [notFound, ...problems],
      async handler({ params: { day } }) {
        const storedDay = await store().read(day);
        if (storedDay === undefined)
          throw new Problem(notFound, `${day} was not reconciled. GET /api/reconciliation lists the days that were.`);
        return storedDay;
      },
    }),
  ];
}
