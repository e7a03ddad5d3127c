// Page of conditions, their reasons, and the rules of rejections. They are found in the source text: a reason is the
// first argument of an outcome, a rule is a `rule:` of a finding.
import { glob, readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { stepConditions } from '../../controller/reconcile/outcome.ts';
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
  const files = await Array.fromAsync(glob(`${folder}/**/*.ts`, { cwd: root }));
  return Promise.all(files.sort().map(async (file) => readFile(`${root}${file}`, 'utf8')));
}

/** Reasons with how the step stands. */
async function reasonsOf(folder: string): Promise<Map<string, Set<string>>> {
  const found = new Map<string, Set<string>>();
  for (const text of await sourcesOf(`controller/steps/${folder}`)) {
    for (const [, kind, reason = ''] of text.matchAll(/\b(done|waiting|stalled|failed)\(\s*'([A-Z][A-Za-z]+)'/g))
      found.set(reason, (found.get(reason) ?? new Set()).add(kinds[kind as keyof typeof kinds]));
    for (const [, reason = ''] of text.matchAll(/\breason: '([A-Z][A-Za-z]+)'/g))
      if (!found.has(reason)) found.set(reason, new Set(['False']));
  }
  return found;
}

async function rules(): Promise<string[]> {
  const texts = [...(await sourcesOf('controller/pipeline')), ...(await sourcesOf('controller/steps'))];
  const found = texts.flatMap((text) =>
    [...text.matchAll(/\brule: (['`])([a-z-]+\/[^'`]+)\1/g)].map(([, , rule = '']) =>
      rule.replaceAll(/\$\{[^}]*\}/g, '*'),
    ),
  );
  return [...new Set(found)].sort();
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
        )}. \`Ready\`, \`Reconciling\` and \`Stalled\` carry the reason of the first step that is not done. Each transition is an Event with the same reason. \`NotReached\`: the steps before come first. \`Refused\`, on any: the cluster refused a write, and it is tried again.`,
      ...parts,
      '## Rules',
      'A finding or a rejection names its rule, and usually file and line. `*` stands for a name that a scanner or a linter gives.',
      list((await rules()).map(code)),
    );
  },
};
