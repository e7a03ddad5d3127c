// One release of an app that has served, as its status keeps it: a rollback chooses among these.
import { z } from 'zod';
import { rejection } from './rejection.ts';
import { timestamp } from './values.ts';

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
    .describe('Hash of the pod template that last started well beside the release that it was to replace.'),
  activated: z
    .boolean()
    .optional()
    .describe('true: reached through the activator, which holds requests while a new release replaces the old one.'),
};
