// The processes of metering as a test starts, kills and starts them again.
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

const root = join(import.meta.dirname, '../../..');

export interface Program {
  start(): void;
  kill(signal?: NodeJS.Signals): Promise<void>;
}

const programs = new Set<Program>();

/** Kills every program that this process has started. */
export async function killPrograms(): Promise<void> {
  await Promise.all(Array.from(programs, (one) => one.kill()));
}

function program(file: string, args: readonly string[], environment: NodeJS.ProcessEnv): Program {
  let child: ChildProcess | undefined;
  const own: Program = {
    start() {
      programs.add(own);
      child = spawn(process.execPath, [join(root, file), ...args], {
        env: { ...process.env, LOG_LEVEL: 'fatal', ...environment },
        stdio: ['ignore', 'ignore', 'inherit'],
      });
    },
    async kill(signal = 'SIGKILL') {
      if (child === undefined || child.exitCode !== null || child.signalCode !== null) return;
      const ended = once(child, 'exit');
      child.kill(signal);
      await ended;
    },
  };
  return own;
}

export const token = 'a token of the tests that is long enough';

export function receiverProgram(databaseUrl: string, port: number, graceMs = 3_600_000): Program {
  return program('test/support/metering/receiver.ts', [databaseUrl, String(port), token, String(graceMs)], {});
}

export interface ShipperSettings {
  readonly log: string;
  readonly receiver: string;
  readonly tokenFile: string;
  readonly port: number;
  readonly limitMiB?: number;
}

export function shipperProgram({ log, receiver, tokenFile, port, limitMiB = 512 }: ShipperSettings): Program {
  return program('api/accounting/metering/shipper/main.ts', [], {
    MOORAGE_ACCESS_LOG: log,
    MOORAGE_RECEIVER_URL: receiver,
    MOORAGE_METERING_TOKEN_FILE: tokenFile,
    MOORAGE_ACCESS_LOG_LIMIT_MIB: String(limitMiB),
    MOORAGE_SHIPPER_PORT: String(port),
  });
}

/** Waits until a server answers at /healthz. */
export async function waitUntilHealthy(port: number): Promise<void> {
  while (
    !(await fetch(`http://127.0.0.1:${port}/healthz`).then(
      ({ ok }) => ok,
      () => false,
    ))
  )
    await sleep(20);
}
