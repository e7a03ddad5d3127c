// What the operator reports to the API of what the containers of apps use, as their kubelets counted it.
import { z } from 'zod';

/** One look at one container. */
export const computeSample = z.strictObject({
  /** Another one for each start of a container, so that its counter never goes back. */
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

/** Samples in a report. */
export const samplesAtOnce = 5_000;

/** Body of POST /compute. */
export const computeReport = z.strictObject({ samples: z.array(computeSample).max(samplesAtOnce) });
export type ComputeReport = z.output<typeof computeReport>;
