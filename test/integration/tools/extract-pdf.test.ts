// extract_pdf reads text and metadata page by page, and says of what is no readable PDF why.
import assert from 'node:assert/strict';
import { deflateSync } from 'node:zlib';
import { afterAll, beforeAll, describe, it } from 'vitest';
import { z } from 'zod';
import { createExtractPdfTool } from '../../../api/tools/builtin/extract-pdf/extract-pdf.ts';
import type { ToolDependencies } from '../../../api/tools/tool.ts';
import type { Tool } from '../../../api/tools/tool.ts';
import { Problem } from '../../../lib/problem.ts';
import { shortenTasks } from '../../support/tools/call.ts';
import { runTool } from '../../support/tools/context.ts';
import { page, startWeb, type Web } from '../../support/tools/fetch/web.ts';
import { pdf } from '../../support/tools/pdf.ts';
import { urlServices } from '../../support/tools/url-services.ts';

const shape = z.looseObject({
  total_pages: z.int(),
  from_page: z.int(),
  to_page: z.int(),
  truncated: z.boolean(),
  text_found: z.boolean(),
  pages: z.array(z.object({ page: z.int(), text: z.string() })),
  metadata: z.record(z.string(), z.string()),
});
const info = "/Info << /Title (Tides \\(and moors\\)) /Author (Ada) /CreationDate (D:20240131120000+01'00') >>";
const long = pdf(Array.from({ length: 130 }, (_none, index) => `Page number ${index + 1}`));
const locked = `/Encrypt << /Filter /Standard /V 2 /R 3 /Length 128 /P -4 /O <${'ab'.repeat(32)}> /U <${'cd'.repeat(32)}> >> /ID [<00112233445566778899aabbccddeeff> <00112233445566778899aabbccddeeff>]`;

const warnings = (read: z.output<typeof shape>): string =>
  z.array(z.string()).default([]).parse(read['warnings']).join();

describe('extract_pdf', () => {
  let web: Web;
  let services: ToolDependencies;
  let tool: Tool;
  /** For files that use up their time. */
  let impatient: Tool;
  const extract = async (
    path: string,
    more: Record<string, unknown> = {},
    by: Tool = tool,
  ): Promise<z.output<typeof shape>> => shape.parse((await runTool(by, { url: `${web.url}${path}`, ...more })).result);
  const refuses = async (
    path: string,
    slug: string,
    words: RegExp,
    more: Record<string, unknown> = {},
  ): Promise<void> =>
    assert.rejects(extract(path, more), (error) => {
      assert.ok(error instanceof Problem, String(error));
      assert.equal(error.type.slug, slug, error.message);
      assert.match(error.message, words);
      return true;
    });

  beforeAll(async () => {
    const bomb = deflateSync(Buffer.alloc(300_000_000, 'BT (a) Tj ET '), { level: 1 });
    web = await startWeb({
      '/two.pdf': page('application/pdf', pdf(['First page\nits second line', 'Second page'], { trailer: info })),
      '/long.pdf': page('application/octet-stream', long),
      '/empty-page.pdf': page('application/pdf', pdf([''])),
      '/some-empty.pdf': page('application/pdf', pdf(['a', '', 'b', ''])),
      '/locked.pdf': page('application/pdf', pdf(['secret'], { trailer: locked })),
      '/cut.pdf': page('application/pdf', long.subarray(0, 300)),
      '/html': page('text/html', '<h1>No PDF</h1>'),
      '/loop.pdf': page(
        'application/pdf',
        Buffer.from(
          Buffer.from(pdf(['a']))
            .toString('latin1')
            .replace('/Kids [4 0 R]', '/Kids [2 0 R]'),
          'latin1',
        ),
      ),
      '/bomb.pdf': page(
        'application/pdf',
        Buffer.from(
          Buffer.from(pdf(['x'.repeat(bomb.length)]))
            .toString('latin1')
            .replace(
              /<< \/Length \d+ >>\nstream\n.*\nendstream/s,
              () => `<< /Length ${bomb.length} /Filter /FlateDecode >>\nstream\n${bomb.toString('latin1')}\nendstream`,
            ),
          'latin1',
        ),
      ),
    });
    services = urlServices([web.host]);
    tool = createExtractPdfTool(services);
    const workers = shortenTasks(services.workers, { fromMs: 20_000, toMs: 3_000 });
    impatient = createExtractPdfTool({ ...services, workers });
  });
  afterAll(async () => {
    await web.close();
    await services.workers.close();
  });

  it('reads text and metadata', async () => {
    const read = await extract('/two.pdf');
    assert.equal(read.total_pages, 2);
    assert.deepEqual(read.pages, [
      { page: 1, text: 'First page\nits second line' },
      { page: 2, text: 'Second page' },
    ]);
    assert.equal(read.metadata['title'], 'Tides (and moors)');
    assert.equal(read.metadata['author'], 'Ada');
    assert.equal(read.metadata['created'], '2024-01-31T12:00:00');
    assert.equal(read.text_found, true);
  });

  it('reads a range, and at most 100 pages', async () => {
    const range = await extract('/long.pdf', { from_page: 7, to_page: 9 });
    assert.deepEqual(
      range.pages.map(({ text }) => text),
      ['Page number 7', 'Page number 8', 'Page number 9'],
    );
    assert.equal(range.truncated, false);
    const all = await extract('/long.pdf');
    assert.deepEqual([all.pages.length, all.to_page, all.truncated], [100, 100, true]);
    const rest = await extract('/long.pdf', { from_page: all.to_page + 1 });
    assert.deepEqual([rest.pages.length, rest.to_page, rest.truncated], [30, 130, false]);
  });

  it('reports that a page contains no text', async () => {
    const empty = await extract('/empty-page.pdf');
    assert.equal(empty.text_found, false);
    assert.match(warnings(empty), /^These pages contain no text.*ocr_image.*from_page=1\.$/);
    assert.match(warnings(await extract('/some-empty.pdf')), /^Pages 2, 4 contain no text.*from_page=2\.$/);
    assert.equal(warnings(await extract('/two.pdf')), '');
  });

  it('explains why it cannot read a file', async () => {
    await refuses('/html', 'unprocessable', /not a PDF/);
    await refuses('/locked.pdf', 'unprocessable', /password/);
    await refuses('/cut.pdf', 'unprocessable', /cannot be read/);
    await refuses('/two.pdf', 'unprocessable', /has only 2 pages/, { from_page: 3 });
    await refuses('/two.pdf', 'unprocessable', /before/, { from_page: 2, to_page: 1 });
    await refuses('/missing.pdf', 'fetch-failed', /404/);
  });

  it('survives an endless file and a decompression bomb', async () => {
    await extract('/loop.pdf', {}, impatient).catch((error: unknown) => {
      assert.ok(error instanceof Problem && error.type.status === 422, String(error));
    });
    await extract('/bomb.pdf', {}, impatient).catch((error: unknown) => {
      assert.ok(error instanceof Problem && error.type.status === 422, String(error));
    });
    assert.equal((await extract('/two.pdf')).total_pages, 2);
  });
});
