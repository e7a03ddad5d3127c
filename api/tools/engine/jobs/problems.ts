// The problem types of jobs.
import type { ProblemType } from '../../../../lib/problem.ts';

export const unknownJob: ProblemType = {
  slug: 'unknown-job',
  status: 404,
  title: 'Job not found',
  description:
    'No job of this tool has this id, the job belongs to another caller, or it has expired: results and files are stored for 24 hours. A job that was started with a key is read with the same key; one without a key, by anyone who has its id.',
};

export const tooManyJobs: ProblemType = {
  slug: 'too-many-jobs',
  status: 429,
  title: 'Too many jobs in progress',
  description:
    'The number of jobs in progress is limited per caller and for all callers together. Wait for a job to finish, or try again after the number of seconds in Retry-After.',
};

export const jobLost: ProblemType = {
  slug: 'job-lost',
  status: 503,
  title: 'The job was lost',
  description:
    'The process that ran the job ended. A job without a key is taken over by another process, a limited number of times. A job paid for with your own key is not, because the key is never stored. Model calls made until then are charged. Send the call again.',
};

export const jobCanceled: ProblemType = {
  slug: 'job-canceled',
  status: 409,
  title: 'The job was canceled',
  description:
    'Its caller canceled the job, as CancelTask of A2A does. Model calls made until then are charged. Send the call again to start a new job.',
};

export const jobProblems: readonly ProblemType[] = [unknownJob, tooManyJobs, jobLost, jobCanceled];
