// Tables in markdown, and lines of JSON.
import { appendFile, mkdir, writeFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import { keepHead } from '../../controller/pipeline/text.ts';

type Cell = string | number | undefined;

/** A table of GitHub's markdown; what a cell says stays on one line. */
export function markdownTable(heads: readonly string[], rows: readonly (readonly Cell[])[]): string {
  const line = (cells: readonly Cell[]): string => `| ${cells.map(plain).join(' | ')} |`;
  return [line(heads), `|${heads.map(() => '---').join('|')}|`, ...rows.map(line)].join('\n');
}

function plain(cell: Cell): string {
  return String(cell ?? '')
    .replaceAll(/\s+/g, ' ')
    .replaceAll('|', '\\|')
    .trim();
}

/** At most so many characters of a text, on a character's end. */
export function shorten(text: string, maximum: number): string {
  return keepHead(text.replaceAll(/\s+/g, ' ').trim(), maximum);
}

export async function writeText(path: string, text: string): Promise<void> {
  await mkdir(dirname(path), { recursive: true });
  await writeFile(path, text);
}

export async function appendLine(path: string, value: unknown): Promise<void> {
  await mkdir(dirname(path), { recursive: true });
  await appendFile(path, `${JSON.stringify(value)}\n`);
}
