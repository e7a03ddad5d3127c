// Where the API server is and how to prove who we are: from the pod's service account, or from a kubeconfig file.
import type { Agent } from 'node:http';

/** What one request needs. */
export interface Credentials {
  headers: Record<string, string>;
  agent: Agent;
}

/** An API server and our identity towards it. */
export interface Connection {
  /** Base URL, such as `https://10.96.0.1:443`. */
  readonly server: string;
  /** The namespace of the pod or of the kubeconfig's context. */
  readonly namespace: string | undefined;
  /** Asked before every request, so that a rotated token is seen. */
  credentials(): Promise<Credentials>;
  /** Closes idle connections. */
  close(): void;
}

/** The connection of a pod, by its service account. Throws when not run in a pod. */
export function inClusterConnection(): Connection {
  throw new Error('not implemented');
}

/** The connection that a kubeconfig file describes, in its current context or the named one. */
export async function fileConnection(path: string, context?: string): Promise<Connection> {
  return Promise.reject(new Error(`not implemented ${path} ${String(context)}`));
}

/** In a pod: its service account. Else the file named by `KUBECONFIG`, else `~/.kube/config`. */
export async function defaultConnection(): Promise<Connection> {
  return Promise.reject(new Error('not implemented'));
}
