// Finds the line that BuildKit points at: an excerpt of the Dockerfile with ">>>" before the lines meant.

export interface Excerpt {
  readonly file: string;
  readonly line: number;
  /** The lines meant, as they stand in the file. */
  readonly text: string;
}

/** The last excerpt in a text; undefined when there is none. */
export function excerptAt(text: string): Excerpt | undefined {
  const matches = [...text.matchAll(/^([^\n:]{1,300}):(\d{1,7})\n-{20}\n((?: +\d{1,7} \|[^\n]*\n?)+)/gm)];
  const last = matches.at(-1);
  if (last === undefined) return undefined;
  const meant = [...(last[3] ?? '').matchAll(/^ +(\d+) \| >>> ?(.*)$/gm)];
  return {
    file: last[1] ?? '',
    line: Number(meant[0]?.[1] ?? last[2]),
    text: meant.map((match) => match[2] ?? '').join('\n'),
  };
}
