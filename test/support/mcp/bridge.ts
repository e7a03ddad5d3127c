// Compiles the bridge of MCP servers and runs it in front of a server, as the first process of a container does.
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { globSync, mkdirSync, readFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { execa } from 'execa';
import { findGo } from '../../../localnode/binaries/toolchain.ts';
import { runExclusively } from '../exclusively.ts';
import { findFreePort } from '../free-port.ts';

const source = join(import.meta.dirname, '../../../controller/pipeline/bridge');
const stdioServer = [process.execPath, join(import.meta.dirname, 'stdio-server.ts')];
/** A command that starts far faster, for many sessions. */
export const sessionServer = [process.execPath, join(import.meta.dirname, 'session-server.ts')];

/** Where the run keeps compiled sources: otherwise each session's process would compile them. */
const { NODE_COMPILE_CACHE: compileCache } = process.env;
const compiledSources = compileCache === undefined ? {} : { NODE_COMPILE_CACHE: compileCache };

/** Compiles the bridge. Go keeps what it compiled, so only the first time takes long. */
export async function compileBridge(): Promise<string> {
  const folder = join(tmpdir(), 'moorage-mcp-bridge');
  const program = join(folder, 'mcp-bridge');
  await runExclusively(async () => {
    mkdirSync(folder, { recursive: true });
    await execa(await findGo(), ['build', '-trimpath', '-o', program, '.'], { cwd: source, env: { CGO_ENABLED: '0' } });
  });
  return program;
}

export interface RunningBridge extends AsyncDisposable {
  readonly process: ChildProcess;
  readonly origin: string;
  /** What it has written to the container's log. */
  log(): string;
  /** Connects the official client. */
  connect(client?: Client): Promise<ConnectedClient>;
}

export interface ConnectedClient {
  readonly client: Client;
  readonly transport: StreamableHTTPClientTransport;
}

export interface BridgeOptions {
  readonly options?: readonly string[];
  readonly command?: readonly string[];
  /** Its variables, such as MCP_BRIDGE_SESSIONS, and those of the server. */
  readonly variables?: Readonly<Record<string, string>>;
}

/** Starts the bridge without waiting for the server. */
export async function spawnBridge(
  program: string,
  { options = ['--transport', 'stdio'], command = stdioServer, variables = {} }: BridgeOptions = {},
): Promise<RunningBridge> {
  const port = await findFreePort();
  const child = spawn(program, [...options, '--', ...command], {
    env: { PATH: process.env['PATH'], PORT: String(port), ...compiledSources, ...variables },
    stdio: ['ignore', 'inherit', 'pipe'],
  });
  let log = '';
  child.stderr.on('data', (chunk: Buffer) => {
    log += chunk.toString();
  });
  const origin = `http://127.0.0.1:${port}`;
  return {
    process: child,
    origin,
    log: () => log,
    connect: async (client = createClient()) => {
      const transport = new StreamableHTTPClientTransport(new URL('/mcp', origin));
      await client.connect(transport);
      return { client, transport };
    },
    [Symbol.asyncDispose]: async () => {
      if (child.exitCode !== null || child.signalCode !== null) return;
      const ended = once(child, 'exit');
      child.kill('SIGTERM');
      await ended;
    },
  };
}

/** Starts the bridge and waits until it listens. */
export async function startBridge(program: string, options?: BridgeOptions): Promise<RunningBridge> {
  const bridge = await spawnBridge(program, options);
  await waitFor(() => {
    if (bridge.process.exitCode !== null) throw new Error(`the bridge ended:\n${bridge.log()}`);
    return bridge.log().includes('listening on port');
  });
  return bridge;
}

export function createClient(capabilities: ConstructorParameters<typeof Client>[1] = {}): Client {
  return new Client({ name: 'test', version: '1' }, capabilities);
}

/** Waits for a condition; the limit of the test is the limit. */
export async function waitFor(condition: () => boolean): Promise<void> {
  while (!condition()) await sleep(20);
}

/** Processes whose environment has the marker of this bridge. Zombies have ended. */
export function listProcesses(text: string): number[] {
  return globSync('/proc/[0-9]*').flatMap((folder) => {
    try {
      const state = /\) (\S)/.exec(readFileSync(`${folder}/stat`, 'utf8'))?.[1];
      const environment = readFileSync(`${folder}/environ`, 'utf8');
      return state !== 'Z' && environment.includes(text) ? [Number(folder.split('/').at(-1))] : [];
    } catch {
      return [];
    }
  });
}
