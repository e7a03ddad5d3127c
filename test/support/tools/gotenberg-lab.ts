// What the tests of convert_to_pdf and screenshot share: a real Gotenberg, a web that it may reach, and a listener that
// nothing may.
import assert from 'node:assert/strict';
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { createConvertToPdfTool } from '../../../api/tools/builtin/convert-to-pdf/convert-to-pdf.ts';
import { readPdf, type PdfContent } from '../../../api/tools/builtin/extract-pdf/extract-pdf.ts';
import { createScreenshotTool } from '../../../api/tools/builtin/screenshot/screenshot.ts';
import type { Artifact, Tool, ToolAnswer } from '../../../api/tools/tool.ts';
import { Problem } from '../../../lib/problem.ts';
import { runTool } from './context.ts';
import { countConnections, type Listener } from './fetch/listener.ts';
import { startWeb, type Page, type Web } from './fetch/web.ts';
import { urlServices } from './url-services.ts';
import { startGotenberg } from '../services/gotenberg.ts';

export interface GotenbergLab {
  readonly web: Web;
  readonly listener: Listener & { readonly datagrams: () => number };
  readonly convert: Tool;
  readonly screenshot: Tool;
  /** Converts, and reads the PDF back. */
  pdf(
    input: Record<string, unknown>,
  ): Promise<{ result: Record<string, unknown>; artifact: Artifact; read: PdfContent; text: string }>;
  picture(input: Record<string, unknown>): Promise<ToolAnswer<Record<string, unknown>> & { artifact: Artifact }>;
  /** The tool refuses with this kind of problem, in these words. */
  refuses(tool: Tool, input: Record<string, unknown>, slug: string, words: RegExp): Promise<void>;
  stop(): Promise<void>;
}

export interface GotenbergLabOptions {
  /** Time of a call; default 30, less than callers get. */
  readonly seconds?: number;
  /** Whether office files are converted; default true. */
  readonly office?: boolean;
}

/** `pages` may name the web's own address, which is known by then. */
export async function startGotenbergLab(
  pages: Record<string, Page>,
  { seconds = 30, office = true }: GotenbergLabOptions = {},
): Promise<GotenbergLab> {
  const listener = await countEverything();
  const web = await startWeb(pages);
  const gotenberg = await startGotenberg({ allow: [web.host] }, [
    `--api-timeout=${seconds}s`,
    // The programs start before the first call, whose time this would be.
    '--chromium-auto-start',
    ...(office ? ['--libreoffice-auto-start', '--libreoffice-restart-after=0'] : []),
    '--log-level=error',
  ]);
  const services = urlServices([web.host], { gotenberg: gotenberg.url });
  const [convert, screenshot] = [createConvertToPdfTool(services), createScreenshotTool(services)];
  const picture: GotenbergLab['picture'] = async (input) => made(await runTool(screenshot, input));
  return {
    web,
    listener,
    convert,
    screenshot,
    picture,
    async pdf(input) {
      const { result, artifact } = made(await runTool(convert, input));
      const read = await readPdf(
        services.workers,
        { bytes: artifact.bytes, from: 1, to: undefined },
        { owner: 'test' },
      );
      return { result, artifact, read, text: read.pages.map(({ text }) => text).join('\n') };
    },
    refuses: async (tool, input, slug, words) =>
      assert.rejects(runTool(tool, input), (error) => {
        assert.ok(error instanceof Problem, String(error));
        assert.equal(error.type.slug, slug, error.message);
        assert.match(error.message, words);
        return true;
      }),
    async stop() {
      await gotenberg.stop();
      await web.close();
      await listener.close();
      await services.workers.close();
    },
  };
}

function made(
  answer: ToolAnswer<Record<string, unknown>>,
): ToolAnswer<Record<string, unknown>> & { artifact: Artifact } {
  assert.ok(answer.artifact);
  return { ...answer, artifact: answer.artifact };
}

/** Counts connections and, on the same port, datagrams. */
async function countEverything(): Promise<GotenbergLab['listener']> {
  const listener = await countConnections();
  const socket = createSocket('udp6');
  let datagrams = 0;
  socket.on('message', () => {
    datagrams += 1;
  });
  socket.bind(listener.port, '::');
  await once(socket, 'listening');
  return {
    ...listener,
    datagrams: () => datagrams,
    close: async () => {
      socket.close();
      await listener.close();
    },
  };
}
