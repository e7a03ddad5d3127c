// The bytes in a `data` field: base64, in either alphabet, or a data: URL (RFC 2397).
import type { FieldError } from '../../../lib/problem.ts';
import { createValidationProblem } from '../../http/index.ts';

export interface DataBytes {
  readonly bytes: Uint8Array;
  /** As a data: URL says, with its parameters; empty for plain base64. */
  readonly contentType: string;
}

/** @throws Problem (invalid-request) that names the field */
export function dataBytes(data: string): DataBytes {
  if (!/^data:/i.test(data)) return { bytes: fromBase64(data), contentType: '' };
  const comma = data.indexOf(',');
  if (comma < 0) throw refusal('is a data: URL without a comma', 'Send data:<media type>;base64,<bytes in base64>.');
  const [type = '', ...parameters] = data
    .slice('data:'.length, comma)
    .split(';')
    .map((part) => part.trim());
  const content = data.slice(comma + 1);
  const isBase64 = parameters.at(-1)?.toLowerCase() === 'base64';
  const contentType = [type, ...(isBase64 ? parameters.slice(0, -1) : parameters)].filter(Boolean).join('; ');
  // RFC 2397 lets a URL leave out that it is text.
  return {
    bytes: isBase64 ? fromBase64(content) : fromPercent(content),
    contentType: contentType === '' ? 'text/plain' : contentType,
  };
}

function fromBase64(text: string): Uint8Array {
  // Query parsing turns + into a space; lines of base64 end where they like.
  const characters = text
    .replaceAll(/[\r\n\t]+/g, '')
    .replaceAll(' ', '+')
    .replaceAll('-', '+')
    .replaceAll('_', '/');
  const bare = characters.replace(/={1,2}$/, '');
  if (bare === '' || /[^A-Za-z0-9+/]/.test(bare) || bare.length % 4 === 1)
    throw refusal(
      bare === '' ? 'is empty' : 'is not base64',
      'Send the bytes of the file in base64, or as data:<media type>;base64,<bytes>.',
    );
  return Buffer.from(bare, 'base64');
}

function fromPercent(text: string): Uint8Array {
  const bytes = Buffer.from(text, 'utf8');
  const decoded = Buffer.alloc(bytes.length);
  let size = 0;
  for (let at = 0; at < bytes.length; at++) {
    const code = /^%[0-9a-f]{2}$/i.exec(bytes.toString('latin1', at, at + 3))?.[0];
    decoded[size++] = code === undefined ? (bytes[at] ?? 0) : Number.parseInt(code.slice(1), 16);
    if (code !== undefined) at += 2;
  }
  if (size === 0) throw refusal('is empty', 'Send the bytes of the file in base64.');
  return decoded.subarray(0, size);
}

function refusal(message: string, fix: string): ReturnType<typeof createValidationProblem> {
  return createValidationProblem([{ in: 'query', field: 'data', message, fix } satisfies FieldError]);
}
