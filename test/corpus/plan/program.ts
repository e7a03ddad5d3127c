// Runs another planner, which only reads the folder.
import { delimiter, join } from 'node:path';
import { existsSync } from 'node:fs';
import { execa } from 'execa';

interface Answer {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

export async function runPlanner(program: string, args: readonly string[]): Promise<Answer> {
  const { exitCode, stdout, stderr } = await execa(program, args, {
    reject: false,
    stdin: 'ignore',
    timeout: 60_000,
    env: { NO_COLOR: '1' },
  });
  return { code: exitCode ?? 1, stdout, stderr };
}

/** Path of a program, when there is one. */
export function findProgram(name: string): string | undefined {
  const folders = (process.env['PATH'] ?? '').split(delimiter);
  return folders.map((folder) => join(folder, name)).find((path) => existsSync(path));
}

/** Its own words for its version. */
export async function versionOf(program: string): Promise<string> {
  const { stdout } = await execa(program, ['--version'], { reject: false, stdin: 'ignore', timeout: 20_000 });
  return /\d+\.\d+(?:\.\d+)?[\w.-]{0,40}/.exec(stdout)?.[0] ?? 'unknown';
}
