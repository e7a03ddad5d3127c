// The problem types of calls of hosted apps, beside those of tools.
import type { ProblemType } from '../../lib/problem.ts';

export const unknownApp: ProblemType = {
  slug: 'unknown-app',
  status: 404,
  title: 'Unknown app',
  description:
    'No hosted app has this slug. `nearest` lists similar slugs; list_apps and /agent-capabilities.json list all live apps.',
};

export const appNotLive: ProblemType = {
  slug: 'app-not-live',
  status: 409,
  title: 'The app is not live',
  description:
    'The app is not live. `status` is in_pipeline while it is being built or deployed, and rejected if it was rejected or suspended; `status_url` has the reason. Nothing was sent to the app and nothing was charged.',
};

export const appUnreachable: ProblemType = {
  slug: 'app-unreachable',
  status: 502,
  title: 'The app could not be reached',
  description:
    'The connection to the app failed, or its response was not valid HTTP. Nothing was charged. Trying again may help, but note that the request may have reached the app.',
};

export const appTimeout: ProblemType = {
  slug: 'app-timeout',
  status: 504,
  title: 'The app timed out',
  description:
    'The app did not respond within the time limit of a call, `limit_ms`. Nothing was charged. The app may still be processing the request.',
};

export const appAnswerTooLarge: ProblemType = {
  slug: 'app-answer-too-large',
  status: 502,
  title: 'The response of the app is too large',
  description:
    'The response of the app is larger than `limit_bytes`. Nothing was charged. Request less data, or call the app at /api/projects/{slug}/call/{path}, which streams larger responses.',
};

export const appProblems: readonly ProblemType[] = [
  unknownApp,
  appNotLive,
  appUnreachable,
  appTimeout,
  appAnswerTooLarge,
];
