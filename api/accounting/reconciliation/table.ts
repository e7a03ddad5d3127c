// A reconciliation as text for a terminal.
import { formatUsd } from '../../billing/index.ts';
import { apartTitles, causes, comparisonTitles, lineTitles } from './words.ts';
import type { ComparisonResult, Reconciliation } from './result.ts';

interface Row {
  readonly name: string;
  readonly left: string;
  readonly right: string;
}

const outcomes: Readonly<Record<ComparisonResult['outcome'], string>> = {
  equal: 'equal',
  explained: 'explained',
  different: 'DIFFERENT',
  not_known: 'not known',
};

/** Lines that end with a newline. */
export function tableOf(made: Reconciliation): string {
  const { events, usd } = made.unexplained;
  const head = `${made.day} (UTC)${made.complete ? '' : ', until now'}, compared at ${made.made_at}\n`;
  const end =
    events === 0
      ? 'Nothing is unexplained.'
      : `Unexplained: ${events}, ${formatUsd(usd)}.${made.explanation === null ? '' : ` Explained by hand: ${made.explanation}`}`;
  return `${head}\n${made.comparisons.map(comparisonText).join('\n')}\n${end}\n${made.waits ? 'Something of it is still awaited; it is compared again.\n' : ''}`;
}

function comparisonText(one: ComparisonResult): string {
  const rows = one.lines.map((line): Row => ({
    name: line.of === null ? lineTitles[line.name] : `${lineTitles[line.name]} ${line.of}`,
    left: amount(line.left),
    right: amount(line.right),
  }));
  const differences = one.differences.map(
    (difference) =>
      `  ${difference.explained ? ' ' : '!'} ${amount(difference)}: ${causes[difference.kind]}${difference.subject === null ? '' : ` (${difference.subject})`}${difference.detail === null ? '' : `, ${difference.detail}`}`,
  );
  return [
    `${comparisonTitles[one.name]}: ${outcomes[one.outcome]}${one.reason === null ? '' : `, because ${one.reason}`}`,
    ...aligned(rows),
    ...one.apart.map(({ kind, ...sum }) => `    apart: ${amount(sum)} ${apartTitles[kind]}`),
    ...differences,
    ...(one.left_off === 0 ? [] : [`    and ${one.left_off} more`]),
    '',
  ].join('\n');
}

function aligned(rows: readonly Row[]): string[] {
  const width = (of: (row: Row) => string): number => Math.max(0, ...rows.map((row) => of(row).length));
  const [name, left, right] = [width((row) => row.name), width((row) => row.left), width((row) => row.right)];
  return rows.map(
    (row) =>
      `    ${row.name.padEnd(name)}  ${row.left.padStart(left)}  ${row.left === row.right ? '=' : '≠'}  ${row.right.padStart(right)}`,
  );
}

function amount({ events, usd }: { readonly events: number; readonly usd: string }): string {
  return usd === '0' ? String(events) : `${events}, ${formatUsd(usd)}`;
}
