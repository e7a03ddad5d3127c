// Counts the colours of a PNG, which an empty picture has one of.
import assert from 'node:assert/strict';
import sharp from 'sharp';

export async function countColours(png: Uint8Array | undefined): Promise<number> {
  assert.ok(png !== undefined);
  const { data } = await sharp(png).removeAlpha().raw().toBuffer({ resolveWithObject: true });
  const colours = new Set<number>();
  for (let at = 0; at + 2 < data.length; at += 3) colours.add(data.readUIntBE(at, 3));
  return colours.size;
}
