// The table of plans: figures, then a row a repository, then what was wrong or refused, with the words.
import { markdownTable, shorten } from '../table.ts';
import type { PlanRow } from './plan.ts';

export function planTable(
  rows: readonly PlanRow[],
  missing: readonly { repo: string; why: string }[],
  { hidden, note }: { readonly hidden: boolean; readonly note?: string | undefined },
): string {
  const planners = [...new Set(rows.map(({ planner, version }) => `${planner} ${version}`))];
  const of = (name: string): PlanRow[] => rows.filter(({ planner, version }) => `${planner} ${version}` === name);
  const counts = planners.map((name) => {
    const count = (verdict: string): number => of(name).filter(({ judgment }) => judgment.verdict === verdict).length;
    const all = of(name).length;
    const unreachable = of(name).filter(({ planned }) => planned.unreachable === true).length;
    const refusals = of(name).filter(({ judgment, planned }) => judgment.verdict === 'right' && planned.refused).length;
    return [
      name,
      all,
      ...['right', 'wrong', 'refused'].map((each) => `${count(each)} (${percent(count(each), all)})`),
      refusals,
      unreachable,
    ];
  });
  const repositories = [...new Map(rows.map((row) => [row.repo, row])).values()];
  const table = repositories.map(({ repo, stack }) => [
    repo,
    stack,
    ...planners.map((name) => of(name).find((row) => row.repo === repo)?.judgment.verdict),
  ]);
  return [
    `# Plans of the corpus, Dockerfiles ${hidden ? 'hidden' : 'as they are'}`,
    markdownTable(
      ['planner', 'repositories', 'right', 'wrong', 'refused', 'of the right, refusals', 'for want of the network'],
      counts,
    ),
    ...(note === undefined ? [] : [note]),
    ...(missing.length === 0 ? [] : [`Not available: ${missing.map(({ repo }) => repo).join(', ')}.`]),
    ...planners.flatMap((name) => faults(name, of(name))),
    ...ports(rows),
    '## Every repository',
    markdownTable(['repository', 'stack', ...planners], table),
    '',
  ].join('\n\n');
}

function faults(name: string, rows: readonly PlanRow[]): string[] {
  return ['wrong', 'refused'].flatMap((verdict) => {
    const chosen = rows.filter(({ judgment }) => judgment.verdict === verdict);
    if (chosen.length === 0) return [];
    const cells = chosen.map(({ repo, stack, judgment }) => [repo, stack, shorten(judgment.reason, 300)]);
    return [`## ${name}: ${verdict}`, markdownTable(['repository', 'stack', 'why'], cells)];
  });
}

/** The platform's own; an app that reads $PORT listens on it. */
const defaultPort = 8080;

/** A plan is not judged by its port, which an app may take from $PORT; a port of its own that differs is worth a look. */
function ports(rows: readonly PlanRow[]): string[] {
  const different = rows.filter(({ judgment, port, planned }) => {
    const named = planned.port !== undefined && planned.port !== defaultPort;
    return judgment.verdict === 'right' && port !== undefined && named && planned.port !== port;
  });
  if (different.length === 0) return [];
  const cells = different.map(({ repo, planner, port, planned }) => [repo, planner, port, planned.port]);
  return ['## Ports that differ', markdownTable(['repository', 'planner', 'expected', 'planned'], cells)];
}

const percent = (part: number, whole: number): string => (whole === 0 ? '–' : `${Math.round((100 * part) / whole)} %`);
