// The fields of a HostedApp that say which requests its author gives away.
import { z } from 'zod';
import { matches, withRules } from './rules.ts';

const freeRequest = withRules(
  z.strictObject({
    path: withRules(
      z.string().max(200),
      matches(String.raw`^/[\x21-\x7e]*$`, 'path must start with / and have no space, like /healthz or /static/**'),
    )
      .optional()
      .describe('Path without its query. `*` matches within a segment, `**` matches anything. If not set, any path.'),
    statuses: z
      .array(withRules(z.string().max(3), matches('^[1-5]([0-9][0-9]|xx)$', 'a status must be like "404" or "4xx"')))
      .max(20)
      .optional()
      .describe('Statuses of the response, such as "404" or "4xx". If not set, any status.'),
  }),
  {
    cel: 'has(self.path) || (has(self.statuses) && self.statuses.size() > 0)',
    holds: ({ path, statuses }) => path !== undefined || (statuses?.length ?? 0) > 0,
    message: 'set path, statuses or both',
  },
);

export const metering = z.strictObject({
  free: z
    .array(freeRequest)
    .max(20)
    .default([])
    .describe('Requests that are not counted as uses: those that match any of these.'),
});
export type FreeRequests = z.output<typeof metering>['free'];
