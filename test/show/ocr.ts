// Reads scanned pages in every language that ocr_image offers: a known text is drawn, made to look scanned, put into a
// PDF and read. Prints how much of it came back, and keeps the pages to be looked at.
//   npm run show:ocr -- --out /tmp/ocr [--publish docs/measured/ocr.md]
import { mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { distance } from 'fastest-levenshtein';
import sharp from 'sharp';
import { z } from 'zod';
import { ocrLanguages, createOcrImageTool } from '../../api/tools/builtin/ocr-image/ocr-image.ts';
import { resolveLanguageFile } from '../../api/tools/builtin/ocr-image/thread.ts';
import { createWorkers } from '../../api/tools/engine/workers/pool.ts';
import { readCommandLine } from '../../lib/command-line.ts';
import { call, servicesWith } from '../support/tools/call.ts';
import { scannedPage, scannedPdf } from '../support/tools/scan.ts';

const usage = 'usage: npm run show:ocr -- --out DIR [--publish FILE]';
const { out, publish } = readCommandLine(
  { usage, options: { out: { type: 'string', default: '' }, publish: { type: 'string', default: '' } } },
  ({ values }) => ({ out: values.out, publish: values.publish }),
);
if (out === '') throw new Error(usage);

const corpus = z
  .object({ source: z.string(), texts: z.record(z.string(), z.string()) })
  .parse(JSON.parse(readFileSync(new URL('../corpus/ocr/texts.json', import.meta.url), 'utf8')));
/** Fonts of Debian: fonts-noto-core and fonts-noto-cjk. */
const fonts: Readonly<Record<string, string>> = {
  ara: 'Noto Naskh Arabic',
  hin: 'Noto Sans Devanagari',
  chi_sim: 'Noto Serif CJK SC',
  chi_tra: 'Noto Serif CJK TC',
  jpn: 'Noto Serif CJK JP',
  kor: 'Noto Serif CJK KR',
};
const answer = z.object({ text: z.string(), confidence: z.number() });
const workers = createWorkers();
const tool = createOcrImageTool(servicesWith({ workers }));
mkdirSync(out, { recursive: true });

const rows: string[] = [];
for (const { code, name } of ocrLanguages) {
  const text = corpus.texts[code] ?? '';
  const page = await scannedPage({ text, font: fonts[code] ?? 'DejaVu Serif' });
  writeFileSync(join(out, `${code}.png`), await sharp(page).png().toBuffer());
  const since = performance.now();
  const data = Buffer.from(scannedPdf([page])).toString('base64');
  const { text: read, confidence } = answer.parse((await call(tool, { data, language: code })).result);
  const ms = performance.now() - since;
  writeFileSync(join(out, `${code}.txt`), `${text}\n\n${read}\n`);
  const [wanted, got] = [plain(text), plain(read)];
  const right = 1 - distance(wanted, got) / wanted.length;
  rows.push(
    `| ${code} | ${name} | ${(right * 100).toFixed(1)} % | ${confidence.toFixed(0)} | ${megabytes(code)} MB | ${(ms / 1000).toFixed(1)} s |`,
  );
  process.stdout.write(`${rows.at(-1) ?? ''}\n`);
}
await workers.close();
if (publish !== '') writeFileSync(publish, report());

/** Spaces and line ends are where lines were broken, and between Chinese characters anywhere. */
function plain(text: string): string {
  return text.normalize('NFKC').replaceAll(/[\s\u200e\u200f]/g, '');
}

function megabytes(code: string): string {
  return (statSync(resolveLanguageFile(code)).size / 1e6).toFixed(1);
}

function report(): string {
  return `# OCR

Written by \`npm run show:ocr -- --out DIR --publish docs/measured/ocr.md\`: a known text (${corpus.source}) is drawn, turned by 0.4 degrees, blurred, made noisy, compressed as JPEG of 150 dots to the inch and put into a PDF, which \`ocr_image\` reads. Right is one less the edit distance to the text, without spaces, by its length. DIR gets the pages and what was read. The size is that of the language's data in the images; the time is that of a first call in the language, which starts Tesseract.

| code | language | right | confidence | data | time |
|---|---|---|---|---|---|
${rows.join('\n')}
`;
}
