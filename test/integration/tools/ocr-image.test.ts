// ocr_image reads what can be seen, line by line, with what is installed and nothing from the net.
import assert from 'node:assert/strict';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import sharp from 'sharp';
import { afterAll, beforeAll, describe, it } from 'vitest';
import { z } from 'zod';
import { createOcrImageTool } from '../../../api/tools/builtin/ocr-image/ocr-image.ts';
import type { ToolDependencies } from '../../../api/tools/tool.ts';
import type { Tool } from '../../../api/tools/tool.ts';
import { Problem } from '../../../lib/problem.ts';
import { runTool } from '../../support/tools/context.ts';
import { page, startWeb, type Web } from '../../support/tools/fetch/web.ts';
import { lettersPng } from '../../support/tools/letters.ts';
import { pdf } from '../../support/tools/pdf.ts';
import { scannedPage, scannedPdf } from '../../support/tools/scan.ts';
import { urlServices } from '../../support/tools/url-services.ts';

const shape = z.object({
  url: z.string(),
  language: z.string(),
  text: z.string(),
  confidence: z.number(),
  width: z.int(),
  height: z.int(),
  lines: z.array(
    z.object({
      page: z.int(),
      text: z.string(),
      confidence: z.number(),
      x: z.int(),
      y: z.int(),
      width: z.int(),
      height: z.int(),
    }),
  ),
  pages: z.array(z.looseObject({ page: z.int(), text: z.string() })).optional(),
  total_pages: z.int().optional(),
  truncated: z.boolean().optional(),
});

const german = 'Größere Schiffe laufen häufig über die Flüsse ein.';
const english = 'Larger ships often call at the outer harbour.';
const ukrainian = 'Всі люди народжуються вільними і рівними у своїй гідності та правах.';
const fontFile = join(
  dirname(createRequire(import.meta.url).resolve('dejavu-fonts-ttf/package.json')),
  'ttf',
  'DejaVuSerif.ttf',
);
const scanned = async (text: string): Promise<Buffer> => scannedPage({ text, font: 'DejaVu Serif', fontFile });
const blank = async (): Promise<Buffer> =>
  sharp({ create: { width: 1_240, height: 700, channels: 3, background: '#fff' } })
    .jpeg()
    .toBuffer();
const locked = `/Encrypt << /Filter /Standard /V 2 /R 3 /Length 128 /P -4 /O <${'ab'.repeat(32)}> /U <${'cd'.repeat(32)}> >> /ID [<00112233445566778899aabbccddeeff> <00112233445566778899aabbccddeeff>]`;
const oneLine = (text: string): string => text.replaceAll(/\s+/g, ' ');

describe('ocr_image', () => {
  let web: Web;
  let services: ToolDependencies;
  let tool: Tool;
  const read = async (path: string, more: Record<string, unknown> = {}): Promise<z.output<typeof shape>> =>
    shape.parse((await runTool(tool, { url: `${web.url}${path}`, ...more })).result);
  const refuses = async (
    path: string,
    slug: string,
    words: RegExp,
    more: Record<string, unknown> = {},
  ): Promise<void> =>
    assert.rejects(
      read(path, more),
      (error) => error instanceof Problem && error.type.slug === slug && words.test(error.message),
      path,
    );

  beforeAll(async () => {
    const png = await lettersPng(['MOORINGS HOLD', 'A SHIP AT 1984']);
    web = await startWeb({
      '/text.png': page('image/png', png),
      '/text.webp': page('image/webp', await sharp(png).webp({ quality: 90 }).toBuffer()),
      '/blank.png': page(
        'image/png',
        await sharp({ create: { width: 200, height: 100, channels: 3, background: '#fff' } })
          .png()
          .toBuffer(),
      ),
      '/tiny.png': page(
        'image/png',
        await sharp({ create: { width: 1, height: 1, channels: 3, background: '#fff' } })
          .png()
          .toBuffer(),
      ),
      '/scan.pdf': page(
        'application/pdf',
        scannedPdf([await scanned(german), await scanned(english), await scanned(german)]),
      ),
      '/long.pdf': page('application/pdf', scannedPdf(Array<Buffer>(12).fill(await blank()))),
      '/ukr.pdf': page('application/octet-stream', scannedPdf([await scanned(ukrainian)])),
      '/text.pdf': page('application/pdf', pdf(['Ships have text too', 'and pages'])),
      '/locked.pdf': page('application/pdf', pdf(['secret'], { trailer: locked })),
      '/cut.pdf': page('application/pdf', Buffer.from('%PDF-1.7\nnothing')),
      '/none': page('image/png', 'nothing'),
    });
    services = urlServices([web.host]);
    tool = createOcrImageTool(services);
  });
  afterAll(async () => {
    await web.close();
    await services.workers.close();
  });

  for (const path of ['/text.png', '/text.webp']) {
    it(`reads ${path}`, async () => {
      const found = await read(path, { language: 'en' });
      assert.deepEqual(
        found.text.split('\n').filter((line) => line !== ''),
        ['MOORINGS HOLD', 'A SHIP AT 1984'],
      );
      assert.ok(found.confidence > 60, String(found.confidence));
      assert.equal(found.language, 'eng');
      assert.equal(found.lines.length, 2);
      assert.ok((found.lines[1]?.y ?? 0) > (found.lines[0]?.y ?? 0) + (found.lines[0]?.height ?? 0) - 5);
    });
  }

  it('reports that there is no text', async () => {
    assert.equal((await read('/blank.png')).text, '');
  });
  it('reads nothing in a dot', async () => {
    assert.equal((await read('/tiny.png')).text, '');
  });
  it('reads pages of a scanned PDF, in several languages together', async () => {
    const whole = await read('/scan.pdf', { language: 'deu+eng' });
    assert.equal(whole.language, 'deu+eng');
    assert.deepEqual(
      whole.pages?.map(({ page: number, text }) => [number, oneLine(text)]),
      [
        [1, german],
        [2, english],
        [3, german],
      ],
    );
    assert.equal(whole.text, whole.pages.map(({ text }) => text).join('\n\n'));
    assert.deepEqual([whole.total_pages, whole.truncated], [3, false]);
    assert.deepEqual([...new Set(whole.lines.map(({ page: number }) => number))], [1, 2, 3]);
  });

  it('reads a range of pages, and at most 10', async () => {
    const second = await read('/scan.pdf', { language: 'english', from_page: 2, to_page: 2 });
    assert.deepEqual([oneLine(second.text), second.pages?.length, second.truncated], [english, 1, false]);
    const many = await read('/long.pdf');
    assert.deepEqual([many.pages?.length, many.total_pages, many.truncated, many.text], [10, 12, true, '']);
    const rest = await read('/long.pdf', { from_page: 11 });
    assert.deepEqual([rest.pages?.map(({ page: number }) => number), rest.truncated], [[11, 12], false]);
  });

  it('reads another script only in its language', async () => {
    assert.equal(oneLine((await read('/ukr.pdf', { language: 'uk' })).text), ukrainian);
    await refuses('/ukr.pdf', 'unprocessable', /confidence is \d+ of 100.*not in eng.*ukr \(Ukrainian\)/, {
      language: 'eng',
    });
  });

  it('reads a PDF with text by its rendering', async () => {
    assert.equal((await read('/text.pdf')).text, 'Ships have text too\n\nand pages');
  });

  it('rejects pages for an image', async () => {
    const { pages, total_pages, truncated } = await read('/text.png');
    assert.deepEqual([pages, total_pages, truncated], [undefined, undefined, undefined]);
  });

  it('explains what it cannot read', async () => {
    await refuses('/none', 'unprocessable', /not a supported image/);
    await refuses('/text.png', 'invalid-request', /available languages/, { language: 'tlh' });
    await refuses('/text.png', 'invalid-request', /"tlh", "qya" is not one of the available/, {
      language: 'eng+tlh,qya',
    });
    await refuses('/text.png', 'invalid-request', /at most 3/, { language: 'eng+deu+fra+spa' });
    await refuses('/scan.pdf', 'unprocessable', /has only 3 pages/, { from_page: 4 });
    await refuses('/scan.pdf', 'unprocessable', /before/, { from_page: 2, to_page: 1 });
    await refuses('/locked.pdf', 'unprocessable', /password/);
    await refuses('/cut.pdf', 'unprocessable', /damaged/);
    await refuses('/missing', 'fetch-failed', /404/);
  });
});
