// Makes untrusted text safe to display, and shortens it by bytes without splitting a character.

// oxlint-disable-next-line no-control-regex
const escapeSequences = /\u001b(?:\[[0-9;?]*[ -/]*[@-~]|\][^\u0007\u001b]*(?:\u0007|\u001b\\)?|[@-Z\\-_])/g;
// oxlint-disable-next-line no-control-regex
const controlCharacters = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff]/g;

/**
 * Removes terminal escapes, control characters (except newline and tab) and direction overrides; replaces lone
 * surrogates.
 */
export function clean(text: string): string {
  return text.replace(/\r\n?/g, '\n').replace(escapeSequences, '').replace(controlCharacters, '').toWellFormed();
}

/** Puts text on one line, for messages. */
export function toOneLine(text: string): string {
  return clean(text).replace(/\s+/g, ' ').trim();
}

/** Returns the first `bytes` bytes (UTF-8) of a text, ending in "…" if it was cut. */
export function keepHead(text: string, bytes: number): string {
  const buffer = Buffer.from(text);
  if (buffer.length <= bytes) return text;
  const room = Math.max(0, bytes - 3);
  return `${decode(buffer.subarray(0, findBoundary(buffer, room)))}…`.slice(0, bytes < 3 ? 0 : undefined);
}

/**
 * Returns the last `bytes` bytes (UTF-8) of a text, starting with "…" if it was cut, at a line start if one is near.
 */
export function keepTail(text: string, bytes: number): string {
  const buffer = Buffer.from(text);
  if (buffer.length <= bytes) return text;
  if (bytes < 3) return '';
  const rest = decode(buffer.subarray(findBoundary(buffer, buffer.length - bytes + 3, 1)));
  const newline = rest.indexOf('\n');
  return `…${newline >= 0 && newline < 200 && newline < rest.length - 1 ? rest.slice(newline + 1) : rest}`;
}

/** Finds the start of a character at or before (`step` -1) or after (1) an offset. */
function findBoundary(buffer: Buffer, offset: number, step: -1 | 1 = -1): number {
  let index = offset;
  while (index > 0 && index < buffer.length && ((buffer[index] ?? 0) & 0xc0) === 0x80) index += step;
  return index;
}

function decode(buffer: Buffer): string {
  return buffer.toString('utf8');
}

/** Formats bytes for people: 1.5 MiB. */
export function formatBytes(bytes: number): string {
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];
  let value = bytes;
  let unit = 0;
  while (value >= 1024 && unit < units.length - 1) {
    value /= 1024;
    unit += 1;
  }
  return `${Number(value.toFixed(1))} ${units[unit] ?? 'B'}`;
}
