// Draws a chart in a worker: for the tool make_chart, and for charts on slides.
import type { Workers, WorkerCall } from '../../engine/workers/workers.ts';
import type { PictureOptions } from '../../svg/draw.ts';
import { makePicture } from '../../svg/make-picture.ts';
import type { Picture } from '../../svg/picture.ts';
import { plainIn, plainSpec } from './plain-chart.ts';

const module = new URL('worker.ts', import.meta.url);

export interface GivenChart {
  readonly spec: Readonly<Record<string, unknown>>;
  /** Whether it is the plain form; otherwise it may still be. */
  readonly isPlain?: boolean;
}

/** @throws Problem (invalid-request, unprocessable, tool-limit) */
export async function drawChart(
  workers: Workers,
  { spec: given, isPlain = false }: GivenChart,
  options: PictureOptions,
  call: WorkerCall,
): Promise<{ made: Picture; language: 'vega' | 'vega-lite' }> {
  const plain = isPlain ? given : plainIn(given);
  const spec = plain === undefined ? given : plainSpec(plain);
  const { $schema } = spec;
  const language = typeof $schema === 'string' && /\/schema\/vega\/v\d/.test($schema) ? 'vega' : 'vega-lite';
  const task = { module, input: { spec, language, ...options }, timeoutMs: 10_000 };
  return { made: await makePicture(workers, task, call, options), language };
}
