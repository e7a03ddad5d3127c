// Makes the text of strangers, such as the log of a build, safe to display: on one line, without control characters, and in
// bounded memory.

/** Longest line in characters; the rest is dropped. */
const longestLine = 4_000;

// C0 and C1 controls except the tab, line and paragraph separators, and direction marks.
// oxlint-disable-next-line no-control-regex -- controls are what this is about
const harmful = /[\u0000-\u0008\u000a-\u001f\u007f-\u009f\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069\ufeff]/g;

// Control sequences, terminal commands (titles, links) and everything else that begins with an escape. Node's
// stripVTControlCharacters is not used: it takes ten seconds for 64 KiB of unfinished commands. Here no part can match
// where the part before it could continue, so matching takes linear time.
const escapes =
  // oxlint-disable-next-line no-control-regex -- controls are what this is about
  /(?:\u001b\[|\u009b)[0-?]*[ -/]*[@-~]|(?:\u001b\]|\u009d)[^\u0007\u001b\u009c\u009d]*(?:\u0007|\u001b\\|\u009c)?|\u001b[ -/]*[0-~]/g;

/** Removes escape sequences and control characters from a line, and truncates it. @param longest in characters */
export function toHarmlessText(line: string, longest = longestLine): string {
  const clean = line.replace(escapes, '').replace(harmful, '');
  return clean.length <= longest ? clean : `${clean.slice(0, longest).replace(/[\ud800-\udbff]$/, '')} … (truncated)`;
}

/**
 * Cuts a byte stream into harmless lines. A carriage return ends a line too, since progress bars use it. Yields no empty
 * lines.
 */
export async function* readLogLines(bytes: AsyncIterable<Uint8Array>): AsyncGenerator<string, void, undefined> {
  // Characters beyond the limit are not shown anyway.
  for await (const line of splitLog(bytes, /[\r\n]+/, 4 * longestLine)) if (line !== '') yield toHarmlessText(line);
}

/** Cuts a byte stream at `ends` into lines as they were printed, each of at most `longest` characters or one chunk more. */
export async function* splitLog(
  bytes: AsyncIterable<Uint8Array>,
  ends: RegExp,
  longest: number,
): AsyncGenerator<string, void, undefined> {
  const decoder = new TextDecoder();
  let rest = '';
  for await (const chunk of bytes) {
    const parts = (rest + decoder.decode(chunk, { stream: true })).split(ends);
    // An endless line must not fill the memory.
    rest = (parts.pop() ?? '').slice(0, longest);
    yield* parts;
  }
  const last = rest + decoder.decode();
  if (last !== '') yield last;
}
