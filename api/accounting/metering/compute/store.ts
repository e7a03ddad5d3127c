// Counts samples of what the containers of apps used. Sent twice, a sample counts once.
import { z } from 'zod';
import type { ComputeSample } from '../../../../crds/compute-report.ts';
import type { Database, Statement } from '../../../billing/index.ts';

const counts = z.object({
  counted: z.number(),
  ignored: z.number(),
  refused: z.number(),
  cpu_seconds: z.coerce.number(),
  memory_byte_seconds: z.coerce.number(),
});
/** Samples by what became of them, and the seconds of CPU and byte-seconds of memory that they added. */
export type ComputeCounts = z.output<typeof counts>;

export const addCompute: Statement<ComputeCounts> = {
  name: 'metering-add-compute',
  text: 'select counted, ignored, refused, cpu_seconds::text, memory_byte_seconds::text from metering.add_compute($1::jsonb, $2)',
  row: counts,
};

export const forgetContainers: Statement<{ count: number }> = {
  name: 'metering-forget-containers',
  text: 'select metering.forget_containers() as count',
  row: z.object({ count: z.number() }),
};

/** Once it returns, the samples are counted. @throws the driver's error; then they may be sent again */
export async function addSamples(
  database: Database,
  samples: readonly ComputeSample[],
  now: Date | null = null,
): Promise<ComputeCounts> {
  const [row] = await database.replay(addCompute, [JSON.stringify(samples), now]);
  if (row === undefined) throw new Error('the database returned no row');
  return row;
}
