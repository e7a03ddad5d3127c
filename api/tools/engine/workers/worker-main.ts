// The program of a worker process: loads the module it is given, and runs its function once per message.
import { Problem } from '../../../../lib/problem.ts';
import { unprocessable } from '../../problems.ts';
import { errorReply } from './error-reply.ts';
import type { Reply } from './messages.ts';

const [, , moduleUrl = '', memoryMb] = process.argv;
const { default: work } = (await import(moduleUrl)) as { default: (input: unknown) => unknown };

/** Beside what an empty process has. */
const maxMemory = (128 + Number(memoryMb)) * 1024 * 1024;
/** Well below the processor time at which the system ends the process. */
const maxCpuMicroseconds = 60_000_000;

function spent(): boolean {
  const { user, system } = process.cpuUsage();
  return process.memoryUsage.rss() > maxMemory || user + system > maxCpuMicroseconds;
}

async function answer(input: unknown): Promise<Reply> {
  try {
    return { kind: 'done', output: await work(input), spent: spent() };
  } catch (error) {
    // WebAssembly that trapped has left its memory as it was then: nothing may use it again.
    if (error instanceof Error && error.constructor.name === 'RuntimeError')
      return errorReply(new Problem(unprocessable, 'The engine of this tool crashed on this input.'), true);
    return errorReply(error, spent());
  }
}

function send(reply: Reply): void {
  try {
    process.send?.(reply);
  } catch (error) {
    // What cannot be cloned, such as a function, is a fault of the module.
    process.send?.(errorReply(error, true));
  }
}

process.on('message', ({ input }: { input: unknown }) => void answer(input).then(send));
process.send?.('ready');
// Whoever started it has gone.
process.on('disconnect', () => process.exit());
