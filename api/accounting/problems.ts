// Defines the kinds of problems that accounting answers with, also on the internal port.
import type { ProblemType } from '../../lib/problem.ts';

export const meteringToken: ProblemType = {
  slug: 'metering-token',
  status: 401,
  title: 'The metering token is missing or wrong',
  description: 'Only gateways and the operator may report uses. They send MOORAGE_METERING_TOKEN as a bearer token.',
};

/** No document lists the endpoints of that port, so these are named here to have their pages. */
export const internalProblems: readonly ProblemType[] = [meteringToken];

export const receiptsUnconfigured: ProblemType = {
  slug: 'receipts-unconfigured',
  status: 503,
  title: 'Receipts are not signed here',
  description:
    'Days of the ledger, charges and statements are signed with a key, and this installation has none. `detail` names the missing setting. Calls are still made and charged.',
};

export const unknownDay: ProblemType = {
  slug: 'unknown-day',
  status: 404,
  title: 'No sealed day',
  description:
    'A UTC day of the ledger is sealed a few minutes after it ends, starting with the first day that has a transaction. `first` and `last` are the first and last sealed days; null while there is none.',
};

export const noCheckpoint: ProblemType = {
  slug: 'no-checkpoint',
  status: 404,
  title: 'No checkpoint yet',
  description: 'The first checkpoint is signed once the ledger has a transaction. Try again later.',
};

export const unknownAuthor: ProblemType = {
  slug: 'unknown-author',
  status: 404,
  title: 'Author not found',
  description:
    'No app of this owner is hosted. The handle is the owner of the repositories, such as octo of github.com/octo/hello; if there are repositories on several git hosts, use `host` to choose one.',
};

export const authorKeyRequired: ProblemType = {
  slug: 'author-key-required',
  status: 401,
  title: 'Author key required',
  description:
    'Only the owner of the repository can read a statement. POST /api/authors/{handle}/keys gives you a key and a line of text. Commit the line to the file .moorage-owner at the top of the default branch, wait until the commit has been reviewed, and send the key as `Authorization: Bearer mak-…`. Nothing is stored until you commit it, and removing the line from the file revokes the key.',
};

export const authorFrozen: ProblemType = {
  slug: 'author-frozen',
  status: 409,
  title: 'Author is frozen',
  description:
    'The account behind the owner name changed at the git forge, as it does when the name is assigned to someone else. Nothing is shown, accrued or paid out until the operator of this installation has decided who owns it.',
};

export const unknownLine: ProblemType = {
  slug: 'unknown-line',
  status: 404,
  title: 'Line not found',
  description: "This author's statements have no line with this id. The statement lists the ids of its lines.",
};

export const statementFinal: ProblemType = {
  slug: 'statement-final',
  status: 409,
  title: 'Statement is final',
  description:
    'The dispute period of this month is over, so its statement no longer changes. Contact the operator of this installation; a correction appears in the statement of the current month.',
};
