// convert_image converts and resizes pictures, and refuses what is none or too much of one.
import assert from 'node:assert/strict';
import { deflateSync } from 'node:zlib';
import sharp from 'sharp';
import { afterAll, beforeAll, describe, it } from 'vitest';
import { z } from 'zod';
import { createConvertImageTool } from '../../../../../../api/tools/builtin/convert-image/convert-image.ts';
import type { ToolDependencies } from '../../../../../../api/tools/tool.ts';
import type { Artifact, Tool } from '../../../../../../api/tools/tool.ts';
import { Problem } from '../../../../../../lib/problem.ts';
import { runTool } from '../../../../../support/tools/context.ts';
import { countConnections, type Listener } from '../../../../../support/tools/fetch/listener.ts';
import { page, startWeb, type Web } from '../../../../../support/tools/fetch/web.ts';
import { urlServices } from '../../../../../support/tools/url-services.ts';

const shape = z.object({
  format: z.string(),
  width: z.int(),
  height: z.int(),
  bytes: z.int(),
  source: z.object({ format: z.string(), width: z.int(), height: z.int(), bytes: z.int() }),
});

/** A PNG that says that it is this large, of one grey. */
function vastPng(side: number): Buffer {
  const crc = (data: Buffer): Buffer => {
    let c = 0xffffffff;
    for (const byte of data) {
      c ^= byte;
      for (let bit = 0; bit < 8; bit++) c = c & 1 ? (c >>> 1) ^ 0xedb88320 : c >>> 1;
    }
    const out = Buffer.alloc(4);
    out.writeUInt32BE((c ^ 0xffffffff) >>> 0);
    return out;
  };
  const chunk = (type: string, data: Buffer): Buffer => {
    const length = Buffer.alloc(4);
    length.writeUInt32BE(data.length);
    const body = Buffer.concat([Buffer.from(type), data]);
    return Buffer.concat([length, body, crc(body)]);
  };
  const header = Buffer.alloc(13);
  header.writeUInt32BE(side, 0);
  header.writeUInt32BE(side, 4);
  header.set([1, 0, 0, 0, 0], 8);
  return Buffer.concat([
    Buffer.from('89504e470d0a1a0a', 'hex'),
    chunk('IHDR', header),
    chunk('IDAT', deflateSync(Buffer.alloc(10_000_000))),
    chunk('IEND', Buffer.alloc(0)),
  ]);
}

describe('convert_image', () => {
  let web: Web;
  let listener: Listener;
  let services: ToolDependencies;
  let tool: Tool;
  const convert = async (
    input: Record<string, unknown>,
  ): Promise<{ result: z.output<typeof shape>; artifact: Artifact }> => {
    const { result, artifact } = await runTool(tool, input);
    assert.ok(artifact);
    return { result: shape.parse(result), artifact };
  };
  const refuses = async (input: Record<string, unknown>, slug: string, words: RegExp): Promise<void> =>
    assert.rejects(convert(input), (error) => {
      assert.ok(error instanceof Problem, String(error));
      assert.equal(error.type.slug, slug, error.message);
      assert.match(error.message, words);
      return true;
    });
  const red = sharp({ create: { width: 40, height: 20, channels: 4, background: { r: 255, g: 0, b: 0, alpha: 0.5 } } });

  beforeAll(async () => {
    listener = await countConnections();
    const svg = `<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" width="9" height="9"><image xlink:href="http://127.0.0.1:${listener.port}/x.png" width="9" height="9"/><image xlink:href="file:///etc/passwd" width="9" height="9"/></svg>`;
    web = await startWeb({
      '/red.png': page('image/png', await red.png().toBuffer()),
      '/turned.jpg': page(
        'image/jpeg',
        await sharp({ create: { width: 40, height: 20, channels: 3, background: '#00f' } })
          .withMetadata({ orientation: 6 })
          .jpeg()
          .toBuffer(),
      ),
      '/vast.png': page('image/png', vastPng(60_000)),
      '/image.svg': page('image/svg+xml', svg),
      '/lying.png': page('image/png', svg),
      '/text.png': page('image/png', 'not a picture'),
      '/cut.png': page(
        'image/png',
        (
          await sharp({
            create: {
              width: 400,
              height: 400,
              channels: 3,
              background: '#123456',
              noise: { type: 'gaussian', mean: 128, sigma: 30 },
            },
          })
            .png()
            .toBuffer()
        ).subarray(0, 5_000),
      ),
      '/empty': page('image/png', ''),
    });
    services = urlServices([web.host]);
    tool = createConvertImageTool(services);
  });
  afterAll(async () => {
    await web.close();
    await listener.close();
    await services.workers.close();
  });

  for (const format of ['png', 'jpeg', 'webp', 'avif', 'gif']) {
    it(`makes ${format}`, async () => {
      const { result, artifact } = await convert({ url: `${web.url}/red.png`, format, width: 20 });
      assert.deepEqual(result, {
        format,
        width: 20,
        height: 10,
        bytes: artifact.bytes.length,
        source: { format: 'png', width: 40, height: 20, bytes: result.source.bytes },
      });
      const made = await sharp(artifact.bytes).metadata();
      assert.equal(made.format, format === 'avif' ? 'heif' : format);
      assert.equal(made.width, 20);
      assert.equal(artifact.mediaType, `image/${format}`);
      const [r = 0, g = 0, b = 0] = await sharp(artifact.bytes).flatten({ background: '#ffffff' }).raw().toBuffer();
      assert.ok(r > 240 && g < 200 && b < 200, `${r} ${g} ${b}`);
    });
  }

  it('rotates a photograph upright and drops its metadata', async () => {
    const { result, artifact } = await convert({ url: `${web.url}/turned.jpg`, format: 'jpeg' });
    assert.deepEqual([result.width, result.height], [20, 40]);
    assert.equal((await sharp(artifact.bytes).metadata()).exif, undefined);
  });

  it('accepts base64, also as a data: URL and as decoded from a query', async () => {
    const bytes = await red.png().toBuffer();
    for (const data of [
      bytes.toString('base64'),
      `data:image/png;base64,${bytes.toString('base64')}`,
      bytes.toString('base64').replaceAll('+', ' '),
      bytes.toString('base64url'),
    ]) {
      assert.equal((await convert({ data })).result.width, 40);
    }
  });

  it('resizes with each fit', async () => {
    const sizes = await Promise.all(
      ['inside', 'cover', 'contain', 'fill'].map(
        async (fit) => (await convert({ url: `${web.url}/red.png`, width: 10, height: 10, fit })).result,
      ),
    );
    assert.deepEqual(
      sizes.map(({ width, height }) => [width, height]),
      [
        [10, 5],
        [10, 10],
        [10, 10],
        [10, 10],
      ],
    );
  });

  it('rejects files that are not images, too large or broken, and follows nothing in them', async () => {
    await refuses({ url: `${web.url}/image.svg` }, 'unprocessable', /not a supported image/);
    await refuses({ url: `${web.url}/lying.png` }, 'unprocessable', /not a supported image/);
    await refuses({ url: `${web.url}/text.png` }, 'unprocessable', /not a supported image/);
    await refuses({ url: `${web.url}/empty` }, 'unprocessable', /empty/i);
    await refuses({ url: `${web.url}/vast.png` }, 'unprocessable', /more than 50000000 pixels/);
    await refuses({ url: `${web.url}/cut.png` }, 'unprocessable', /cannot be read/);
    await refuses({ data: Buffer.from('%PDF-1.7').toString('base64') }, 'unprocessable', /not a supported image/);
    await refuses({ data: '!!!' }, 'invalid-request', /base64/);
    await refuses({}, 'invalid-request', /missing/);
    await refuses({ url: `${web.url}/red.png`, data: 'AAAA' }, 'invalid-request', /cannot be combined/);
    assert.equal(listener.connections(), 0);
  });
});
