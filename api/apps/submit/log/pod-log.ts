// Follows the log of one container of a pipeline pod.
import { ApiError, exchange, type Connection } from '../../../../lib/kubernetes/index.ts';

/** The result of opening a log. `waiting`: the container has not started; `gone`: the pod no longer exists. */
export type OpenedLog =
  { readonly state: 'open'; readonly bytes: AsyncIterable<Uint8Array> } | { readonly state: 'waiting' | 'gone' };

/** Opens the log of a container from its beginning. It ends when the container does, or when the signal is aborted. */
export type OpenLog = (pod: string, container: string, signal: AbortSignal) => Promise<OpenedLog>;

/**
 * Reads logs of pods in one namespace; needs `get` on pods/log and nothing else. @throws ApiError when it is refused
 */
export function podLogs(connection: Connection, namespace: string): OpenLog {
  return async (pod, container, signal) => {
    const query = new URLSearchParams({ container, follow: 'true' });
    const path = `/api/v1/namespaces/${namespace}/pods/${encodeURIComponent(pod)}/log?${query.toString()}`;
    try {
      const answer = await exchange(connection, {
        method: 'GET',
        path,
        headers: { accept: '*/*', 'user-agent': 'moorage-api' },
        body: undefined,
        signal,
      });
      // The API server has no content to give before the pod is on a node.
      if (answer.statusCode === 204) {
        answer.resume();
        return { state: 'waiting' };
      }
      return { state: 'open', bytes: answer as AsyncIterable<Uint8Array> };
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      if (error.status === 404) return { state: 'gone' };
      // 400 is the kubelet's "waiting to start"; no response and 5xx pass as well, and nothing is lost by trying again.
      if (error.status === 400 || error.status === 0 || error.status === 429 || error.status >= 500)
        return { state: 'waiting' };
      throw error;
    }
  };
}
