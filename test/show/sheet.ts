// A sheet of pictures with their names, to be looked at.
import { join } from 'node:path';
import sharp from 'sharp';
import { drawPng } from '../../api/tools/svg/draw.ts';

export interface Shown {
  readonly name: string;
  readonly png: Uint8Array;
}

const tile = { width: 620, height: 460 };
const columns = 2;
const perSheet = 6;

/** Writes as many sheets as the pictures need: `<name>-00.png` and so on. */
export async function sheets(folder: string, name: string, pictures: readonly Shown[]): Promise<void> {
  for (let from = 0; from < pictures.length; from += perSheet)
    await sheet(
      join(folder, `${name}-${String(from / perSheet).padStart(2, '0')}.png`),
      pictures.slice(from, from + perSheet),
    );
}

async function sheet(file: string, pictures: readonly Shown[]): Promise<void> {
  const parts = await Promise.all(
    pictures.map(async ({ name, png }, index) => {
      const left = (index % columns) * tile.width;
      const top = Math.floor(index / columns) * tile.height;
      const small = await sharp(png)
        .resize({ width: tile.width - 20, height: tile.height - 40, fit: 'inside', withoutEnlargement: true })
        .toBuffer();
      const text = name.replaceAll('&', '&amp;').replaceAll('<', '&lt;');
      const { bytes: label } = drawPng(
        `<svg xmlns="http://www.w3.org/2000/svg" width="${tile.width}" height="24"><text x="8" y="17" font-family="sans-serif" font-size="14" fill="#b00">${text}</text></svg>`,
        1,
      );
      return [
        { input: Buffer.from(label), left, top },
        { input: small, left: left + 8, top: top + 28 },
      ];
    }),
  );
  const height = Math.ceil(pictures.length / columns) * tile.height;
  await sharp({ create: { width: tile.width * columns, height, channels: 3, background: 'white' } })
    .composite(parts.flat())
    .png()
    .toFile(file);
}
