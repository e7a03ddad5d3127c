// The program of a worker process: loads one module and runs its function once per message.
import { Problem } from '../../../../lib/problem.ts';
import { unprocessable } from '../../problems.ts';
import { toErrorReply } from './workers.ts';
import type { Reply } from './worker-process.ts';

const [, , moduleUrl = '', memoryMb] = process.argv;
const { default: work } = (await import(moduleUrl)) as { default: (input: unknown) => unknown };

/** In addition to the memory of an empty process. */
const maxMemory = (128 + Number(memoryMb)) * 1024 * 1024;
/** Well below the CPU time limit at which the system kills the process. */
const maxCpuMicroseconds = 60_000_000;

function isSpent(): boolean {
  const { user, system } = process.cpuUsage();
  return process.memoryUsage.rss() > maxMemory || user + system > maxCpuMicroseconds;
}

async function runTask(input: unknown): Promise<Reply> {
  try {
    return { kind: 'done', output: await work(input), spent: isSpent() };
  } catch (error) {
    // A WebAssembly trap leaves the module's memory in an undefined state: do not reuse this process.
    if (error instanceof Error && error.constructor.name === 'RuntimeError')
      return toErrorReply(new Problem(unprocessable, 'The engine of this tool crashed on this input.'), true);
    return toErrorReply(error, isSpent());
  }
}

function send(reply: Reply): void {
  try {
    process.send?.(reply);
  } catch (error) {
    // Output that cannot be cloned, such as a function, is a fault of the module.
    process.send?.(toErrorReply(error, true));
  }
}

process.on('message', ({ input }: { input: unknown }) => void runTask(input).then(send));
process.send?.('ready');
// The parent process has ended.
process.on('disconnect', () => process.exit());
