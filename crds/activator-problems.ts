// The kinds of problem that the activator answers with, at the address of an app. The API describes them.
import type { ProblemType } from '../lib/problem.ts';

export const activatorProblems = {
  unknownApp: {
    slug: 'no-app-here',
    status: 404,
    title: 'No app here',
    description: 'No app has this host name. Check the address; the list of apps has the right one.',
  },
  appStopped: {
    slug: 'app-stopped',
    status: 503,
    title: 'App stopped',
    description: 'The app does not run, by the will of the operator of this installation. Asking again does not help.',
  },
  appNotStarting: {
    slug: 'app-not-starting',
    status: 503,
    title: 'App does not start',
    description:
      'The app was woken, or restarted, and does not come up. `detail` says why and what its author can do; it is tried again by itself.',
  },
  appWaking: {
    slug: 'app-waking',
    status: 503,
    title: 'App is waking',
    description:
      'The app was asleep and is on its way, and takes longer than the request could wait. Ask again after `Retry-After` seconds, which is what its wakes take.',
  },
  tooManyHeld: {
    slug: 'too-many-waiting',
    status: 429,
    title: 'Too many waiting requests',
    description:
      'As many requests of this client as may be held wait for apps to wake. They are answered once the apps serve; ask again after `Retry-After` seconds.',
  },
  appBroken: {
    slug: 'app-broke-off',
    status: 502,
    title: 'App broke off',
    description: 'The app ended the connection before it answered. Ask again if the request may be made twice.',
  },
} as const satisfies Record<string, ProblemType>;
