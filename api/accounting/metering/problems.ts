// Kinds of problem on the internal port, where only programs of this installation ask.
import type { ProblemType } from '../../../lib/problem.ts';

export const meteringToken: ProblemType = {
  slug: 'metering-token',
  status: 401,
  title: 'The metering token is missing or wrong',
  description: 'Only gateways and the operator may report uses. They show MOORAGE_METERING_TOKEN as a bearer token.',
};

/** No document lists the endpoints of that port, so these are named here to have their pages. */
export const internalProblems: readonly ProblemType[] = [meteringToken];
