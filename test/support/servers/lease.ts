// Servers that the test files of one run share: the process of the run starts them when they are first wanted
// (shared-servers.ts), and a file leases one over a socket. The lease ends with the file, however that ends.
import { once } from 'node:events';
import { createConnection } from 'node:net';
import { createInterface } from 'node:readline';
import { z } from 'zod';

/** Names the socket in the environment of the processes of a run. Without it, nothing is shared. */
export const socketVariable = 'SHARED_SERVERS';

export const requests = z.discriminatedUnion('want', [
  /** `layer`: preferably one on which an earlier file has left what is called so. */
  z.object({ want: z.literal('api-server'), layer: z.string().optional() }),
  /** The objects on the API server of this connection stay when it is given back, as a layer of this name. */
  z.object({ want: z.literal('keep'), layer: z.string(), note: z.string() }),
  /** Of the API server of this connection. */
  z.object({ want: z.literal('restart') }),
  z.object({ want: z.literal('postgres') }),
  /** A folder that labs of pipelines start from. */
  z.object({ want: z.literal('pipeline-template') }),
  /** The bundle of the pipeline's program, as in its image. */
  z.object({ want: z.literal('pipeline-program') }),
  /** Answered with the id of a process, which is killed when the lease ends. */
  z.object({
    want: z.literal('litellm'),
    start: z.object({
      folder: z.string(),
      arguments: z.array(z.string()).readonly(),
      environment: z.record(z.string(), z.string()),
    }),
  }),
]);
export type LeaseRequest = z.output<typeof requests>;

export const apiServerLease = z.object({
  kubeconfig: z.string(),
  server: z.string(),
  /** Folder that no lease before had, for what kubectl and helm keep about the server. */
  cache: z.string(),
  /** What the file that left the layer noted about it; null where the API server is empty. */
  note: z.string().nullable(),
});
export type ApiServerLease = z.output<typeof apiServerLease>;

export const postgresLease = z.object({
  /** URL of the database `postgres` for a superuser. */
  adminUrl: z.string(),
  /** A database with the newest schema, for copies. */
  template: z.string(),
});
export type PostgresLease = z.output<typeof postgresLease>;

const answers = z.union([z.object({ answer: z.unknown() }), z.object({ error: z.string() })]);

export interface Lease {
  request<T>(request: LeaseRequest, answer: z.ZodType<T>): Promise<T>;
  end(): void;
}

/** Opens a lease. @returns undefined outside of a run that shares servers */
export async function openLease(): Promise<Lease | undefined> {
  const path = process.env[socketVariable];
  if (path === undefined) return undefined;
  const socket = createConnection(path);
  await once(socket, 'connect');
  // A lease alone does not keep a file from ending.
  socket.unref();
  const lines = createInterface({ input: socket })[Symbol.asyncIterator]();
  return {
    async request(request, answer) {
      socket.ref();
      socket.write(`${JSON.stringify(request)}\n`);
      const line = await lines.next();
      socket.unref();
      if (line.done === true) throw new Error(`the process of the run ended before it answered ${request.want}`);
      const read = answers.parse(JSON.parse(line.value));
      if ('error' in read) throw new Error(`${request.want}: ${read.error}`);
      return answer.parse(read.answer);
    },
    end() {
      socket.destroy();
    },
  };
}
