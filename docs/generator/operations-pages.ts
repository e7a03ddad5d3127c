// Pages for operators: conditions with their reasons and rules, alerts with what to do about each, and dashboards.
import { globSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { stepConditions, type Outcome, type StepCondition, reasons } from '../../controller/reconcile/outcome.ts';
import { joinBlocks, formatCode, renderList, renderTable, type Page } from './page.ts';
import { alertGroups, dashboards } from '../../charts/monitoring/all.ts';
import type { Alert } from '../../charts/monitoring/alert.ts';

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

/** The status that a condition has by the kind of its outcome. */
const statuses = {
  done: 'True',
  waiting: 'Unknown (waiting)',
  failed: 'False (retried)',
  stalled: 'False (needs a change)',
} as const satisfies Record<Outcome['kind'], string>;

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
        )}. \`Ready\`, \`Reconciling\` and \`Stalled\` carry the reason of the first step that is not done. Each transition is an Event with the same reason. \`NotReached\` means that earlier steps are not done. \`Refused\`, on any condition, means that the cluster rejected a write, which is retried. A submitted app that was never live also gets the condition \`Expiring\` (reason \`NeverLive\`) before it is deleted with the event \`Expired\`. An app that its author deleted ends with the event \`DeletedByAuthor\`.`,
      ...stepConditions.map(renderCondition),
      '## Rules',
      'A finding or rejection names its rule, and usually the file and line. `*` stands for a name from a scanner or linter.',
      renderList((await listRules()).map(formatCode)),
    );
  },
};

function renderCondition(condition: StepCondition): string {
  const kindsByReason = Object.entries<readonly Outcome['kind'][]>(reasons[condition]);
  return joinBlocks(
    `## ${condition === 'Published' ? 'Ready' : condition}`,
    `Set by [\`controller/steps/${folders[condition]}/\`](../../controller/steps/${folders[condition]}).`,
    renderTable(
      ['reason', 'status'],
      kindsByReason.map(([reason, outcomes]) => [
        formatCode(reason),
        outcomes.map((kind) => statuses[kind]).join('; '),
      ]),
    ),
  );
}

/** Rules as the source text names them, in the `rule:` of a finding. */
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

async function readSources(folder: string): Promise<string[]> {
  const files = globSync(`${folder}/**/*.ts`, { cwd: root }).sort();
  return Promise.all(files.map(async (file) => readFile(`${root}${file}`, 'utf8')));
}

export const alertsPage: Page = {
  file: 'alerts.md',
  title: 'Alerts and dashboards',
  about: 'Every alert with its condition, what it means and what to do; every dashboard with its panels.',
  sources: ['charts/monitoring'],
  render() {
    return joinBlocks(
      'To enable them, see [Monitor the installation](../how-to/monitor.md).',
      ...alertGroups.flatMap(({ title, alerts }) => [`## ${title}`, ...alerts.map(renderAlert)]),
      '## Dashboards',
      'For Grafana 10.2 or newer, in [`manifests/dashboards`](../../manifests/dashboards). Each prompts for the Prometheus data source.',
      ...dashboards.map(({ name, title, about, rows }) =>
        joinBlocks(
          `### ${title}`,
          `[\`${name}.json\`](../../manifests/dashboards/${name}.json): ${about}`,
          renderTable(
            ['panel', 'what it shows'],
            rows.flatMap(({ panels }) => panels.map((panel) => [panel.title, panel.description])),
          ),
        ),
      ),
    );
  },
};

function renderAlert({ name, expr, for: duration, severity, summary, meaning, runbook }: Alert): string {
  const delay = duration === '0m' ? 'immediately' : `after ${duration}`;
  return joinBlocks(
    `### ${name}`,
    `*${severity}*, ${delay}: ${toReadableText(summary)}.`,
    meaning,
    `\`\`\`promql\n${expr}\n\`\`\``,
    runbook.map((step, index) => `${index + 1}. ${step}`).join('\n'),
  );
}

/** Templates of Prometheus, as a reader would write them. */
function toReadableText(summary: string): string {
  return summary
    .replaceAll(/\{\{ \$value[^}]*\}\}/g, 'N')
    .replaceAll(/\{\{ \$labels\.([a-z]+)[^}]*\}\}/g, '<$1>')
    .replaceAll('<', '&lt;');
}
