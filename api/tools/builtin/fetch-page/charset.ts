// Decodes the bytes of a page, by its byte order mark, its Content-Type or its own declaration, in the order of the HTML
// standard.
import { TextDecoder } from 'node:util';

/** Decodes; what is not valid in the encoding becomes replacement characters. */
export function decode(bytes: Uint8Array, contentType: string, isHtml: boolean): string {
  const named = markOf(bytes) ?? labelIn(contentType) ?? (isHtml ? declared(bytes) : undefined);
  const decoder = named === undefined ? undefined : decoderFor(named);
  return (decoder ?? guessed(bytes)).decode(bytes);
}

function markOf(bytes: Uint8Array): string | undefined {
  if (bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf) return 'utf-8';
  if (bytes[0] === 0xfe && bytes[1] === 0xff) return 'utf-16be';
  if (bytes[0] === 0xff && bytes[1] === 0xfe) return 'utf-16le';
  return undefined;
}

function labelIn(text: string): string | undefined {
  return /charset\s*=\s*["']?\s*([\w.:-]+)/i.exec(text)?.[1];
}

/** Named by a meta element within the first 1024 bytes, which can be read as it is written in ASCII. */
function declared(bytes: Uint8Array): string | undefined {
  const start = new TextDecoder('latin1').decode(bytes.subarray(0, 1_024));
  const label = labelIn(/<meta[^>]*charset[^>]*>/i.exec(start)?.[0] ?? '');
  // What could be read as ASCII is not UTF-16, whatever it says.
  return label !== undefined && /^utf-16/i.test(label) ? 'utf-8' : label;
}

function decoderFor(label: string): TextDecoder | undefined {
  try {
    return new TextDecoder(label);
  } catch {
    return undefined;
  }
}

function guessed(bytes: Uint8Array): TextDecoder {
  try {
    new TextDecoder('utf-8', { fatal: true }).decode(bytes);
    return new TextDecoder('utf-8');
  } catch {
    return new TextDecoder('windows-1252');
  }
}
