// Splits a command into its words as Docker Compose does: by blanks, with quotes and backslashes, and no shell.

/** One piece of a word: plain, in double quotes, in single quotes, after a backslash; or the blanks between words. */
const piece = /\\([\s\S])|"((?:[^"\\]|\\[\s\S]){0,4000})"|'([^']{0,4000})'|([^\s"'\\]{1,4000})|(\s{1,4000})/y;

/** The words of a command; undefined when a quote is left open. */
export function words(command: string): string[] | undefined {
  const text = command.slice(0, 4_000).trim();
  const found: string[] = [];
  let isNew = true;
  piece.lastIndex = 0;
  while (piece.lastIndex < text.length) {
    const match = piece.exec(text);
    if (match === null) return undefined;
    const isBlank = match[5] !== undefined;
    if (!isBlank) found.push(isNew ? textOf(match) : `${found.pop() ?? ''}${textOf(match)}`);
    isNew = isBlank;
  }
  return found;
}

function textOf([, escaped, double, single, plain]: RegExpExecArray): string {
  return escaped ?? double?.replaceAll(/\\([\s\S])/g, '$1') ?? single ?? plain ?? '';
}
