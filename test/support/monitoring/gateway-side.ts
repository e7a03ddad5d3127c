// What stands at the gateway of the lab: a shipper that follows an access log, and an activator that wakes an app.
import { once } from 'node:events';
import { appendFileSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, get, type IncomingMessage } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { collectDefaultMetrics, Registry } from 'prom-client';
import { createActivatorMetrics } from '../../../activator/gate.ts';
import { startHealthServer } from '../../../lib/kubernetes/index.ts';
import { startActivator } from '../activator/world.ts';
import { listen } from '../free-port.ts';
import { shipperProgram } from '../metering/processes.ts';

export interface GatewaySide {
  readonly shipperPort: number;
  readonly activatorPort: number;
  /** The activator cannot be scraped any more, or again. */
  stopActivator(): Promise<void>;
  startActivator(): Promise<void>;
  /** Writes so many requests of each kind to the access log: pages, assets, failures; and a line that is no record. */
  visit(app: string, count: number): void;
  /** Wakes an app that sleeps. @throws Error when its visitor got anything but the app */
  wake(): Promise<void>;
  stop(): Promise<void>;
}

/** `receiver`: where access logs are sent. */
export async function startGatewaySide(receiver: string, token: string, shipperPort: number): Promise<GatewaySide> {
  const folder = mkdtempSync(join(tmpdir(), 'moorage-gateway-side-'));
  const [log, tokenFile] = [join(folder, 'access.log'), join(folder, 'token')];
  writeFileSync(tokenFile, token);
  writeFileSync(log, '');
  const shipper = shipperProgram({ log, receiver, tokenFile, port: shipperPort });
  shipper.start();

  const registry = new Registry();
  collectDefaultMetrics({ register: registry });
  const activator = await startActivator(undefined, (depth, ms) => {
    metrics.wakes.observe({ depth }, ms / 1_000);
  });
  const metrics = createActivatorMetrics(registry, () => ({
    held: activator.gate.heldRequests,
    open: activator.activity.inFlight,
  }));
  const serveHealth = (port: number): ReturnType<typeof startHealthServer> =>
    startHealthServer({ port, host: '127.0.0.1', registry, liveness: [], readiness: [] });
  let health = await serveHealth(0);
  const app = createServer((_request, response) => response.end('awake'));
  const appPort = await listen(app);

  let [counter, rests] = [0, 0];
  const record = (slug: string, changes: object): string =>
    JSON.stringify({
      RequestCount: (counter += 1),
      StartUTC: new Date().toISOString(),
      Duration: 2_000_000,
      DownstreamStatus: 200,
      RequestHost: `${slug}.apps.localhost`,
      RequestPath: '/',
      RequestMethod: 'GET',
      ClientHost: '203.0.113.7',
      ...changes,
    });
  return {
    shipperPort,
    activatorPort: health.port,
    stopActivator: () => health.close(),
    async startActivator() {
      health = await serveHealth(health.port);
    },
    visit(slug, count) {
      const old = new Date(Date.now() - 40 * 86_400_000).toISOString();
      const kinds = [{}, { RequestPath: '/main.js' }, { DownstreamStatus: 502 }, { StartUTC: old }];
      const lines = Array.from({ length: count }, () => kinds.map((changes) => record(slug, changes))).flat();
      appendFileSync(log, `${[...lines, 'no record'].join('\n')}\n`);
    },
    async wake() {
      rests += 1;
      const idle = { number: rests, wakeMs: undefined };
      activator.run();
      activator.show({ idle: { ...idle, state: 'Asleep' } });
      activator.onAsk = () => {
        activator.show({ idle: { ...idle, state: 'Waking' } });
        activator.run({ port: appPort });
      };
      const [answer] = (await once(
        get({ port: activator.port, host: '127.0.0.1', headers: { host: 'hello.apps.test' } }),
        'response',
      )) as [IncomingMessage];
      answer.resume();
      if (answer.statusCode !== 200) throw new Error(`the app answered ${answer.statusCode ?? 'nothing'}`);
    },
    async stop() {
      await shipper.kill();
      await activator.stop();
      await health.close();
      app.closeAllConnections();
      app.close();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
