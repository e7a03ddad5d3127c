// The kinds of problems that calls of hosted apps answer with, beside those of tools.
import type { ProblemType } from '../../lib/problem.ts';

export const unknownApp: ProblemType = {
  slug: 'unknown-app',
  status: 404,
  title: 'There is no such app',
  description:
    'No hosted app has this slug. `nearest` names those that are written most like it; list_apps and /agent-capabilities.json list all that are live.',
};

export const appNotLive: ProblemType = {
  slug: 'app-not-live',
  status: 409,
  title: 'The app does not answer calls now',
  description:
    'The app is hosted here, but is not live: `status` says whether it is on its way (in_pipeline) or was rejected or switched off (rejected), and `status_url` why. Nothing was sent and nothing was charged.',
};

export const appUnreachable: ProblemType = {
  slug: 'app-unreachable',
  status: 502,
  title: 'The app did not answer',
  description:
    'The app is live, but the connection to it failed, or what it sent is no answer in HTTP. Nothing was charged. Trying again may help; a call that changes something may have reached the app.',
};

export const appTimeout: ProblemType = {
  slug: 'app-timeout',
  status: 504,
  title: 'The app took too long',
  description:
    'The app did not answer within the time of a call, which `limit_ms` tells. Nothing was charged. What the app began because of the call may go on.',
};

export const appAnswerTooLarge: ProblemType = {
  slug: 'app-answer-too-large',
  status: 502,
  title: 'The answer of the app is too large',
  description:
    'The app answered with more bytes than this way of calling takes, which `limit_bytes` tells. Nothing was charged. Ask it for less, or call it at /api/projects/{slug}/call/{path}, where answers are streamed and may be longer.',
};

export const appProblems: readonly ProblemType[] = [
  unknownApp,
  appNotLive,
  appUnreachable,
  appTimeout,
  appAnswerTooLarge,
];
