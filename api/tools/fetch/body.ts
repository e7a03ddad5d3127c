// Reads a body to its end, decompressed, and stops as soon as it is larger than it may be.
import { Transform, Writable, type Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { constants, createBrotliDecompress, createGunzip, createInflate, createZstdDecompress } from 'node:zlib';

/** Thrown when there are more bytes than may be read. */
export class TooLarge extends Error {
  override readonly name = 'TooLarge';
}

/** Thrown for a body that cannot be decompressed. */
export class BadEncoding extends Error {
  override readonly name = 'BadEncoding';
}

/** For Accept-Encoding. */
export const acceptedEncodings = 'gzip, br, zstd';

/** Encodings on top of each other that are undone. */
const maxEncodings = 2;
/** What compression can add to a body that does not shrink. */
const encodedExtra = 65_536;

const decoders: Readonly<Record<string, () => Transform>> = {
  gzip: createGunzip,
  'x-gzip': createGunzip,
  deflate: createInflate,
  br: createBrotliDecompress,
  // A window above 8 MiB is not for the web (RFC 9659), only for using up memory.
  zstd: () => createZstdDecompress({ params: { [constants.ZSTD_d_windowLogMax]: 23 } }),
};

/** Reads at most `maxBytes`, counted before and after decompression. @throws TooLarge, BadEncoding */
export async function readBody(body: Readable, contentEncoding: string, maxBytes: number): Promise<Uint8Array> {
  const chunks: Uint8Array[] = [];
  const sink = new Writable({
    write(chunk: Uint8Array, _encoding, callback) {
      chunks.push(chunk);
      callback();
    },
  });
  await pipeline([body, limit(maxBytes + encodedExtra), ...decodersOf(contentEncoding), limit(maxBytes), sink]).catch(
    (error: unknown) => {
      throw isZlibError(error)
        ? new BadEncoding('the body is not compressed as its Content-Encoding header says', { cause: error })
        : error;
    },
  );
  return Buffer.concat(chunks);
}

function decodersOf(contentEncoding: string): Transform[] {
  const names = contentEncoding
    .split(',')
    .map((name) => name.trim().toLowerCase())
    .filter((name) => name !== '' && name !== 'identity');
  if (names.length > maxEncodings) throw new BadEncoding('the body is compressed too many times');
  // Listed in the order in which they were applied.
  return names.reverse().map((name) => {
    const make = Object.hasOwn(decoders, name) ? decoders[name] : undefined;
    if (make === undefined) throw new BadEncoding('the body has an unsupported Content-Encoding');
    return make();
  });
}

function limit(maximum: number): Transform {
  let size = 0;
  return new Transform({
    transform(chunk: Uint8Array, _encoding, callback) {
      size += chunk.length;
      if (size > maximum) callback(new TooLarge());
      else callback(null, chunk);
    },
  });
}

function isZlibError(error: unknown): boolean {
  return (
    error instanceof Error &&
    'code' in error &&
    typeof error.code === 'string' &&
    /^(?:Z_|ERR__ERROR|ERR_BROTLI|ERR_PADDING|ZSTD_|ERR_ZSTD|ERR_TRAILING)/.test(error.code)
  );
}
