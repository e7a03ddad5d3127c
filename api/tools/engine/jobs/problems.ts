// The kinds of problems that jobs answer with.
import type { ProblemType } from '../../../../lib/problem.ts';

export const unknownJob: ProblemType = {
  slug: 'unknown-job',
  status: 404,
  title: 'There is no such job',
  description:
    'No job of this tool has this id, or it is not yours, or it has expired: results and files are kept for a day. Jobs are seen by who began them only: with the same key, or without one from the same network.',
};

export const tooManyJobs: ProblemType = {
  slug: 'too-many-jobs',
  status: 429,
  title: 'Too many jobs are under way',
  description:
    'One caller, and all callers together, may have so many jobs under way. Wait for one to end, or try again after the seconds in Retry-After.',
};

export const jobLost: ProblemType = {
  slug: 'job-lost',
  status: 503,
  title: 'The job was lost',
  description:
    'The process that worked on the job has ended. A job without a key is taken up by another process, a few times; one that is paid with a key of your own is not, because the key is kept nowhere. What it has cost until then is booked. Send the call again.',
};

export const jobProblems: readonly ProblemType[] = [unknownJob, tooManyJobs, jobLost];
