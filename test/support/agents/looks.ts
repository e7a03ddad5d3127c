// What an agent sees in a result: pictures opened, documents unpacked.
import assert from 'node:assert/strict';
import JSZip from 'jszip';
import sharp from 'sharp';

/** Opens a picture; a blank one is no picture. @returns its kind and size */
export async function lookAtPicture(bytes: Uint8Array): Promise<string> {
  const { format, width, height } = await sharp(bytes).metadata();
  const { entropy } = await sharp(bytes).stats();
  assert.ok(entropy > 0.01, `a blank picture of ${width} × ${height}`);
  return `${format} of ${width} × ${height}`;
}

/** The texts on the slides of a deck, in their order. */
export async function lookAtDeck(bytes: Uint8Array): Promise<string[]> {
  const { files } = await JSZip.loadAsync(bytes);
  const names = Object.keys(files).filter((name) => /^ppt\/slides\/slide\d+\.xml$/.test(name));
  return Promise.all(
    names
      .toSorted((one, other) => readNumber(one) - readNumber(other))
      .map(async (name) => {
        const xml = (await files[name]?.async('string')) ?? '';
        return [...xml.matchAll(/<a:t>([^<]*)<\/a:t>/g)].map(([, text = '']) => text).join(' ');
      }),
  );
}

const readNumber = (name: string): number => Number(/\d+/.exec(name)?.[0]);
