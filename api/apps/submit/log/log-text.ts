// Lines of a stranger's log, made harmless for whatever shows them, in bounded memory.

/** Characters of a line that are kept; the rest of it is dropped. */
const longestLine = 4_000;

// C0 and C1 controls but the tab, line and paragraph separators, and what turns the direction of writing.
// oxlint-disable-next-line no-control-regex -- controls are what this is about
const harmful = /[\u0000-\u0008\u000a-\u001f\u007f-\u009f\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069\ufeff]/g;

// Control sequences, commands to the terminal (titles, links), and what else begins with an escape. Of our own and not
// Node's
// stripVTControlCharacters, which takes ten seconds for 64 KiB of unfinished commands. No part can match where the one
// before it may go on.
const escapes =
  // oxlint-disable-next-line no-control-regex -- controls are what this is about
  /(?:\u001b\[|\u009b)[0-?]*[ -/]*[@-~]|(?:\u001b\]|\u009d)[^\u0007\u001b\u009c\u009d]*(?:\u0007|\u001b\\|\u009c)?|\u001b[ -/]*[0-~]/g;

/** Removes escape sequences and control characters from a line, and truncates it. */
export function harmless(line: string): string {
  const clean = line.replace(escapes, '').replace(harmful, '');
  return clean.length <= longestLine
    ? clean
    : `${clean.slice(0, longestLine).replace(/[\ud800-\udbff]$/, '')} … (truncated)`;
}

/**
 * Cuts a byte stream into harmless lines. A carriage return ends a line too, as progress bars use it; no line is empty.
 */
export async function* logLines(bytes: AsyncIterable<Uint8Array>): AsyncGenerator<string, void, undefined> {
  const decoder = new TextDecoder();
  let rest = '';
  for await (const chunk of bytes) {
    const parts = (rest + decoder.decode(chunk, { stream: true })).split(/[\r\n]+/);
    // A line that never ends must not fill the memory: what is beyond the bound is not shown anyway.
    rest = (parts.pop() ?? '').slice(0, 4 * longestLine);
    for (const part of parts) if (part !== '') yield harmless(part);
  }
  const last = rest + decoder.decode();
  if (last !== '') yield harmless(last);
}
