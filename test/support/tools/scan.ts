// Makes what a scanner makes: text as a picture, a little crooked, grey and noisy, in a PDF without any text.
import sharp from 'sharp';

export interface PageText {
  readonly text: string;
  /** A font of the system, or the one in the file. */
  readonly font: string;
  readonly fontFile?: string;
}

const [width, height] = [1_240, 700];
const margin = 100;

/** A JPEG of 150 dots to the inch. Pango draws, which shapes every script and turns the direction. */
export async function scannedPage({ text, font, fontFile }: PageText): Promise<Buffer> {
  const words = await sharp({
    text: {
      text,
      font: `${font} 14`,
      ...(fontFile === undefined ? {} : { fontfile: fontFile }),
      dpi: 150,
      width: width - 2 * margin,
      spacing: 14,
      rgba: true,
    },
  })
    .png()
    .toBuffer();
  const noise = await sharp({
    create: { width, height, channels: 3, background: '#fff', noise: { type: 'gaussian', mean: 240, sigma: 12 } },
  })
    .png()
    .toBuffer();
  const written = await sharp({ create: { width, height, channels: 3, background: '#f4f1ea' } })
    .composite([
      { input: words, left: margin, top: margin },
      { input: noise, blend: 'multiply' },
    ])
    .png()
    .toBuffer();
  return sharp(written)
    .rotate(0.4, { background: '#f4f1ea' })
    .resize(width, height, { fit: 'fill' })
    .blur(0.6)
    .jpeg({ quality: 70 })
    .toBuffer();
}

/** A PDF with a picture on each page. */
export function scannedPdf(jpegs: readonly Buffer[]): Uint8Array {
  const first = 3;
  const [wide, high] = [(width * 72) / 150, (height * 72) / 150];
  const stream = `q ${wide} 0 0 ${high} 0 0 cm /I Do Q`;
  const objects: (string | Buffer)[][] = [
    ['<< /Type /Catalog /Pages 2 0 R >>'],
    [
      `<< /Type /Pages /Count ${jpegs.length} /Kids [${jpegs.map((_, index) => `${first + 3 * index} 0 R`).join(' ')}] >>`,
    ],
    ...jpegs.flatMap((jpeg, index) => [
      [
        `<< /Type /Page /Parent 2 0 R /MediaBox [0 0 ${wide} ${high}] /Resources << /XObject << /I ${first + 3 * index + 2} 0 R >> >> /Contents ${first + 3 * index + 1} 0 R >>`,
      ],
      [`<< /Length ${stream.length} >>\nstream\n${stream}\nendstream`],
      [
        `<< /Type /XObject /Subtype /Image /Width ${width} /Height ${height} /ColorSpace /DeviceRGB /BitsPerComponent 8 /Filter /DCTDecode /Length ${jpeg.length} >>\nstream\n`,
        jpeg,
        '\nendstream',
      ],
    ]),
  ];
  const parts: Buffer[] = [Buffer.from('%PDF-1.7\n')];
  const offsets = objects.map((object, index) => {
    const at = parts.reduce((sum, { length }) => sum + length, 0);
    parts.push(
      Buffer.from(`${index + 1} 0 obj\n`),
      ...object.map((part) => Buffer.from(part)),
      Buffer.from('\nendobj\n'),
    );
    return at;
  });
  const end = parts.reduce((sum, { length }) => sum + length, 0);
  const table = offsets.map((offset) => `${String(offset).padStart(10, '0')} 00000 n \n`).join('');
  const count = objects.length + 1;
  parts.push(
    Buffer.from(
      `xref\n0 ${count}\n0000000000 65535 f \n${table}trailer\n<< /Size ${count} /Root 1 0 R >>\nstartxref\n${end}\n%%EOF\n`,
    ),
  );
  return Buffer.concat(parts);
}
