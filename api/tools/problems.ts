// The problem types of tools. Worker processes load this file too, so it imports no library.
import type { ProblemType } from '../../lib/problem.ts';

export const unknownTool: ProblemType = {
  slug: 'unknown-tool',
  status: 404,
  title: 'Unknown tool',
  description: 'No tool has this name. `nearest` lists the tools with the most similar names; GET /t lists all tools.',
};

export const foreignWrite: ProblemType = {
  slug: 'foreign-write',
  status: 403,
  title: 'The call comes from another site',
  description:
    "A page of another site made the browser send a call that changes the visitor's stored data. Without a key, such calls are accepted only from programs and from pages of this site. Send an API key, or make the call from a program.",
};

export const serviceOff: ProblemType = {
  slug: 'service-off',
  status: 503,
  title: 'Backing service disabled',
  description:
    'The tool needs a backing service that is not enabled on this installation. `detail` names the Helm value, or the environment variable, that enables it.',
};

export const toolFailed: ProblemType = {
  slug: 'tool-failed',
  status: 502,
  title: 'The tool failed',
  description:
    'The service behind the tool failed or returned something unusable. The call itself was not charged. Try again; `detail` says what failed.',
};

export const serviceTimeout: ProblemType = {
  slug: 'service-timeout',
  status: 504,
  title: 'Backing service did not answer',
  description:
    'The service behind the tool did not answer in time. The call itself was not charged. Try again later; `detail` names the service and the time limit.',
};

export const toolLimit: ProblemType = {
  slug: 'tool-limit',
  status: 422,
  title: 'The call exceeded a limit',
  description:
    'The call reached the time, memory or size limit of a single call and was stopped. The call itself was not charged. Send less input per call.',
};

export const unprocessable: ProblemType = {
  slug: 'unprocessable',
  status: 422,
  title: 'The input cannot be processed',
  description:
    'The request is valid, but its content cannot be processed: a damaged PDF, for example, or a diagram with a syntax error. `detail` says what is wrong. The call was not charged.',
};

export const noArtifact: ProblemType = {
  slug: 'no-artifact',
  status: 422,
  title: 'No file to return',
  description:
    '`raw=1` returns the bytes of the file that a tool creates. This tool creates no file, created none in this call, or has not finished. Remove `raw` to get the JSON response. The call was not charged.',
};

export const toolBusy: ProblemType = {
  slug: 'tool-busy',
  status: 503,
  title: 'All tool slots are in use',
  description:
    'This replica or a service behind the tool has no free slot. The call was not charged. Try again after the number of seconds in Retry-After.',
};

export const tooManyCalls: ProblemType = {
  slug: 'too-many-calls',
  status: 429,
  title: 'Too many concurrent calls',
  description:
    'You have reached the limit of concurrent calls per caller. Wait for one of your calls to finish, or try again after the number of seconds in Retry-After.',
};

export const urlRefused: ProblemType = {
  slug: 'url-refused',
  status: 422,
  title: 'Address not allowed',
  description:
    'Tools fetch only public URLs: http or https, on port 80, 443, 8080 or 8443 unless the operator changes the list, without a user name or password, and never inside a private network. The same applies to every redirect. `detail` gives the reason; `errors` names the field where it is known.',
};

export const fetchFailed: ProblemType = {
  slug: 'fetch-failed',
  status: 502,
  title: 'Fetch failed',
  description:
    'The remote server could not be reached, took too long, or returned something unusable. `detail` says which; `target_status` is its HTTP status if there was one. The call was not charged.',
};

export const fetchTooLarge: ProblemType = {
  slug: 'fetch-too-large',
  status: 422,
  title: 'Remote file too large',
  description:
    'The remote file is larger than this tool accepts, counted after decompression. `limit_bytes` is the limit. The call was not charged.',
};

export const fetchProblems: readonly ProblemType[] = [urlRefused, fetchFailed, fetchTooLarge];

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

export const unknownFile: ProblemType = {
  slug: 'unknown-file',
  status: 404,
  title: 'File not found',
  description:
    'The file of a call is stored for one hour, the file of a job for 24 hours; when one caller creates many files, the oldest are removed earlier. Call the tool again to create the file again; that call is charged as usual.',
};

export const toolProblems: readonly ProblemType[] = [
  unknownTool,
  serviceOff,
  toolFailed,
  serviceTimeout,
  toolLimit,
  unprocessable,
  noArtifact,
  toolBusy,
  tooManyCalls,
  unknownFile,
  ...fetchProblems,
  ...jobProblems,
];
