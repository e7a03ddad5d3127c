// Real processes with metrics: operator, API and workers over a real API server and a real PostgreSQL; model router,
// gateway and kubelet are stand-ins that can be made to misbehave.
import { execFile } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import { z } from 'zod';
import { contentTypes } from '../../../api/accounting/metering/log-receiver.ts';
import { writeRequest } from '../../../api/accounting/metering/shipper/sender.ts';
import { readCatalog } from '../../../api/models/catalog.ts';
import { findFreePort } from '../free-port.ts';
import { sharePostgres, startPostgres, type SharedPostgres } from '../ledger/postgres.ts';
import { completion, reply, startScriptedRouter, type Script } from '../models/scripted-router.ts';
import { receiptKey } from '../receipts/record.ts';
import { startWorld, type Operator, type World } from '../operator/world.ts';
import { type GatewaySide, startGatewaySide } from './gateway-side.ts';
import { program, type Program, type ProgramOptions } from './program.ts';
import { type Gateway, startGateway, startKubelet, startRegistry } from './stand-ins.ts';

const root = join(import.meta.dirname, '../../..');

/** A prompt of which the router does not say what the answer cost. */
export const unbilled = 'An answer without a bill.';

/** What the gateway shows to the API. */
const meteringToken = 'm'.repeat(32);

/** What a test changes while the lab runs. */
export interface Faults {
  /** The model router answers 502. */
  isRouterBroken: boolean;
  /** It bills far more than its list prices allow for. */
  isRouterDear: boolean;
  /** Share of the node's disk that is free. */
  freeDisk: number;
}

export interface Lab {
  readonly world: World;
  readonly faults: Faults;
  readonly postgres: SharedPostgres;
  readonly databaseUrl: string;
  /** The one that runs. */
  readonly operator: Operator;
  /** Has the operator end in good order, and starts another. */
  restartOperator(): Promise<void>;
  readonly api: Program;
  readonly workers: Program;
  readonly registryProxy: Program;
  readonly gateway: Gateway;
  readonly gatewaySide: GatewaySide;
  /** URL of the internal port of the API, and what is shown there. */
  readonly internal: { readonly url: string; readonly token: string };
  /** URL of the API. */
  readonly url: string;
  /** Sends requests of a gateway with these numbers to the API, as its access log has them. */
  sendAccessLog(numbers: readonly number[]): Promise<void>;
  /** Runs a program of the API beside it, with its database and router. */
  run(file: string, ...args: readonly string[]): Promise<{ readonly code: number; readonly text: string }>;
  /** Addresses to scrape, by job. */
  readonly targets: Readonly<Record<string, readonly string[]>>;
  stop(): Promise<void>;
}

export interface LabOptions {
  /** Days until the certificate of the gateway ends. */
  readonly certificateDays?: number;
  /** A PostgreSQL that the test may stop. */
  readonly ownPostgres?: boolean;
  /** Variables of the API. */
  readonly api?: Readonly<Record<string, string>>;
}

export async function startLab(options: LabOptions = {}): Promise<Lab> {
  const { certificateDays = 60, ownPostgres = false, api = {} } = options;
  const faults: Faults = { isRouterBroken: false, isRouterDear: false, freeDisk: 0.6 };
  const stops: (() => Promise<unknown>)[] = [];
  /** What is being started is stopped with the lab, also if something else could not be started. */
  const keep = <T extends { stop(): Promise<void> }>(starting: Promise<T>): Promise<T> => {
    const started = starting.catch(() => undefined);
    stops.push(async () => (await started)?.stop());
    return starting;
  };
  const start = (its: ProgramOptions): Promise<Program> => {
    const made = program(its);
    return keep(
      made.start().then(
        () => made,
        async (error: unknown) => {
          await made.stop();
          throw error;
        },
      ),
    );
  };
  const stop = async (): Promise<void> => {
    await Promise.all(stops.splice(0).map((end) => end()));
  };
  try {
    const ports = await findFreePorts(
      ...(['operator', 'api', 'apps', 'apiInternal', 'workers', 'workersInternal', 'shipper'] as const),
      ...(['proxy', 'proxyInternal'] as const),
    );
    const internal = { url: `http://127.0.0.1:${ports.apiInternal}`, token: meteringToken };
    const preparing = keep(prepareDatabase(ownPostgres));
    const startingWorkers = start({
      file: 'api/tools/engine/workers/remote/server-main.ts',
      internalPort: ports.workersInternal,
      variables: { MOORAGE_PORT: String(ports.workers) },
    });
    const startingGatewaySide = keep(startGatewaySide(`${internal.url}/v1/logs`, meteringToken, ports.shipper));
    const registry = await keep(startRegistry());
    const folder = await mkdtemp(join(tmpdir(), 'moorage-lab-'));
    stops.push(() => rm(folder, { recursive: true, force: true }));
    // The registry of the lab asks for no account.
    const account = join(folder, 'config.json');
    await writeFile(account, '{}');
    const startingProxy = start({
      file: 'controller/registry-proxy/main.ts',
      internalPort: ports.proxyInternal,
      variables: {
        MOORAGE_REGISTRY_PROXY_PORT: String(ports.proxy),
        MOORAGE_REGISTRY_HOST: `127.0.0.1:${registry.port}`,
        MOORAGE_REGISTRY_INSECURE: 'true',
        MOORAGE_REGISTRY_CREDENTIALS: account,
        MOORAGE_PUSH_TOKEN_SECRET: 'p'.repeat(32),
      },
    });
    const [world, gateway, router] = await Promise.all([
      keep(startWorld()),
      keep(startGateway(certificateDays)),
      keep(startRouter(faults)),
    ]);
    const kubelet = await keep(startKubelet(world.api, () => faults.freeDisk));
    const variables = {
      MOORAGE_INTERNAL_PORT: String(ports.operator),
      MOORAGE_APPS_USAGE_INTERVAL: '1s',
      MOORAGE_BUILDS_SPACE_INTERVAL: '1s',
      MOORAGE_KUBELET_PORT: String(kubelet.port),
      MOORAGE_COMPUTE_URL: `${internal.url}/compute`,
      MOORAGE_METERING_TOKEN: internal.token,
      MOORAGE_PROBE_URL: `https://127.0.0.1:${gateway.port}`,
      MOORAGE_REGISTRY_PROXY: `127.0.0.1:${registry.port}`,
      MOORAGE_REGISTRY_PRUNE: 'true',
    };
    let operator = world.startOperator(variables);
    const { postgres, databaseUrl } = await preparing;
    const server = await start({
      file: 'api/main.ts',
      internalPort: ports.apiInternal,
      variables: {
        ...Object.fromEntries(Object.entries(world.apiEnvironment).filter(([, value]) => value !== '')),
        KUBECONFIG: world.api.kubeconfig,
        DATABASE_URL: databaseUrl,
        MOORAGE_PORT: String(ports.api),
        MOORAGE_APPS_PORT: String(ports.apps),
        MOORAGE_WORKERS_URL: `http://127.0.0.1:${ports.workers}`,
        MOORAGE_ROUTER_URL: router.url,
        MOORAGE_ROUTER_KEY: 'platform',
        MOORAGE_CALLER_SALT: 's'.repeat(32),
        MOORAGE_RECEIPT_KEY: receiptKey,
        MOORAGE_TRUSTED_PROXIES: '127.0.0.0/8',
        MOORAGE_DRAIN_SECONDS: '1',
        MOORAGE_METERING_TOKEN: meteringToken,
        ...api,
      },
    });
    const [workers, registryProxy, gatewaySide] = await Promise.all([
      startingWorkers,
      startingProxy,
      startingGatewaySide,
    ]);
    const environment = {
      DATABASE_URL: databaseUrl,
      MOORAGE_ROUTER_URL: router.url,
      MOORAGE_ROUTER_KEY: 'platform',
      ...api,
    };
    const at = (port: number): readonly string[] => [`127.0.0.1:${port}`];
    return {
      ...{
        world,
        faults,
        postgres,
        databaseUrl,
        stop,
        api: server,
        workers,
        registryProxy,
        gateway,
        gatewaySide,
        internal,
      },
      get operator() {
        return operator;
      },
      async restartOperator() {
        await operator.end();
        operator = world.startOperator(variables);
      },
      url: `http://127.0.0.1:${ports.api}`,
      sendAccessLog: (numbers) => sendAccessLog(ports.apiInternal, numbers),
      run: (file, ...args) => runProgram(file, args, environment),
      targets: {
        'moorage-operator': at(ports.operator),
        'moorage-api': at(ports.apiInternal),
        'moorage-workers': at(ports.workersInternal),
        'moorage-registry-proxy': at(ports.proxyInternal),
        'moorage-shipper': at(gatewaySide.shipperPort),
        'moorage-activator': at(gatewaySide.activatorPort),
      },
    };
  } catch (error) {
    await stop();
    throw error;
  }
}

interface Database {
  readonly postgres: SharedPostgres;
  readonly databaseUrl: string;
  stop(): Promise<void>;
}

async function prepareDatabase(isOwn: boolean): Promise<Database> {
  const postgres = await (isOwn ? startPostgres({ durable: false }) : sharePostgres());
  const stop = (): Promise<void> => postgres.stop();
  try {
    return { postgres, databaseUrl: await postgres.createDatabase('moorage'), stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

async function startRouter(faults: Faults): Promise<{ readonly url: string; stop(): Promise<void> }> {
  const router = await startScriptedRouter(scripts(faults));
  return { url: router.url, stop: () => router.close() };
}

/** Far above the hold of a call ($0.0003). */
const dear = '{"prompt_tokens":20,"completion_tokens":80,"cost":0.45}';
const billed = '{"prompt_tokens":20,"completion_tokens":80,"cost":0.0002}';

/** Answers of each model, at its cost. */
function scripts(faults: Faults): Record<string, Script> {
  const script: Script = async (response, asked, closed) => {
    await sleep(20 + asked.body.length / 10);
    const answer = faults.isRouterBroken
      ? reply(502, '{"error":{"message":"the model is down"}}')
      : reply(200, completion(asked.body.includes(unbilled) ? undefined : faults.isRouterDear ? dear : billed));
    await answer(response, asked, closed);
  };
  return Object.fromEntries(readCatalog().models.map(({ upstream }) => [upstream, script]));
}

async function sendAccessLog(port: number, numbers: readonly number[]): Promise<void> {
  const start = Date.now() - 60_000;
  const records = numbers.map((number) => ({
    RequestCount: number,
    StartUTC: new Date(start + number * 1_000).toISOString(),
    Duration: 1_000_000,
    DownstreamStatus: 200,
    RequestHost: 'live.apps.localhost',
    RequestPath: '/',
    RequestMethod: 'GET',
  }));
  const answer = await fetch(`http://127.0.0.1:${port}/v1/logs`, {
    method: 'POST',
    headers: { 'content-type': contentTypes.protobuf, authorization: `Bearer ${meteringToken}` },
    body: new Uint8Array(writeRequest({ resource: { 'service.instance.id': 'gateway-a' }, records })),
  });
  if (!answer.ok) throw new Error(`the receiver answered ${answer.status}: ${await answer.text()}`);
}

const failed = z.object({ code: z.number(), stdout: z.string() });

async function runProgram(
  file: string,
  args: readonly string[],
  environment: Readonly<Record<string, string>>,
): Promise<{ code: number; text: string }> {
  try {
    const options = { env: { ...process.env, ...environment } };
    const { stdout } = await promisify(execFile)(process.execPath, [join(root, file), ...args], options);
    return { code: 0, text: stdout };
  } catch (error) {
    const { code, stdout } = failed.parse(error);
    return { code, text: stdout };
  }
}

async function findFreePorts<Name extends string>(...names: readonly Name[]): Promise<Record<Name, number>> {
  const ports: [string, number][] = [];
  for (const name of names) ports.push([name, await findFreePort()]);
  return Object.fromEntries(ports) as Record<Name, number>;
}
