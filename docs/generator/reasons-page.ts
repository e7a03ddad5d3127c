// Page of conditions, their reasons, and the rules of rejections. Rules are found in the source text, as the `rule:` of a
// finding.
import { globSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { stepConditions, type Outcome, type StepCondition, reasons } from '../../controller/reconcile/outcome.ts';
import { joinBlocks, formatCode, renderList, renderTable, type Page } from './markdown.ts';

const root = fileURLToPath(new URL('../../', import.meta.url));

/** The folder of controller/steps that makes a condition. */
const folders: Readonly<Record<StepCondition, string>> = {
  SourceResolved: 'source',
  Reviewed: 'build',
  Built: 'build',
  Deployed: 'deploy',
  Routed: 'route',
  Published: 'publish',
};

const kinds = {
  done: 'True',
  waiting: 'Unknown (waiting)',
  failed: 'False (retried)',
  stalled: 'False (needs a change)',
} as const satisfies Record<Outcome['kind'], string>;

async function readSources(folder: string): Promise<string[]> {
  const files = globSync(`${folder}/**/*.ts`, { cwd: root }).sort();
  return Promise.all(files.map(async (file) => readFile(`${root}${file}`, 'utf8')));
}

async function listRules(): Promise<string[]> {
  const texts = [...(await readSources('controller/pipeline')), ...(await readSources('controller/steps'))];
  const named = texts.flatMap((text) =>
    [...text.matchAll(/\brule: (['`])([a-z-]+\/[^'`]+)\1/g)].map(([, , rule = '']) =>
      rule.replaceAll(/\$\{[^}]*\}/g, '*'),
    ),
  );
  // Others are handed to a function as `source/not-found` or `build/failed`.
  const passed = texts.flatMap((text) =>
    [...text.matchAll(/(?<=[(,]\s*)'((?:source|run|build|plan)\/[a-z-]+)'(?=,)/g)].map(([, rule = '']) => rule),
  );
  return [...new Set([...named, ...passed])].sort();
}

function renderSection(condition: StepCondition): string {
  const listed = Object.entries<readonly Outcome['kind'][]>(reasons[condition]);
  return joinBlocks(
    `## ${condition === 'Published' ? 'Ready' : condition}`,
    `Set by [\`controller/steps/${folders[condition]}/\`](../../controller/steps/${folders[condition]}).`,
    renderTable(
      ['reason', 'status'],
      listed.map(([reason, ways]) => [formatCode(reason), ways.map((way) => kinds[way]).join('; ')]),
    ),
  );
}

export const conditions: Page = {
  file: 'conditions.md',
  title: 'Conditions, reasons and rules',
  about: 'Every condition of a HostedApp with its reasons, and every rule that a rejection can name.',
  sources: ['controller/reconcile/outcome.ts', 'controller/steps', 'controller/pipeline'],
  async render() {
    return joinBlocks(
      `Conditions: \`Ready\`, \`Reconciling\`, \`Stalled\` and one for each step: ${stepConditions
        .filter((one) => one !== 'Published')
        .map(formatCode)
        .join(
          ', ',
        )}. \`Ready\`, \`Reconciling\` and \`Stalled\` carry the reason of the first step that is not done. Each transition is an Event with the same reason. \`NotReached\` means that earlier steps are not done. \`Refused\`, on any condition, means that the cluster rejected a write, which is retried. A submitted app that was never live also gets the condition \`Expiring\` (reason \`NeverLive\`) before it is deleted with the event \`Expired\`.`,
      ...stepConditions.map(renderSection),
      '## Rules',
      'A finding or rejection names its rule, and usually the file and line. `*` stands for a name from a scanner or linter.',
      renderList((await listRules()).map(formatCode)),
    );
  },
};
