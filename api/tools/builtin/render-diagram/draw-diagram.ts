// Draws a diagram in a worker: for the tool render_diagram, and for diagrams on slides.
import { browserTask } from '../../browser/task.ts';
import type { WorkerCall, Workers } from '../../engine/workers/workers.ts';
import type { PictureOptions } from '../../svg/draw.ts';
import { makePicture } from '../../svg/make-picture.ts';
import type { Picture } from '../../svg/picture.ts';
import type { Language } from './language.ts';

/**
 * D2 is 22 MB of WebAssembly of which a drawing runs little: started quickly it takes a third of the time, in half the
 * memory. It takes a second to start, so it is kept.
 */
const engines = {
  graphviz: { module: new URL('graphviz.ts', import.meta.url), memoryMb: 256 },
  d2: { module: new URL('d2.ts', import.meta.url), memoryMb: 640, quickStart: true, warm: true },
};

export interface GivenDiagram {
  readonly kind: Language;
  readonly source: string;
  readonly layout: string | undefined;
}

/** @throws Problem (unprocessable, tool-limit) */
export function drawDiagram(
  workers: Workers,
  { kind, source, layout }: GivenDiagram,
  { format, scale }: PictureOptions,
  call: WorkerCall,
): Promise<Picture> {
  const task =
    kind === 'mermaid'
      ? browserTask({ kind, source, layout, format, scale })
      : { ...engines[kind], input: { source, layout, format, scale }, timeoutMs: 15_000 };
  return makePicture(workers, task, call, { format, scale });
}
