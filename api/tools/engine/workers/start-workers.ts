// The workers of an API: in pods of their own where there are some, else processes that it starts itself.
import { createWorkers } from './pool.ts';
import { remoteWorkers } from './remote/remote-workers.ts';
import type { Workers } from './workers.ts';

export function startWorkers({ workersUrl }: { readonly workersUrl: string | undefined }): Workers {
  return workersUrl === undefined ? createWorkers() : remoteWorkers(workersUrl);
}
