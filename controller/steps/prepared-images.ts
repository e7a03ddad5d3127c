// Judges the images that an installation makes when an app first needs them, by what its image maker reports.
//
// The operator and the maker share two fields of the HostedApp: the operator lists what the app needs in
// status.neededImages, and the maker writes the state of each into the annotation moorage.dev/prepared-images. An
// installation whose registry has every image needs no maker.
import { z } from 'zod';
import { annotations } from '../../crds/names.ts';
import { imageWait, type NeededImage } from '../../crds/status.ts';
import type { Rejection } from '../reconcile/outcome.ts';

/** What the maker reports about one image. */
export const preparedImage = z.object({
  image: z.string(),
  state: z.enum(['Preparing', 'Ready', 'Failed']),
  /** Of Preparing, what it takes and what is being done; of Failed, why. */
  message: z.string().max(300).optional(),
  /** RFC 3339. */
  at: z.string(),
  /** Of Ready: sha256:… of the image under that name. */
  digest: z
    .string()
    .regex(/^sha256:[0-9a-f]{64}$/)
    .optional(),
});
export type PreparedImage = z.infer<typeof preparedImage>;

interface AppMarks {
  readonly metadata: { readonly annotations?: Readonly<Record<string, string>> | undefined };
}

/** Reads the annotation. One that cannot be read says nothing. */
export function readPreparedImages({ metadata }: AppMarks): PreparedImage[] {
  try {
    const parsed = z
      .array(preparedImage)
      .max(50)
      .safeParse(JSON.parse(metadata.annotations?.[annotations.preparedImages] ?? '[]'));
    return parsed.success ? parsed.data : [];
  } catch {
    return [];
  }
}

export type Preparation =
  | { readonly kind: 'ready' }
  | { readonly kind: 'waiting'; readonly message: string }
  | { readonly kind: 'failed'; readonly rejection: Rejection };

/** Judges what an app needs. A report from before the need says nothing about it. */
export function judgePreparation(app: AppMarks, needed: readonly NeededImage[]): Preparation {
  const reports = readPreparedImages(app);
  const states = needed.map((need) => ({ need, report: findReport(reports, need) }));
  const failed = states.find(({ report }) => report?.state === 'Failed');
  if (failed !== undefined)
    return { kind: 'failed', rejection: explainFailure(failed.need.image, failed.report?.message) };
  const open = states.find(({ report }) => report?.state !== 'Ready');
  if (open === undefined) return { kind: 'ready' };
  const detail = open.report?.message;
  return {
    kind: 'waiting',
    message: `${imageWait}${open.need.image}, which this installation makes on first use${detail === undefined ? '' : `: ${detail}`}.`,
  };
}

/** Returns the digest of an image that is ready; undefined while it is not. */
export function findPreparedDigest(app: AppMarks, need: NeededImage): string | undefined {
  const report = findReport(readPreparedImages(app), need);
  return report?.state === 'Ready' ? report.digest : undefined;
}

/** Returns the name of an image that was made for the app. */
export function findPreparedImage(app: AppMarks): string | undefined {
  return readPreparedImages(app).find(({ state }) => state === 'Ready')?.image;
}

function findReport(reports: readonly PreparedImage[], { image, since }: NeededImage): PreparedImage | undefined {
  return reports.find((report) => report.image === image && Date.parse(report.at) >= Date.parse(since));
}

function explainFailure(image: string, why = 'no reason was given'): Rejection {
  return {
    rule: 'platform/image',
    message: `This installation could not make the image ${image}: ${why.replace(/[^.!?…]$/, '$&.')}`,
    fix: 'Your app did not cause this. Submit it again to try again, or use a base image that this installation has.',
  };
}
