// Asks the kubelet of a node, on its own port: the right to what it answers there (nodes/metrics, nodes/stats) opens
// nothing else, and the way through the API server would need one to everything that a kubelet can do.
import type { Connection } from './connection.ts';
import { exchange, readText } from './transport.ts';

export interface KubeletQuestion {
  /** Address of the node. */
  readonly address: string;
  readonly port: number;
  readonly path: string;
  /** Media type. */
  readonly accept: string;
  readonly userAgent: string;
}

/** The text of the answer. @throws ApiError when the kubelet refuses or is out of reach */
export async function askKubelet(connection: Connection, asked: KubeletQuestion, signal: AbortSignal): Promise<string> {
  const { address, port, path, accept, userAgent } = asked;
  const host = address.includes(':') ? `[${address}]` : address;
  const answer = await exchange(
    { ...connection, credentials: () => connection.credentials(), server: `https://${host}:${port}` },
    { method: 'GET', path, headers: { accept, 'user-agent': userAgent }, body: undefined, signal },
  );
  return readText(answer);
}
