// The weights that a caller sends: onboarding:2,quality:1 and so on.
import { z } from 'zod';
import { criteria, type Criterion } from './criteria.ts';

export type Weights = Partial<Record<Criterion, number>>;

const shape = /^([a-z]{1,20}):(\d{1,3}(?:\.\d{1,3})?)$/;

/** Query parameter `weights`. Each criterion once, at least one above 0. */
export const weightsField = z
  .string()
  .max(200)
  .transform((text, context): Weights => {
    const weights: Weights = {};
    for (const part of text.split(',')) {
      const [, name = '', weight = ''] = shape.exec(part.trim()) ?? [];
      const criterion = criteria.find((one) => one === name);
      if (criterion === undefined)
        return refused(context, `has ${JSON.stringify(part.slice(0, 40))}, which is no criterion with a weight`);
      if (criterion in weights) return refused(context, `names ${criterion} twice`);
      weights[criterion] = Number(weight);
    }
    return Object.values(weights).some((weight) => weight > 0) ? weights : refused(context, 'has no weight above 0');
  })
  .describe(
    `Weights of the total score, such as quality:2,cost:1. Criteria: ${criteria.join(', ')}; weights from 0 to 999 with up to three decimal places. Without it there is no total score.`,
  );

function refused(context: z.RefinementCtx<string>, message: string): never {
  context.addIssue({ code: 'custom', message });
  return z.NEVER;
}
