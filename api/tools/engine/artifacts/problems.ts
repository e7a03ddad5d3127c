// The problem type of a file that is not stored.
import type { ProblemType } from '../../../../lib/problem.ts';

export const unknownFile: ProblemType = {
  slug: 'unknown-file',
  status: 404,
  title: 'File not found',
  description:
    'The file of a call is stored for one hour, the file of a job for 24 hours; when one caller creates many files, the oldest are removed earlier. Call the tool again to create the file again; that call is charged as usual.',
};
