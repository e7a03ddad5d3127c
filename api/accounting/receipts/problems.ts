// The kinds of problem that receipts answer with.
import type { ProblemType } from '../../../lib/problem.ts';

export const receiptsUnconfigured: ProblemType = {
  slug: 'receipts-unconfigured',
  status: 503,
  title: 'Receipts are not signed here',
  description:
    'Days of the ledger, charges and statements are signed with a key, and this installation has none. `detail` names the missing setting. Calls are made and charged all the same.',
};

export const unknownDay: ProblemType = {
  slug: 'unknown-day',
  status: 404,
  title: 'No sealed day',
  description:
    'A UTC day of the ledger is sealed a few minutes after it ends, from the first day with a transaction on. `first` and `last` are the sealed days that there are; null while there is none.',
};

export const noCheckpoint: ProblemType = {
  slug: 'no-checkpoint',
  status: 404,
  title: 'No checkpoint yet',
  description: 'The first checkpoint is signed once the ledger has a transaction. Ask again later.',
};
