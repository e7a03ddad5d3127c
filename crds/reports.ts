// Defines what processes report to each other about apps: the problems that the activator returns, its reports to the
// operator, and the operator's CPU and memory samples for the API.
import { z } from 'zod';
import type { ProblemType } from '../lib/problem.ts';

/** The problems that the activator returns at the address of an app. The API publishes their pages. */
export const activatorProblems = {
  unknownApp: {
    slug: 'no-app-here',
    status: 404,
    title: 'No app here',
    description: 'No app has this host name. Check the address against the list of apps.',
  },
  appStopped: {
    slug: 'app-stopped',
    status: 503,
    title: 'App stopped',
    description: 'The operator of this installation has stopped the app. Retrying does not help.',
  },
  appNotStarting: {
    slug: 'app-not-starting',
    status: 503,
    title: 'App does not start',
    description:
      'The app was woken or restarted, and does not start. `detail` explains why and what its author can do. The platform retries automatically.',
  },
  appWaking: {
    slug: 'app-waking',
    status: 503,
    title: 'App is waking',
    description:
      'The app was asleep and is starting, which takes longer than the request could wait. Try again after `Retry-After` seconds, the usual time of a wake.',
  },
  tooManyHeld: {
    slug: 'too-many-waiting',
    status: 429,
    title: 'Too many waiting requests',
    description:
      "The maximum number of this client's requests is waiting for apps to wake. They are answered once the apps respond. Try again after `Retry-After` seconds.",
  },
  appBroken: {
    slug: 'app-broke-off',
    status: 502,
    title: 'App broke off',
    description: 'The app closed the connection before it responded. Retry if the request may safely be sent twice.',
  },
  accessRequired: {
    slug: 'access-required',
    status: 401,
    title: 'The app is protected',
    description:
      'The author of the app decides who may visit it. Send an access key of the author as `Authorization: Bearer mvk-…`, or as `Moorage-Access: mvk-…` if the app itself uses Authorization. In a browser, open the address of the app and enter the password or a key. A key in the URL is not accepted.',
  },
  wrongAccessKey: {
    slug: 'wrong-access-key',
    status: 403,
    title: 'Wrong access key',
    description:
      'The access key in the request does not open this app: it belongs to another app, or its author has revoked it. Ask the author for a new one.',
  },
} as const satisfies Record<string, ProblemType>;

/** What one activator has seen of an app. Times are durations, since clocks differ. Only the operator reaches the port. */
export const appReport = z.object({
  /** Requests and connections in progress, held ones included. */
  inFlight: z.int(),
  /** Milliseconds since the end of the last use; absent: none since it started. */
  idleMs: z.number().optional(),
  /** Wakes that it measured. */
  wakes: z.array(z.object({ number: z.int(), ms: z.number() })),
});
export type AppReport = z.infer<typeof appReport>;

/** Response of GET /activity, by name of the app. */
export const activityReport = z.object({ apps: z.record(z.string(), appReport) });
export type ActivityReport = z.infer<typeof activityReport>;

/** Body of POST /close: hold requests for an app if it was unused for `idleMs`, until its rest `number` is seen. */
export const closeRequest = z.object({ app: z.string(), number: z.int(), idleMs: z.number() });
export type CloseRequest = z.infer<typeof closeRequest>;
export const closeAnswer = z.object({ closed: z.boolean() });

/** Body of POST /open: stop holding requests for an app. */
export const openRequest = z.object({ app: z.string() });

/** One sample of one container, as its kubelet measured it. */
export const computeSample = z.strictObject({
  /** A new ID for each start of a container, so that its counter never goes back. */
  container: z.string().min(1).max(200),
  /** Name of the HostedApp. */
  app: z.string().min(1).max(63),
  /** When the container started, and when the kubelet measured it. */
  started_at: z.iso.datetime(),
  at: z.iso.datetime(),
  /** Microseconds of CPU since the container started: exact in JSON for 285 years of one core. */
  cpu_us: z.int().nonnegative(),
  /** Bytes of memory that cannot be reclaimed (working set). */
  memory_bytes: z.int().nonnegative(),
});
export type ComputeSample = z.output<typeof computeSample>;

/** Maximum number of samples in a report. */
export const samplesAtOnce = 5_000;

/** Body of POST /compute. */
export const computeReport = z.strictObject({ samples: z.array(computeSample).max(samplesAtOnce) });
export type ComputeReport = z.output<typeof computeReport>;
