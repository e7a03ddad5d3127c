// Python programs for tests: an environment of pinned packages, installed once, and servers that say their port.
import { execFileSync, spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { paths } from '../../../localnode/paths.ts';

export interface Environment {
  readonly name: string;
  /** What pip takes: packages with their versions, or -r and a file of them. */
  readonly packages: readonly string[];
  /** Installed without what they ask for. */
  readonly alone?: readonly string[];
}

/** Folder of a virtual environment with these packages; with others it is another folder. */
export function pythonEnvironment({ name, packages, alone = [] }: Environment): string {
  const content = [...packages, ...alone]
    .map((word) => (existsSync(word) ? readFileSync(word, 'utf8') : word))
    .join('\n');
  const folder = join(paths.cache, name, createHash('sha256').update(content).digest('hex').slice(0, 12));
  const complete = join(folder, '.complete');
  if (existsSync(complete)) return folder;
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  try {
    execFileSync('python3', ['-m', 'venv', folder], { stdio: 'ignore' });
  } catch {
    aptInstall('python3-venv');
    execFileSync('python3', ['-m', 'venv', '--clear', folder], { stdio: 'ignore' });
  }
  const install = (...words: readonly string[]): Buffer =>
    execFileSync(join(folder, 'bin', 'pip'), ['install', '-q', '--disable-pip-version-check', ...words], {
      stdio: ['ignore', 'ignore', 'inherit'],
    });
  install(...packages);
  // pip complains on standard error of what is missing, which is on purpose.
  if (alone.length > 0)
    execFileSync(join(folder, 'bin', 'pip'), ['install', '-q', '--disable-pip-version-check', '--no-deps', ...alone], {
      stdio: 'ignore',
    });
  writeFileSync(complete, '');
  return folder;
}

/** Installs packages of Debian. */
export function aptInstall(...packages: readonly string[]): void {
  const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive' };
  const install = (): Buffer =>
    execFileSync('apt-get', ['install', '-q', '-y', '--no-install-recommends', ...packages], {
      env,
      stdio: ['ignore', 'ignore', 'ignore'],
    });
  try {
    install();
  } catch {
    execFileSync('apt-get', ['update', '-q'], { env, stdio: 'ignore' });
    install();
  }
}

export interface LocalServer {
  readonly url: string;
  stop(): Promise<void>;
}

/** Starts a program that writes its port on a line of its standard output once it listens on loopback. */
export async function startServer(
  program: string,
  args: readonly string[],
  env: NodeJS.ProcessEnv = {},
): Promise<LocalServer> {
  const child = spawn(program, args, { stdio: ['ignore', 'pipe', 'inherit'], env: { ...process.env, ...env } });
  const atExit = (): void => {
    child.kill('SIGKILL');
  };
  process.once('exit', atExit);
  const ended = once(child, 'exit');
  const lines = createInterface(child.stdout);
  const first = await Promise.race([
    once(lines, 'line').then(([line]) => String(line)),
    ended.then(([code]) => {
      throw new Error(`${program} ended with ${String(code)}`);
    }),
  ]);
  return {
    url: `http://127.0.0.1:${Number(first)}`,
    async stop() {
      process.off('exit', atExit);
      child.kill('SIGKILL');
      await ended;
    },
  };
}
