// Keeps many texts that resemble each other in little memory: the first one seen is the dictionary by which the others
// are deflated.
import { deflateRawSync, inflateRawSync } from 'node:zlib';

export interface SimilarTexts {
  /** A short string of bytes, to be given to {@link unpack} of the same instance. */
  pack(text: string): string;
  unpack(packed: string): string;
}

/** zlib looks this far back, so a longer dictionary is of no use. */
const maximumDictionary = 32 * 1024;

export function similarTexts(): SimilarTexts {
  let dictionary: Buffer | undefined;
  return {
    pack(text) {
      dictionary ??= Buffer.from(text).subarray(-maximumDictionary);
      // A string of single bytes lies in V8's heap as it is; a Buffer would cost several times its bytes beside it.
      return deflateRawSync(text, { dictionary }).toString('latin1');
    },
    unpack: (packed) => inflateRawSync(Buffer.from(packed, 'latin1'), { dictionary }).toString(),
  };
}
