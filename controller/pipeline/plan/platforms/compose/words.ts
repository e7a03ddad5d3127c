// Splits a command into its words as Docker Compose does: by blanks, with quotes and backslashes, and no shell.

/** The words of a command; undefined when a quote is left open. */
export function words(command: string): string[] | undefined {
  const found: string[] = [];
  let word: string | undefined;
  let quote = '';
  const text = command.slice(0, 4_000);
  for (let at = 0; at < text.length; at += 1) {
    const character = text.charAt(at);
    if (character === '\\' && quote !== "'") {
      at += 1;
      word = (word ?? '') + text.charAt(at);
    } else if (quote !== '') {
      if (character === quote) quote = '';
      else word = (word ?? '') + character;
    } else if (character === '"' || character === "'") {
      quote = character;
      word ??= '';
    } else if (/\s/.test(character)) {
      if (word !== undefined) found.push(word);
      word = undefined;
    } else word = (word ?? '') + character;
  }
  if (word !== undefined) found.push(word);
  return quote === '' ? found : undefined;
}
