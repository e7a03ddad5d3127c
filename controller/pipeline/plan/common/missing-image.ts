// Says that an app cannot be built because this installation lacks the base image of its language.
import type { PlanInput, Problem } from '../recipe.ts';

export function missingImage(
  { missingImages = [] }: PlanInput,
  needed: readonly string[],
  language: string,
  file: string,
): Problem | undefined {
  const missing = needed.find((image) => missingImages.includes(image));
  if (missing === undefined) return undefined;
  return {
    problem: {
      rule: 'plan/base-image',
      severity: 'error',
      file,
      message: `This is a ${language} app, and the image ${missing}, from which it would be built, is not on this installation.`,
      fix: 'Add a Dockerfile that starts from an image that is there, or ask the operator of this installation to add the base images (npm run up -- --base-images).',
    },
  };
}
