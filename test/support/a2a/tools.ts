// Tools for tests of tasks: one that is short, one that takes as long as the test wants.
import { z } from 'zod';
import { defineTool, type Tool } from '../../../api/tools/tool.ts';
import { unprocessable } from '../../../api/tools/problems.ts';
import { Problem } from '../../../lib/problem.ts';

/** Digs in steps; each waits until the gate is open. */
export function digTool(gate: (step: number) => Promise<unknown>): Tool {
  return defineTool({
    name: 'dig',
    title: 'Dig',
    description: 'Of the tests.',
    price: '0.0001',
    openWorld: false,
    long: true,
    artifacts: ['text/plain'],
    input: z.strictObject({
      where: z.string().describe('Where'),
      rock: z.boolean().optional().describe('Whether there is rock'),
    }),
    output: z.object({ found: z.string() }),
    example: { where: 'here' },
    run: async ({ where, rock = false }, { report }) => {
      for (const step of [1, 2]) {
        report({ done: step / 3, message: `step ${step}` });
        await gate(step);
      }
      if (rock) throw new Problem(unprocessable, 'There is rock.');
      return {
        result: { found: where },
        artifact: { bytes: Buffer.from(`found ${where}`), mediaType: 'text/plain', fileName: 'found.txt' },
      };
    },
  });
}

/** Closed until it is opened, for every step from then on. */
export class Gate {
  #door = Promise.withResolvers<undefined>();

  readonly pass = async (): Promise<void> => {
    await this.#door.promise;
  };

  open(): void {
    this.#door.resolve(undefined);
  }

  close(): void {
    this.open();
    this.#door = Promise.withResolvers();
  }
}
