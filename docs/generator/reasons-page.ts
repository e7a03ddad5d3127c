// Page of conditions, their reasons, and the rules of rejections. They are found in the source text: a reason is the
// first argument of an outcome, a rule is a `rule:` of a finding.
import { globSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { stepConditions, warnedReason } from '../../controller/reconcile/outcome.ts';
import { blocks, code, list, table, type Page } from './markdown.ts';

const root = fileURLToPath(new URL('../../', import.meta.url));

/** The conditions that a folder of controller/steps makes. */
const conditionsOf: Readonly<Record<string, readonly string[]>> = {
  source: ['SourceResolved'],
  build: ['Reviewed', 'Built'],
  deploy: ['Deployed'],
  route: ['Routed'],
  publish: ['Ready'],
};

const kinds = {
  done: 'True',
  waiting: 'Unknown (waiting for something)',
  failed: 'False (tried again)',
  stalled: 'False (someone has to change something)',
} as const;

async function sourcesOf(folder: string): Promise<string[]> {
  const files = globSync(`${folder}/**/*.ts`, { cwd: root }).sort();
  return Promise.all(files.map(async (file) => readFile(`${root}${file}`, 'utf8')));
}

/** How a reason is written in a step, and how the condition then stands. */
const patterns: readonly (readonly [RegExp, string])[] = [
  [/\bdone\(\s*'([A-Z]\w+)'/g, kinds.done],
  [/\b(?:waiting|inTurn)\(\s*'([A-Z]\w+)'/g, kinds.waiting],
  [/\b(?:failed\(|refuse\(\s*false,)\s*'([A-Z]\w+)'/g, kinds.failed],
  [/\b(?:stalled\(|refuse\(\s*true,)\s*'([A-Z]\w+)'/g, kinds.stalled],
  [/'[a-z]+\/[a-z-]+'(?::| \?) '([A-Z]\w+)'/g, kinds.stalled],
  [/ \? '[A-Z]\w+' : '([A-Z]\w+)';/g, kinds.stalled],
];

/** Reasons with how the step stands. */
async function reasonsOf(folder: string): Promise<Map<string, Set<string>>> {
  const found = new Map<string, Set<string>>();
  const add = (reason: string, status: string): void => {
    found.set(reason, (found.get(reason) ?? new Set()).add(status));
  };
  const texts = await sourcesOf(`controller/steps/${folder}`);
  for (const [pattern, status] of patterns)
    for (const text of texts) for (const [, reason = ''] of text.matchAll(pattern)) add(reason, status);
  if (folder === 'publish') add(warnedReason, kinds.done);
  return found;
}

async function rules(): Promise<string[]> {
  const texts = [...(await sourcesOf('controller/pipeline')), ...(await sourcesOf('controller/steps'))];
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

async function section(step: string): Promise<string> {
  const reasons = [...(await reasonsOf(step))].sort(([one], [other]) => (one < other ? -1 : 1));
  return blocks(
    `## ${(conditionsOf[step] ?? []).join(' and ')}`,
    `Made by [\`controller/steps/${step}/\`](../../controller/steps/${step}).`,
    table(
      ['reason', 'status'],
      reasons.map(([reason, statuses]) => [code(reason), [...statuses].sort().join('; ')]),
    ),
  );
}

export const conditions: Page = {
  file: 'conditions.md',
  title: 'Conditions, reasons and rules',
  about: 'Every condition of a HostedApp with its reasons, and every rule that a rejection can name.',
  sources: ['controller/steps', 'controller/reconcile/status.ts', 'controller/pipeline'],
  async body() {
    const parts = await Promise.all(Object.keys(conditionsOf).map(section));
    return blocks(
      `Conditions: \`Ready\`, \`Reconciling\`, \`Stalled\` and one for each step: ${stepConditions
        .filter((one) => one !== 'Published')
        .map(code)
        .join(
          ', ',
        )}. \`Ready\`, \`Reconciling\` and \`Stalled\` carry the reason of the first step that is not done. Each transition is an Event with the same reason. \`NotReached\`: the steps before come first. \`Refused\`, on any: the cluster refused a write, and it is tried again. \`WaitingForRoom\`, on \`Reviewed\`: no node took the pod of the pipeline, which is queued again. A submitted app that has never been live also gets the condition \`Expiring\` (reason \`NeverLive\`) before it is deleted, which is the event \`Expired\`.`,
      ...parts,
      '## Rules',
      'A finding or a rejection names its rule, and usually file and line. `*` stands for a name that a scanner or a linter gives.',
      list((await rules()).map(code)),
    );
  },
};
