// What a review finds in a repository, and what the operator of an installation waives of it.
import { z } from 'zod';
import { matches, withRules } from './rules.ts';

/** A problem found in a repository, and how the author can fix it. */
export const finding = z.object({
  rule: z.string().max(60).describe('ID of the rule, such as secrets/aws-access-token.'),
  severity: z.enum(['error', 'warning']).describe('An error rejects the commit; a warning does not.'),
  file: z.string().max(300).optional().describe('Path of the file in the repository.'),
  line: z.int().optional().describe('Line number in the file, starting at 1.'),
  message: z.string().max(2_000).describe('What was found.'),
  fix: z.string().max(600).describe('What to change.'),
});

export type Finding = z.infer<typeof finding>;

const waiver = z.strictObject({
  rule: withRules(
    z.string().max(60),
    matches(
      '^((secrets|license|lfs)/[a-z0-9-]+|git/submodule)$',
      'rule must be the ID of a finding that can be waived: secrets/…, license/…, lfs/… or git/submodule',
    ),
  ).describe('ID of the rule, such as license/approval.'),
  file: z.string().min(1).max(300).optional().describe('Path of the file of the finding. If not set, any file.'),
  reason: withRules(
    z.string().max(300),
    matches(String.raw`^.*\S.*$`, 'reason must say, on one line, why the finding is waived; it is public'),
  ).describe('Why the finding is waived. It is public.'),
});
export type Waiver = z.infer<typeof waiver>;

export const review = z.strictObject({
  waivers: z
    .array(waiver)
    .max(32)
    .default([])
    .describe(
      'Findings that the operator of the installation waives for this app. A waived finding is a warning that states the reason.',
    ),
});
