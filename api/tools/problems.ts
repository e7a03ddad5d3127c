// The problem types of tools, besides those of every endpoint and of model calls.
import type { ProblemType } from '../../lib/problem.ts';
import { serviceOff } from './services/backing-services.ts';
import { unknownFile } from './engine/artifacts/problems.ts';
import { fetchProblems } from './fetch/problems.ts';
import { jobProblems } from './engine/jobs/problems.ts';

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
    'A page of another site had the browser make a call that changes what is kept for the visitor. Without a key such calls are taken only from programs and from pages of this site. Send an API key, or make the call from a program.',
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
    'The service behind the tool did not answer in time. The call itself was not charged. Try again later; `detail` names the service and how long it was waited for.',
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
