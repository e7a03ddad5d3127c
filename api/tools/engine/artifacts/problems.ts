// The problem of a file that is not kept.
import type { ProblemType } from '../../../../lib/problem.ts';

export const unknownFile: ProblemType = {
  slug: 'unknown-file',
  status: 404,
  title: 'There is no such file',
  description:
    'Files that tools have made are kept for an hour, those of jobs for a day, and fewer when one caller makes many. Call the tool again to have the file made anew; that is a call of its own.',
};
