// screenshot: a web page as a picture, as a browser shows it.
import { z } from 'zod';
import { urlField } from '../../fetch/url-field.ts';
import { askGotenberg } from '../../services/gotenberg.ts';
import type { ToolServices } from '../../engine/tool-dependencies.ts';
import { defineTool, type Tool } from '../../tool.ts';

const formats = ['png', 'jpeg', 'webp'] as const;

const input = z.strictObject({
  url: urlField('the page'),
  width: z.int().min(200).max(2_560).default(1_280).describe('width of the window in pixels, 200 to 2560'),
  height: z.int().min(200).max(4_096).default(800).describe('height of the window in pixels, 200 to 4096'),
  full_page: z
    .boolean()
    .default(false)
    .describe('whether to show the whole page, and not only what fits into the window'),
  format: z.enum(formats).default('png').describe('png, jpeg or webp'),
  wait_ms: z
    .int()
    .min(0)
    .max(10_000)
    .default(0)
    .describe('time for scripts of the page after it was loaded, in ms, 0 to 10000'),
});

const size = z.object({ width: z.int().describe('width in pixels'), height: z.int().describe('height in pixels') });
const output = z.object({
  url: z.string().describe('where the page was in the end, after redirects'),
  format: z.enum(formats).describe('format of the picture'),
  ...size.shape,
  bytes: z.int().describe('its size'),
});

export function screenshotTool(services: ToolServices): Tool {
  return defineTool({
    name: 'screenshot',
    title: 'Take a screenshot',
    description:
      'Shows a web page as Chromium does, with its scripts, as a PNG, JPEG or WebP picture: of a window or of the whole page. raw=1 answers with the picture. To read the words of a page, take fetch_page.',
    input,
    aliases: { w: 'width', h: 'height', fullpage: 'full_page', type: 'format', delay: 'wait_ms' },
    output,
    example: { url: 'https://example.org/', width: 1_024, height: 768 },
    price: '0.0005',
    artifacts: formats.map((format) => `image/${format}`),
    needs: 'gotenberg',
    openWorld: true,
    limitMs: 90_000,
    run: async ({ url, width, height, full_page, format, wait_ms }, { signal }) => {
      // Told why by a plain request first: a browser would show its own page for whatever goes wrong.
      const page = await services.fetcher.get({
        url,
        maxBytes: 25_000_000,
        headers: { accept: 'text/html,application/xhtml+xml,*/*;q=0.8' },
        signal,
      });
      const fields = {
        url: page.url,
        width,
        height,
        clip: !full_page,
        format,
        waitDelay: wait_ms === 0 ? undefined : `${wait_ms}ms`,
      };
      const bytes = await askGotenberg(services.urls, {
        form: '/chromium/screenshot/url',
        fields,
        maxBytes: 25_000_000,
        signal,
      });
      const measured = size.parse(
        await services.workers.run({
          module: new URL('size-worker.ts', import.meta.url),
          input: { bytes },
          timeoutMs: 20_000,
          memoryMb: 512,
          signal,
        }),
      );
      return {
        result: { url: page.url, format, ...measured, bytes: bytes.length },
        artifact: { bytes, mediaType: `image/${format}`, fileName: `screenshot.${format === 'jpeg' ? 'jpg' : format}` },
      };
    },
  });
}
