// `npm run show:pages -- [--url URL] [FOLDER]`: pictures of every page in both languages, light and dark, on a telephone
// and a wide screen, with what axe says of each; of sample records, or of a site that runs.
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { run } from '../../localnode/shell.ts';
import { readCommandLine } from '../../lib/command-line.ts';
import { serve, stop } from '../support/api/http-app.ts';
import { openTab } from '../support/devtools.ts';
import { runExclusively } from '../support/exclusively.ts';
import { listJudgedPages, pagePaths } from '../support/pages/judged.ts';
import { managePath, openManagedPage } from '../support/pages/managed.ts';
import { findAccessibilityFaults, openView, takePicture, views, type View } from '../support/pages/views.ts';

const usage = `usage: npm run show:pages -- [--url URL] [--paths PATH,...] [FOLDER]

  --url URL     the site to look at, such as https://moorage.localhost:8443 (default: this application over sample records)
  --paths PATH  pages of it, with commas between them (default: one of each kind, of the sample records)
  FOLDER        where to leave the pictures (default: moorage-pages in the temporary folder)`;

const { url, paths, folder } = readCommandLine(
  { usage, options: { url: { type: 'string' }, paths: { type: 'string' } }, positionals: 1 },
  ({ values, positionals: [named] }) => ({
    url: values.url,
    paths: values.paths?.split(',') ?? [...pagePaths, managePath],
    folder: named ?? join(tmpdir(), 'moorage-pages'),
  }),
);

const nameOf = (path: string, { language, scheme, width }: View): string =>
  `${path.replaceAll(/[^\w-]+/g, '-').replaceAll(/^-|-$/g, '') || 'home'}.${language}.${scheme}.${width}.png`;

/** Takes pictures of pages, and counts what axe finds. */
async function look(origin: string, pages: readonly string[], cookie?: string): Promise<number> {
  const tab = await openTab();
  let faults = 0;
  try {
    await tab.send('Page.enable');
    await tab.send('Network.enable');
    if (cookie !== undefined) await tab.send('Network.setExtraHTTPHeaders', { headers: { cookie } });
    for (const path of pages)
      for (const view of views) {
        await openView(tab, origin, path, view);
        const name = nameOf(path, view);
        writeFileSync(join(folder, name), await takePicture(tab));
        const found = await findAccessibilityFaults(tab);
        faults += found.length;
        process.stdout.write(
          `${name.padEnd(72)} ${found.length === 0 ? 'axe: nothing' : `axe: ${found.join('; ')}`}\n`,
        );
      }
  } finally {
    await tab.close();
  }
  return faults;
}

// Pages bring no fonts: without one for Chinese on the machine, pictures show boxes.
if (!existsSync('/usr/share/fonts/opentype/noto'))
  await runExclusively(() => run('apt-get', ['install', '--yes', 'fonts-noto-cjk']));
mkdirSync(folder, { recursive: true });

/** The page of a signed-in author, which only the sample has. */
async function lookAtManagedPage(): Promise<number> {
  const managed = await openManagedPage();
  const server = await serve(managed.listener);
  try {
    return await look(`http://127.0.0.1:${server.port}`, [managePath], managed.cookie);
  } finally {
    await stop(server);
    await managed.stop();
  }
}

const server = url === undefined ? await serve(listJudgedPages().app) : undefined;
const others = paths.filter((path) => server === undefined || path !== managePath);
try {
  let faults = await look(server === undefined ? (url ?? '') : `http://127.0.0.1:${server.port}`, others);
  if (others.length < paths.length) faults += await lookAtManagedPage();
  process.stdout.write(`${paths.length * views.length} pictures in ${folder}; axe found ${faults} faults\n`);
  process.exitCode = faults === 0 ? 0 : 1;
} finally {
  if (server !== undefined) await stop(server);
}
