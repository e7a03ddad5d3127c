// Runs the demo router as a process of its own, for the local cluster. Wiring only.
import { z } from 'zod';
import { count, readConfig } from '../lib/config.ts';
import { readCatalog } from './models/catalog.ts';
import { readModelSettings } from './models/config.ts';
import { startDemoRouter } from './models/router/demo-router.ts';

const { MOORAGE_DEMO_ROUTER_PORT: port } = readConfig(
  z.object({ MOORAGE_DEMO_ROUTER_PORT: count.max(65_535).default(8080) }),
);
const router = await startDemoRouter(readCatalog(readModelSettings().modelsFile), { port, host: '::' });
process.stdout.write(`the demo router listens on port ${port}; it asks no model\n`);

for (const signal of ['SIGTERM', 'SIGINT'] as const)
  process.once(signal, () => {
    void router.close();
  });
