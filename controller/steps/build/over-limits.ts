// Separates a build that asked for more memory or disk than it may have from a fault of the platform.
import { authorLimits } from '../../../crds/app-manifest.ts';
import type { Pod } from '../../objects/kinds.ts';
import type { PipelineContainer } from '../../../crds/names.ts';
import { tooLargeSource } from '../../pipeline/contract.ts';
import type { Rejection } from '../../reconcile/outcome.ts';

/** The limit that a pod ran into, if any did. */
export function overLimits(pods: readonly Pod[]): { stage: 'Review' | 'Build'; rejection: Rejection } | undefined {
  if (pods.some((pod) => isOutOfMemory(pod, 'clone'))) return { stage: 'Review', rejection: tooLargeSource };
  const rejection = overBuild(pods);
  return rejection === undefined ? undefined : { stage: 'Build', rejection };
}

function overBuild(pods: readonly Pod[]): Rejection | undefined {
  if (pods.some((pod) => isOutOfMemory(pod, 'build'))) {
    return {
      rule: 'build/out-of-memory',
      message: 'The build exceeded its memory limit (build.resources.memory) and was killed.',
      fix: `Increase build.resources.memory in moorage.yaml (maximum ${authorLimits.build.memory}), or reduce what the build needs (fewer parallel jobs, prebuilt packages).`,
    };
  }
  const evicted = pods.find(isOutOfDisk);
  if (evicted === undefined) return undefined;
  return {
    rule: 'build/out-of-disk',
    message: `The build exceeded its disk limit (build.resources.disk) and was stopped (${(evicted.status?.message ?? '').slice(0, 300)}).`,
    fix: `Increase build.resources.disk in moorage.yaml (maximum ${authorLimits.build.disk}), or make the image smaller (a slimmer base image, CPU-only wheels, no build leftovers).`,
  };
}

function isOutOfMemory(pod: Pod, container: PipelineContainer): boolean {
  const statuses = [...(pod.status?.initContainerStatuses ?? []), ...(pod.status?.containerStatuses ?? [])];
  return statuses.some((status) => status.name === container && status.state?.terminated?.reason === 'OOMKilled');
}

/** Evicted for its own usage; an eviction for the node's sake says that "the node was low on resource" instead. */
export function isOutOfDisk(pod: Pod): boolean {
  return (
    pod.status?.reason === 'Evicted' &&
    /exceed/i.test(pod.status.message ?? '') &&
    !/node was low/i.test(pod.status.message ?? '')
  );
}
