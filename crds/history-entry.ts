// One past pipeline of an app, as its status keeps it.
import { z } from 'zod';
import { timestamp } from './values.ts';

export const historyEntry = z.object({
  number: z.int().describe('Number of the pipeline; increases with each pipeline of the app.'),
  job: z.string().describe('Name of the pipeline Job.'),
  commit: z.string().describe('Commit that was built.'),
  reason: z.string().describe('Why it was built: what changed since the previous pipeline.'),
  result: z
    .enum(['Succeeded', 'Rejected', 'Faulted', 'Superseded'])
    .describe('Result of the pipeline. Faulted means that the platform failed and the pipeline is retried.'),
  message: z.string().max(1_000).optional().describe('Short explanation of the result.'),
  release: z
    .enum(['Pending', 'Released', 'Failed', 'Skipped'])
    .optional()
    .describe(
      'What became of the image that was built. Failed: it does not start, or crashes again and again. Skipped: a newer one was built before it was ready.',
    ),
  releaseMessage: z.string().max(1_000).optional().describe('Why the release failed.'),
  doubtful: z
    .boolean()
    .optional()
    .describe('The fault could have been staged by the app; a second one of this commit is not believed.'),
  image: z.string().optional().describe('Image by digest, if one was built.'),
  startedAt: timestamp.optional(),
  finishedAt: timestamp.optional(),
});
