// The chart's values for the review of repositories.
import { z } from 'zod';

const spdxIds = z.array(z.string().regex(/^[A-Za-z0-9.+-]{1,60}$/)).default([]);
const licenseVerdict = z.enum(['reject', 'ask', 'warn']);

export const review = z.strictObject({
  licenses: z
    .strictObject({
      allow: spdxIds.describe(
        'SPDX identifiers of licences that pass beside those that the OSI or the FSF approved, such as Elastic-2.0.',
      ),
      deny: spdxIds.describe('SPDX identifiers of licences that are treated as restricted, such as AGPL-3.0-only.'),
      custom: licenseVerdict
        .default('warn')
        .describe(
          'Verdict on a licence with terms of its own, such as a duty to keep a brand: reject, ask (the app waits until spec.review.waivers of its HostedApp waives the finding) or warn.',
        ),
      restricted: licenseVerdict
        .default('ask')
        .describe('Verdict on a licence that limits commercial or hosted use, or gives no rights.'),
      missing: licenseVerdict.default('reject').describe('Verdict on a repository without a licence.'),
    })
    .prefault({})
    .describe('What the review makes of licences.'),
});
