// The ways in which tasks reach worker processes: in the process that asks, and in a workers' pod over HTTP. What a pool
// promises holds for both.
import { pathToFileURL } from 'node:url';
import { createWorkers, type PoolOptions } from '../../../api/tools/engine/workers/pool.ts';
import { createRemoteWorkers } from '../../../api/tools/engine/workers/remote/remote-workers.ts';
import { startWorkerServer } from '../../../api/tools/engine/workers/remote/worker-server.ts';
import { programFolder } from '../../../api/tools/engine/workers/worker-process.ts';
import type { Workers } from '../../../api/tools/engine/workers/workers.ts';
import { silent } from '../api/sample.ts';

export type Transport = (options?: PoolOptions) => Promise<Workers>;

async function overHttp(options?: PoolOptions): Promise<Workers> {
  const pool = createWorkers(options);
  const server = await startWorkerServer({
    workers: pool,
    modules: pathToFileURL(`${programFolder}/`),
    log: silent,
    port: 0,
    host: '127.0.0.1',
  });
  const client = createRemoteWorkers(`http://127.0.0.1:${server.port}`);
  return {
    run: (task, call) => client.run(task, call),
    async close() {
      await client.close();
      await server.drain();
      await pool.close();
    },
  };
}

export const transports: readonly (readonly [name: string, transport: Transport])[] = [
  ['in the same process', (options) => Promise.resolve(createWorkers(options))],
  ["in a workers' pod", overHttp],
];
