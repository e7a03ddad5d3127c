// Cuts a byte stream into lines of text, looking at each byte once however long a line is.
import { ApiError } from '../errors.ts';

/** Far above the largest object that the API server stores (1.5 MiB); past it, the peer is not an API server. */
const LONGEST_LINE = 32 * 1024 * 1024;
const NEWLINE = 0x0a;

/**
 * Yields each non-empty line without its newline. A rest without a newline at the end of the stream is a line cut off:
 * it is thrown as `ApiError` `Truncated`, never yielded.
 */
export async function* splitLines(stream: AsyncIterable<Uint8Array>): AsyncGenerator<string, void, undefined> {
  let parts: Uint8Array[] = [];
  let length = 0;
  for await (const chunk of stream) {
    let from = 0;
    for (let to = chunk.indexOf(NEWLINE); to >= 0; to = chunk.indexOf(NEWLINE, from)) {
      const line = joined(parts, chunk.subarray(from, to));
      parts = [];
      length = 0;
      from = to + 1;
      if (line !== '') yield line;
    }
    if (from < chunk.length) {
      parts.push(chunk.subarray(from));
      length += chunk.length - from;
    }
    if (length > LONGEST_LINE)
      throw new ApiError(0, 'TooLong', `A line of the stream is longer than ${LONGEST_LINE} bytes.`);
  }
  if (length > 0) throw new ApiError(0, 'Truncated', 'The stream ended in the middle of a line.');
}

function joined(parts: Uint8Array[], last: Uint8Array): string {
  const bytes =
    parts.length === 0 ? Buffer.from(last.buffer, last.byteOffset, last.byteLength) : Buffer.concat([...parts, last]);
  return bytes.toString('utf8').trim();
}
