// Text in lines of a width.
import { textWidth } from './text-width.ts';

/** Lines of a text that is broader than a chart. */
export function wrapped(text: string, width: number, size: number): string | string[] {
  const lines = text.split('\n').flatMap((line) => wrapLine(line, width, size));
  return lines.length > 1 ? lines : (lines[0] ?? '');
}

function wrapLine(line: string, width: number, size: number): string[] {
  if (textWidth(line, size, true) <= width) return [line];
  const lines: string[] = [];
  let current = '';
  // Words, and single letters of scripts without spaces.
  for (const part of line.split(/(?<=\s)|(?<=[\u2E80-\u9FFF\u3040-\u30FF\uAC00-\uD7A3\u0E00-\u0E7F])/u)) {
    if (current !== '' && textWidth(current + part, size, true) > width) {
      lines.push(current.trimEnd());
      current = '';
    }
    current += part;
  }
  return [...lines, current.trimEnd()];
}
