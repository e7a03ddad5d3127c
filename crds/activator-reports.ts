// What an activator answers to the operator, who alone reaches the port of these answers.
import { z } from 'zod';

/** What one activator has seen of an app. Times are durations, since clocks differ. */
export const appReport = z.object({
  /** Requests and connections in progress, held ones included. */
  inFlight: z.int(),
  /** Milliseconds since the end of the last use; absent: none since it started. */
  idleMs: z.number().optional(),
  /** Wakes that it measured. */
  wakes: z.array(z.object({ number: z.int(), ms: z.number() })),
});
export type AppReport = z.infer<typeof appReport>;

/** Answer of GET /activity: by the name of the app. */
export const activityReport = z.object({ apps: z.record(z.string(), appReport) });
export type ActivityReport = z.infer<typeof activityReport>;

/** Body of POST /close: hold what comes for an app, if it was unused for `idleMs`, until its rest `number` is seen. */
export const closeRequest = z.object({ app: z.string(), number: z.int(), idleMs: z.number() });
export type CloseRequest = z.infer<typeof closeRequest>;
export const closeAnswer = z.object({ closed: z.boolean() });

/** Body of POST /open: hold it no longer. */
export const openRequest = z.object({ app: z.string() });
