// Reconciliations of three days: all equal, differences of every sort, and one that waits and has no bill.
import type { Reconciliation } from '../../../api/accounting/reconciliation/index.ts';

type Comparison = Reconciliation['comparisons'][number];
type Sum = Comparison['unexplained'];

const sum = (events: number, usd = '0'): Sum => ({ events, usd });
const equal = { reason: null, differences: [], left_off: 0, apart: [], explained: sum(0), unexplained: sum(0) };

const gateway: Comparison = {
  ...equal,
  name: 'gateway',
  outcome: 'equal',
  lines: [{ name: 'run', of: 'traefik-5d9c7b-x2x7q, run 3', left: sum(48_211), right: sum(48_211) }],
};
const ledger: Comparison = {
  ...equal,
  name: 'ledger',
  outcome: 'equal',
  lines: [
    { name: 'ask', of: null, left: sum(812, '0.7345120013'), right: sum(812, '0.7345120013') },
    { name: 'tool', of: null, left: sum(96, '0.192'), right: sum(96, '0.192') },
    { name: 'app', of: null, left: sum(40, '0.04'), right: sum(40, '0.04') },
  ],
};
const router: Comparison = {
  ...equal,
  name: 'router',
  outcome: 'equal',
  lines: [
    { name: 'platform', of: null, left: sum(812, '0.7345120013'), right: sum(812, '0.7345120013') },
    { name: 'account', of: null, left: sum(812, '0.7345120013'), right: sum(812, '0.7345120013') },
  ],
};
const sums: Comparison = {
  ...equal,
  name: 'sums',
  outcome: 'equal',
  lines: [
    { name: 'hours', of: null, left: sum(49_159), right: sum(49_159) },
    { name: 'days', of: null, left: sum(49_159), right: sum(49_159) },
    { name: 'visits', of: null, left: sum(1_204_733), right: sum(1_204_733) },
  ],
};

const call = '6f5bce6f-e3c1-4637-bfbc-2750aeb01931';
const found = (
  kind: Comparison['differences'][number]['kind'],
  explained: boolean,
  events: Sum,
  subject: string | null,
  detail: string | null = null,
): Comparison['differences'][number] => ({ kind, explained, subject, detail, ...events });

export const reconciliations: readonly Reconciliation[] = [
  {
    day: '2026-05-04',
    made_at: '2026-05-04T09:12:00.000Z',
    complete: false,
    waits: true,
    unexplained: sum(0),
    explanation: null,
    comparisons: [
      gateway,
      { ...ledger, apart: [{ kind: 'pending', ...sum(2, '0.0131') }] },
      {
        ...router,
        outcome: 'not_known',
        reason: 'OpenRouter reports a day once it is over.',
        lines: router.lines.slice(1),
      },
      sums,
    ],
  },
  {
    day: '2026-05-03',
    made_at: '2026-05-04T00:21:07.000Z',
    complete: true,
    waits: false,
    unexplained: sum(4, '0.0145'),
    explanation: 'Two rows were removed by hand while a backup was restored.',
    comparisons: [
      {
        ...gateway,
        outcome: 'explained',
        lines: [{ name: 'run', of: 'traefik-5d9c7b-x2x7q, run 3', left: sum(48_211), right: sum(48_199) }],
        differences: [
          found(
            'lost',
            true,
            sum(12),
            'traefik-5d9c7b-x2x7q, run 3, requests 40118 to 40129',
            'between 2026-05-03T14:20:11.201Z and 2026-05-03T14:20:13.640Z',
          ),
        ],
        explained: sum(12),
      },
      {
        ...ledger,
        outcome: 'different',
        differences: [found('no_use', false, sum(-1, '-0.0025'), call)],
        unexplained: sum(1, '0.0025'),
      },
      {
        ...router,
        outcome: 'different',
        differences: [
          found('not_in_bill', false, sum(1, '0.0025'), call),
          found('not_in_ledger', false, sum(-1, '-0.009'), 'chatcmpl-9d8f3c'),
          found('amount_differs', false, sum(0, '-0.0005'), '39f861b5-9b73-4ad3-a5e1-98ccbc432306'),
          found('pending', true, sum(-1, '-0.0011'), 'e917b130-71a8-43e3-9003-e2abaa42eb83'),
        ],
        left_off: 3,
        apart: [{ kind: 'other_callers', ...sum(31, '1.2') }],
        explained: sum(1, '0.0011'),
        unexplained: sum(2, '0.012'),
      },
      {
        ...sums,
        outcome: 'different',
        differences: [found('sum_differs', false, sum(-1), '12:00 chat-ui-1 visit use 2xx')],
        unexplained: sum(1),
      },
    ],
  },
  {
    day: '2026-05-02',
    made_at: '2026-05-03T00:20:44.000Z',
    complete: true,
    waits: false,
    unexplained: sum(0),
    explanation: null,
    comparisons: [gateway, ledger, router, sums],
  },
];
