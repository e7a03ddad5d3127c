// The order of test files: the longest first, so that no worker ends minutes after the others on a machine that has no
// record of earlier runs.
import { BaseSequencer, type TestSpecification } from 'vitest/node';

/** Files of more than a minute on a machine of two cores, in the order in which they begin. */
export const longFiles: readonly string[] = [
  ...[
    ...['monitoring/firing-absence', 'pipeline/pipeline', 'tools/render-diagram-browser', 'pipeline/languages'],
    ...['monitoring/firing', 'operator/resilience', 'api/schemathesis', 'tools/render-diagram'],
    ...['tools/check-grammar-languages', 'operator/sleep'],
    ...['tools/run-code-python', 'ledger/outages', 'tools/convert-to-pdf', 'models/models', 'models/comparisons'],
  ].map((name) => `integration/${name}`),
  // author-week begins and ends with a restart of the operator, and waits most of its time.
  ...[
    ...[
      'author-week',
      'attack',
      'tools',
      'author',
      'sleep',
      'app-manifest',
      'previews',
      'components',
      'rename',
      'kinds',
      'tutorial',
      'first-use',
    ],
    ...['hostile', 'data', 'services', 'mcp-server', 'rejections', 'disk'],
  ].map((name) => `e2e/${name}`),
  // Those that run alone. The kubelet restarts what resilience has killed later and later, and any file after it would wait.
  ...['swap', 'rollout', 'workers', 'absence', 'resilience'].map((name) => `e2e/${name}`),
];

const ranks = new Map(longFiles.map((name, index) => [`/test/${name}.test.ts`, index]));

/** Projects of one group run at the same time; those of a higher one later. */
function findGroup({ project }: TestSpecification): number {
  return project.config.sequence.groupOrder;
}

function findRank(moduleId: string): number {
  const at = moduleId.lastIndexOf('/test/');
  return ranks.get(moduleId.slice(at)) ?? ranks.size;
}

export class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files);
    return sorted.toSorted(
      (one, other) => findGroup(one) - findGroup(other) || findRank(one.moduleId) - findRank(other.moduleId),
    );
  }
}
