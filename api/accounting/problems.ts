// Defines the kinds of problems that accounting answers with, also on the internal port.
import type { ProblemType } from '../../lib/problem.ts';

export const meteringToken: ProblemType = {
  slug: 'metering-token',
  status: 401,
  title: 'The metering token is missing or wrong',
  description: 'Only gateways and the operator may report uses. They show MOORAGE_METERING_TOKEN as a bearer token.',
};

/** No document lists the endpoints of that port, so these are named here to have their pages. */
export const internalProblems: readonly ProblemType[] = [meteringToken];

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

export const unknownAuthor: ProblemType = {
  slug: 'unknown-author',
  status: 404,
  title: 'Author not found',
  description:
    'No app of this owner is hosted. The handle is the owner of the repositories, such as octo of github.com/octo/hello; where repositories are on several git hosts, `host` names the one that is meant.',
};

export const authorKeyRequired: ProblemType = {
  slug: 'author-key-required',
  status: 401,
  title: 'Author key required',
  description:
    'A statement is for whoever owns the repository. POST /api/authors/{handle}/keys gives you a key and a line of text. Commit the line to the file .moorage-owner at the top of the default branch, wait until the commit was reviewed, and send the key as `Authorization: Bearer moorage-author-…`. Nothing is stored until you commit it, and taking the line out of the file ends the key.',
};

export const authorFrozen: ProblemType = {
  slug: 'author-frozen',
  status: 409,
  title: 'Author is frozen',
  description:
    'The account behind the owner name changed at the git forge, as it does when a name is given to somebody else. Nothing is shown, accrues or is paid out until the operator of this installation has decided whose it is.',
};

export const unknownLine: ProblemType = {
  slug: 'unknown-line',
  status: 404,
  title: 'Line not found',
  description: 'The statements of this author have no line with this id. Ids of lines are in the statement.',
};

export const statementFinal: ProblemType = {
  slug: 'statement-final',
  status: 409,
  title: 'Statement is final',
  description:
    'The time for disputes of this month is over, so nothing is added to its statement. Contact the operator of this installation; a correction stands in the statement of the current month.',
};
