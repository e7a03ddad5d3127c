// Page of alerts with what to do about each, and of the dashboards.
import { alertGroups } from '../../charts/monitoring/alerts/all.ts';
import type { Alert } from '../../charts/monitoring/alert.ts';
import { dashboards } from '../../charts/monitoring/dashboards/all.ts';
import { joinBlocks, renderTable, type Page } from './markdown.ts';

/** Templates of Prometheus, as a reader would write them. */
function toReadableText(summary: string): string {
  return summary
    .replaceAll(/\{\{ \$value[^}]*\}\}/g, 'N')
    .replaceAll(/\{\{ \$labels\.([a-z]+)[^}]*\}\}/g, '<$1>')
    .replaceAll('<', '&lt;');
}

function renderSection({ name, expr, for: duration, severity, summary, meaning, runbook }: Alert): string {
  const held = duration === '0m' ? 'immediately' : `after ${duration}`;
  return joinBlocks(
    `### ${name}`,
    `*${severity}*, ${held}: ${toReadableText(summary)}.`,
    meaning,
    `\`\`\`promql\n${expr}\n\`\`\``,
    runbook.map((step, index) => `${index + 1}. ${step}`).join('\n'),
  );
}

export const alertsPage: Page = {
  file: 'alerts.md',
  title: 'Alerts and dashboards',
  about: 'Every alert with its condition, what it means and what to do; every dashboard with its panels.',
  sources: ['charts/monitoring'],
  render() {
    return joinBlocks(
      'To enable them, see [Monitor the installation](../how-to/monitor.md).',
      ...alertGroups.flatMap(({ title, alerts }) => [`## ${title}`, ...alerts.map(renderSection)]),
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
