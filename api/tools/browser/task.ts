// The tasks of the browser's worker, and the worker itself as those who have one give it.
import type { WorkerTask } from '../engine/workers/workers.ts';

export type BrowserTask =
  | {
      readonly kind: 'mermaid';
      readonly source: string;
      readonly layout: string | undefined;
      readonly format: 'svg' | 'png';
      readonly scale: number;
    }
  /** A clean SVG, which becomes a PNG. */
  | { readonly kind: 'svg'; readonly svg: Uint8Array; readonly scale: number };

/** A browser takes a second to start, so its process is kept. */
export function browserTask(input: BrowserTask): WorkerTask {
  return {
    module: new URL('worker.ts', import.meta.url),
    input,
    memoryMb: 512,
    timeoutMs: 20_000,
    startsProgram: true,
    warm: true,
  };
}
