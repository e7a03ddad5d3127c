// kind, where a Docker engine answers.
import type { Arguments } from '../arguments.ts';
import type { Target } from '../targets.ts';

export function kindCluster(_args: Arguments): Target {
  throw new Error('kind');
}
