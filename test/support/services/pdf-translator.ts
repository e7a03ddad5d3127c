// The PDF translator for tests: its real server and the real BabelDOC, with a layout model and fonts that package
// registries give.
import { execFileSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { z } from 'zod';
import { paths } from '../../../localnode/paths.ts';
import { runExclusively } from '../exclusively.ts';
import { aptInstall, pythonEnvironment, startServer, type LocalServer } from './python.ts';

const here = join(import.meta.dirname, 'pdf-translator');
const image = join(paths.root, 'localnode', 'images', 'pdf-translator');
const offline = join(paths.root, 'localnode', 'images', 'pdf-translator-offline');
const fonts = '/usr/share/fonts/truetype/dejavu';
const environment = {
  name: 'pdf-translator',
  packages: ['-r', join(image, 'requirements.txt'), '-r', join(offline, 'layout-requirements.txt')],
  // It asks for an OpenCV with windows, instead of the one without that is there.
  alone: ['rapid-layout==1.2.1'],
};

function python(): string {
  return join(pythonEnvironment(environment), 'bin', 'python');
}

/** `slots`: how many translations it takes at once. */
export async function startPdfTranslator(slots = 1): Promise<LocalServer> {
  await runExclusively(() => {
    if (!existsSync(fonts)) aptInstall('fonts-dejavu-core');
    python();
  });
  const layout = await startServer(python(), [join(offline, 'layout_server.py')]);
  const folder = mkdtempSync(join(tmpdir(), 'moorage-translator-'));
  const server = await startServer(python(), [join(image, 'server.py')], {
    TMPDIR: folder,
    HOST: '127.0.0.1',
    PORT: '0',
    SLOTS: String(slots),
    FONTS: fonts,
    BABELDOC: `${python()} ${join(offline, 'babeldoc_offline.py')}`,
    BABELDOC_ARGS: `--rpc-doclayout ${layout.url}`,
  });
  return {
    url: server.url,
    async stop() {
      await server.stop();
      await layout.stop();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

/** Two pages in two columns, with a title and a blue box. */
export function columns(): Uint8Array {
  return inFile(undefined, (file) => {
    execFileSync(python(), [join(here, 'pages.py'), 'make', file]);
    return readFileSync(file);
  });
}

const looked = z.array(
  z.object({
    size: z.tuple([z.number(), z.number()]),
    words: z.array(z.object({ text: z.string(), x: z.number(), y: z.number() })),
    boxes: z.array(z.array(z.number())),
  }),
);

export type PageLayout = z.output<typeof looked>[number];

/** Where everything is on each page. */
export function look(pdf: Uint8Array): PageLayout[] {
  return inFile(pdf, (file) =>
    looked.parse(JSON.parse(execFileSync(python(), [join(here, 'pages.py'), 'look', file], { encoding: 'utf8' }))),
  );
}

function inFile<Result>(content: Uint8Array | undefined, work: (file: string) => Result): Result {
  const folder = mkdtempSync(join(tmpdir(), 'moorage-pdf-'));
  try {
    const file = join(folder, 'file.pdf');
    if (content !== undefined) writeFileSync(file, content);
    return work(file);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
