// A statement as CSV: a row a line, and nothing that is not in the JSON.
import { csvLine } from '../../../../lib/csv.ts';
import { statementLine, type StatementView } from './view.ts';

const columns = Object.keys(statementLine.shape) as (keyof StatementView['lines'][number])[];

export function statementCsv({ lines }: StatementView): string {
  return [csvLine(columns), ...lines.map((line) => csvLine(columns.map((column) => line[column])))].join('');
}
