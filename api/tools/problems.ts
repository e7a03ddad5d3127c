// The kinds of problems that tools answer with, beside those of every endpoint and of model calls.
import type { ProblemType } from '../../lib/problem.ts';
import { ledgerUnconfigured } from '../billing/problems.ts';
import { serviceOff } from './services/backing-services.ts';
import { unknownFile } from './engine/artifacts/problems.ts';
import { fetchProblems } from './fetch/problems.ts';
import { jobProblems } from './engine/jobs/problems.ts';

export const unknownTool: ProblemType = {
  slug: 'unknown-tool',
  status: 404,
  title: 'There is no such tool',
  description: 'No tool has this name. `nearest` names those that are written most like it; /t lists all.',
};

export const toolFailed: ProblemType = {
  slug: 'tool-failed',
  status: 502,
  title: 'The tool could not do its work',
  description:
    'What stands behind the tool, a service of ours or the target that was named, misbehaved. Nothing was charged for the call itself. Trying again may help.',
};

export const toolLimit: ProblemType = {
  slug: 'tool-limit',
  status: 422,
  title: 'The call needs more than a call may use',
  description:
    'The work ran out of the time, memory or size that one call may use, and was ended. Nothing was charged for the call itself. Send less at once.',
};

export const unprocessable: ProblemType = {
  slug: 'unprocessable',
  status: 422,
  title: 'This input cannot be worked on',
  description:
    'The request is well-formed, but what it holds or points to cannot be worked on, such as a broken PDF or a diagram with a fault in line 3. The detail says what is wrong with it. Nothing was charged.',
};

export const noArtifact: ProblemType = {
  slug: 'no-artifact',
  status: 422,
  title: 'There is no file to answer with',
  description:
    '`raw=1` answers with the bytes of the file that a tool has made. This tool makes none, or made none in this call. Leave `raw` out. Nothing was charged.',
};

export const toolBusy: ProblemType = {
  slug: 'tool-busy',
  status: 503,
  title: 'All places for tools are taken',
  description:
    'This replica runs as many tools at once as it may. Nothing was done and nothing was charged. Try again after the seconds in Retry-After.',
};

export const tooManyCalls: ProblemType = {
  slug: 'too-many-calls',
  status: 429,
  title: 'Too many of your calls at once',
  description:
    'One caller may have so many calls of tools under way at once. Wait for one of them to end, or try again after the seconds in Retry-After.',
};

export const toolProblems: readonly ProblemType[] = [
  unknownTool,
  serviceOff,
  ledgerUnconfigured,
  toolFailed,
  toolLimit,
  unprocessable,
  noArtifact,
  toolBusy,
  tooManyCalls,
  unknownFile,
  ...fetchProblems,
  ...jobProblems,
];
