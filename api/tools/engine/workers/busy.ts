// The refusal of a task for which there is no worker now.
import { Problem } from '../../../../lib/problem.ts';
import { toolBusy } from '../../problems.ts';

export function busy(why: string, options: { readonly cause?: unknown } = {}): Problem {
  return new Problem(toolBusy, why, { headers: { 'retry-after': '5' }, ...options });
}
