// The words of the pages of reconciliation in English. Names of lines and causes are those that the program prints.
import { apartTitles, causes, comparisonTitles, lineTitles } from '../../accounting/index.ts';

export const reconciliation = {
  reconciliation: {
    title: 'Reconciliation',
    lead: 'Each day the records of this installation are compared with each other: what gateways counted, the uses recorded, the ledger, and what the model router billed. Every difference has a cause, or is counted as unexplained.',
    of: (day: string) => `Reconciliation of ${day}`,
    empty: 'No day has been compared yet. The first is compared after midnight, UTC.',
    day: 'Day',
    older: 'Older days',
    all: 'All days',
    short: { gateway: 'Gateway', ledger: 'Ledger', router: 'Router', prices: 'Prices', sums: 'Sums' },
    outcome: { equal: 'equal', explained: 'explained', different: 'different', not_known: 'not known' },
    about: {
      gateway: 'What each run of a gateway counted by its own counter, and the uses recorded of it.',
      ledger: 'The cost of each metered call in its use, and what the ledger has settled for it.',
      router: 'What the ledger owes the model router for the platform key, and what the router’s own records say.',
      prices: 'What was settled for the calls of each model, and what their tokens cost at list prices.',
      sums: 'The single uses of the day, and their sums by hour and day.',
    },
    sides: {
      gateway: ['Counted', 'Recorded'],
      ledger: ['Uses', 'Settled'],
      router: ['Ledger', 'Bill'],
      prices: ['Settled', 'List'],
      sums: ['Made of', 'Sum'],
    } satisfies Record<string, [string, string]>,
    unexplained: 'Unexplained',
    nothing: 'Nothing is unexplained.',
    something: (events: string, money: string) => `Unexplained: ${events}, ${money}.`,
    explanation: 'Explained by the operator of this installation',
    line: 'Compared',
    difference: 'Difference',
    cause: 'Cause',
    subject: 'What',
    apart: 'On neither side',
    leftOff: (count: string) => `${count} more are not listed.`,
    madeAt: 'Compared',
    untilNow: 'The day was not over.',
    waits: 'Something of it is still awaited; it is compared again.',
    comparison: comparisonTitles as Record<keyof typeof comparisonTitles, string>,
    lines: lineTitles as Record<keyof typeof lineTitles, string>,
    causes: causes as Record<keyof typeof causes, string>,
    aparts: apartTitles as Record<keyof typeof apartTitles, string>,
  },
};

export type ReconciliationText = typeof reconciliation;
