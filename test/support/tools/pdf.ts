// Writes small PDFs for tests, a page of text each.

/** A PDF with these pages; `trailer` is added to its trailer, `objects` to its objects. */
export function pdf(
  pages: readonly string[],
  { trailer = '', objects = [] }: { trailer?: string; objects?: readonly string[] } = {},
): Uint8Array {
  const first = 4;
  const streams = pages.map(
    (text) =>
      `BT /F1 12 Tf 72 720 Td 14 TL ${text
        .split('\n')
        .map((line) => `(${line.replace(/[()\\]/g, '\\$&')}) Tj T*`)
        .join(' ')} ET`,
  );
  const all = [
    '<< /Type /Catalog /Pages 2 0 R >>',
    `<< /Type /Pages /Count ${pages.length} /Kids [${pages.map((_page, index) => `${first + 2 * index} 0 R`).join(' ')}] >>`,
    '<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>',
    ...streams.flatMap((stream, index) => [
      `<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Resources << /Font << /F1 3 0 R >> >> /Contents ${first + 2 * index + 1} 0 R >>`,
      `<< /Length ${stream.length} >>\nstream\n${stream}\nendstream`,
    ]),
    ...objects,
  ];
  let text = '%PDF-1.7\n';
  const offsets = all.map((object, index) => {
    const offset = text.length;
    text += `${index + 1} 0 obj\n${object}\nendobj\n`;
    return offset;
  });
  const table = offsets.map((offset) => `${String(offset).padStart(10, '0')} 00000 n \n`).join('');
  return Buffer.from(
    `${text}xref\n0 ${all.length + 1}\n0000000000 65535 f \n${table}trailer\n<< /Size ${all.length + 1} /Root 1 0 R ${trailer} >>\nstartxref\n${text.length}\n%%EOF\n`,
    'latin1',
  );
}
