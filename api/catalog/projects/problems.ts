// The kinds of problem that the list of projects answers with.
import type { ProblemType } from '../../../lib/problem.ts';

export const unknownProject: ProblemType = {
  slug: 'unknown-project',
  status: 404,
  title: 'No such app',
  description:
    'No app of the catalog and no submitted app has this slug. `nearest` lists similar slugs; /api/projects lists all apps.',
};
