// What the status keeps of the past of an app: its pipelines, the releases that have served, among which a rollback chooses,
// and why a commit is not served.
import { z } from 'zod';
import { timestamp } from './values.ts';

/** Why a commit is not served. */
export const rejection = z.object({
  rule: z.string(),
  file: z.string().optional(),
  line: z.int().optional(),
  message: z.string(),
  fix: z.string(),
  log: z.string().max(8_000).optional().describe('Last lines of the log, if there is one.'),
});

/** One past pipeline. */
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

/** Releases that the status keeps; their images stay in the registry. */
export const keptReleases = 4;

/** An image and the settings that it runs by. */
export const release = z.object({
  image: z.string().describe('Image by digest.'),
  commit: z.string(),
  port: z.int(),
  settings: z.string().max(4_000).optional().describe('Contents of moorage.yaml of that commit, as JSON.'),
  attempt: z.string().max(100).optional().describe('The rebuild that produced it, if one was requested.'),
});

const releaseRecord = z.object({
  ...release.shape,
  readyAt: timestamp.describe('When it was first ready.'),
  servingSince: timestamp.optional().describe('Start of its present time of service. Not set while it does not serve.'),
  servedSeconds: z.int().describe('Seconds that it served since its last crash, before servingSince.'),
  bestSeconds: z.int().describe('Longest time that it served before a crash, in seconds.'),
  crashedAt: timestamp.optional().describe('When it last crashed.'),
  goodAt: timestamp.optional().describe('When it had served long enough without a crash to be good.'),
});
export type ReleaseRecord = z.infer<typeof releaseRecord>;

/** Fields of the status about releases and how one replaces another. */
export const rollout = {
  releases: z
    .array(releaseRecord)
    .max(keptReleases)
    .optional()
    .describe('Releases that have served, newest first: those that a rollback can choose from.'),
  crashLoop: z
    .object({
      template: z.string().max(100).describe('Hash of the pod template that crashes.'),
      rejection,
    })
    .optional()
    .describe('Set while the release that runs crashes again and again, until it has served long enough without that.'),
  tried: z
    .string()
    .max(100)
    .optional()
    .describe('Hash of the pod template that last started well while the release that it was to replace served.'),
  activated: z
    .boolean()
    .optional()
    .describe('true: reached through the activator, which holds requests while a new release replaces the old one.'),
};
