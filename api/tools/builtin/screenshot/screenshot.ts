// The tool screenshot: takes a picture of a web page as Chromium renders it.
import { z } from 'zod';
import { Problem } from '../../../../lib/problem.ts';
import { urlField } from '../../inputs/fields.ts';
import { pictureFormat } from '../../inputs/fields.ts';
import { parseArtifactId } from '../../engine/artifacts.ts';
import type { FetchResult } from '../../fetch/fetcher.ts';
import { unprocessable } from '../../problems.ts';
import { renderImagePage } from '../convert-to-pdf/documents.ts';
import { callGotenberg } from '../../services/gotenberg.ts';
import type { ToolDependencies } from '../../tool.ts';
import { defineTool, type Tool } from '../../tool.ts';

const formats = ['png', 'jpeg', 'webp'] as const;

const input = z.strictObject({
  url: urlField('URL of the page'),
  width: z
    .int()
    .min(200)
    .max(2_560)
    .default(1_280)
    .describe('Width of the window in pixels, 200 to 2560. Default: 1280.'),
  height: z
    .int()
    .min(200)
    .max(4_096)
    .default(800)
    .describe('Height of the window in pixels, 200 to 4096. Default: 800.'),
  full_page: z
    .boolean()
    .default(false)
    .describe('Whether to capture the whole page instead of the window. Default: false.'),
  format: pictureFormat(formats).prefault('png').describe('Picture format: png (default), jpeg (or jpg) or webp.'),
  wait_ms: z
    .int()
    .min(0)
    .max(10_000)
    .default(0)
    .describe('Time in ms to let the scripts of the page run after it has loaded, 0 to 10000. Default: 0.'),
});

const size = z.object({ width: z.int().describe('Width in pixels.'), height: z.int().describe('Height in pixels.') });
const output = z.object({
  url: z.string().describe('Final URL, after redirects.'),
  format: z.enum(formats).describe('Format of the picture.'),
  ...size.shape,
  bytes: z.int().describe('Size in bytes.'),
});

export function createScreenshotTool(services: ToolDependencies): Tool {
  return defineTool({
    name: 'screenshot',
    title: 'Take a screenshot',
    description:
      'Takes a screenshot of a public web page with Chromium, scripts included, as a PNG, JPEG or WebP file of up to 25 MB: of one window, or of the whole page. raw=1 returns the bytes of the picture. To read the text of a page, use fetch_page.',
    input,
    aliases: { w: 'width', h: 'height', fullpage: 'full_page', type: 'format', delay: 'wait_ms' },
    output,
    example: { url: 'https://example.org/', width: 1_024, height: 768 },
    price: '0.0005',
    artifacts: formats.map((format) => `image/${format}`),
    needs: 'gotenberg',
    openWorld: true,
    limitMs: 90_000,
    run: async ({ url, width, height, full_page, format, wait_ms }, context) => {
      const { signal } = context;
      // Send a plain request first, which reports errors: a browser would show its own error page.
      const page = await services.fetcher.get({
        url,
        maxBytes: 25_000_000,
        headers: { accept: 'text/html,application/xhtml+xml,*/*;q=0.8' },
        signal,
      });
      // Chromium cannot reach this installation, so an artifact is sent as a page.
      const file = parseArtifactId(services.baseUrl, page.url, 'url') === undefined ? undefined : toPage(page);
      const fields = {
        url: file === undefined ? page.url : undefined,
        width,
        height,
        clip: !full_page,
        format,
        waitDelay: wait_ms === 0 ? undefined : `${wait_ms}ms`,
      };
      const bytes = await callGotenberg(services.urls, {
        form: file === undefined ? '/chromium/screenshot/url' : '/chromium/screenshot/html',
        fields,
        ...(file === undefined ? {} : { file }),
        maxBytes: 25_000_000,
        signal,
      });
      const measured = size.parse(
        await services.workers.run(
          {
            module: new URL('../convert-image/image-worker.ts', import.meta.url),
            input: { bytes },
            timeoutMs: 20_000,
            memoryMb: 512,
          },
          context,
        ),
      );
      return {
        result: { url: page.url, format, ...measured, bytes: bytes.length },
        artifact: { bytes, mediaType: `image/${format}`, fileName: `screenshot.${format === 'jpeg' ? 'jpg' : format}` },
      };
    },
  });
}

function toPage({ mediaType, bytes }: FetchResult): { readonly name: string; readonly bytes: Uint8Array } {
  if (mediaType === 'text/html') return { name: 'index.html', bytes };
  if (mediaType.startsWith('image/'))
    return { name: 'index.html', bytes: Buffer.from(renderImagePage(bytes, mediaType)) };
  throw new Problem(
    unprocessable,
    `The file is ${mediaType}. A screenshot is taken of a web page or an image; convert_to_pdf and extract_pdf read other files.`,
  );
}
