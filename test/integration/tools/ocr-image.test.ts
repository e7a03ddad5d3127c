// ocr_image reads what can be seen, line by line, with what is installed and nothing from the net.
import assert from 'node:assert/strict';
import sharp from 'sharp';
import { afterAll, beforeAll, describe, it } from 'vitest';
import { z } from 'zod';
import { ocrImageTool } from '../../../api/tools/builtin/ocr-image/ocr-image.ts';
import type { ToolDependencies } from '../../../api/tools/engine/tool-dependencies.ts';
import type { Tool } from '../../../api/tools/tool.ts';
import { Problem } from '../../../lib/problem.ts';
import { runTool } from '../../support/tools/context.ts';
import { page, startWeb, type Web } from '../../support/tools/fetch/web.ts';
import { lettersPng } from '../../support/tools/letters.ts';
import { urlServices } from '../../support/tools/url-services.ts';

const shape = z.object({
  url: z.string(),
  language: z.string(),
  text: z.string(),
  confidence: z.number(),
  width: z.int(),
  height: z.int(),
  lines: z.array(
    z.object({ text: z.string(), confidence: z.number(), x: z.int(), y: z.int(), width: z.int(), height: z.int() }),
  ),
});

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
      '/none': page('image/png', 'nothing'),
    });
    services = urlServices([web.host]);
    tool = ocrImageTool(services);
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

  it('says that there is no text', async () => {
    assert.equal((await read('/blank.png')).text, '');
  });
  it('reads nothing from a dot', async () => {
    assert.equal((await read('/tiny.png')).text, '');
  });
  it('says what it cannot read', async () => {
    await refuses('/none', 'unprocessable', /not a supported image/);
    await refuses('/text.png', 'invalid-request', /available languages/, { language: 'tlh' });
    await refuses('/missing', 'fetch-failed', /404/);
  });
});
