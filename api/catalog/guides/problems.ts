// The kind of problem that guides answer with.
import type { ProblemType } from '../../../lib/problem.ts';

export const unknownGuide: ProblemType = {
  slug: 'unknown-guide',
  status: 404,
  title: 'Unknown guide',
  description:
    'No guide has this slug. `nearest` lists the guides with the most similar slugs; GET /api/agent-guides lists all guides.',
};
