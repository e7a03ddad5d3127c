// Changes what a running pod of an app requests, in place and without a restart.
import { pods as podResource, type Pod } from '../objects/kinds.ts';
import { isApiStatus, type Client } from '../../lib/kubernetes/index.ts';

/** Quantities that a container requests. */
export interface PodRequests {
  readonly cpu: string;
  readonly memory: string;
}

/** False when the pod is gone or was changed meanwhile. @throws ApiError from a cluster that cannot */
export async function resizePod(
  client: Client,
  pod: Pod,
  requests: PodRequests,
  signal: AbortSignal,
): Promise<boolean> {
  const body = {
    metadata: { uid: pod.metadata.uid },
    spec: { containers: [{ name: 'app', resources: { requests } }] },
  };
  const type = 'application/strategic-merge-patch+json';
  try {
    await client.patch(podResource, pod.metadata, body, { type, subresource: 'resize', signal });
    return true;
  } catch (error) {
    if (isApiStatus(error, 404) || isApiStatus(error, 409)) return false;
    throw error;
  }
}
