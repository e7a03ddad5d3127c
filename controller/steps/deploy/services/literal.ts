// Writes texts into environment values, where Kubernetes replaces $(NAME) and reads $$ as one dollar.

/** A part of a value that others follow, which must not form a reference with it. */
export function escaped(part: string): string {
  return part.replaceAll('$', '$$$$');
}

/** A text that comes out of the expansion as it went in. */
export function literal(text: string): string {
  return text.includes('$(') || text.includes('$$') ? escaped(text) : text;
}
