// Draws in a browser: Mermaid diagrams, and SVG with text or HTML that resvg cannot draw. Runs in a worker process that
// keeps the browser and prepares the next page, so that a call starts with everything loaded and never shares its page.
import { readdirSync, readFileSync } from 'node:fs';
import { Problem } from '../../../lib/problem.ts';
import { drawMermaid } from '../builtin/render-diagram/mermaid/mermaid.ts';
import { serviceOff, toolFailed, toolLimit } from '../problems.ts';
import type { Picture, BrowserTask } from '../svg/picture.ts';
import { NoChromium, startChromium, type Chromium } from './chromium.ts';
import { Page, PageCrashed, type PageFiles, drawSvg } from './page.ts';

/** The browser restarts after this many drawings, to free what it leaks. */
const drawingsPerBrowser = 200;

const script = 'text/javascript; charset=utf-8';
const readNear = (path: string): Buffer => readFileSync(new URL(path, import.meta.url));
const files: PageFiles = {
  '/': { type: 'text/html; charset=utf-8', body: readNear('page.html') },
  ...readMermaid(),
  '/flatten.js': { type: script, body: readNear('../builtin/render-diagram/mermaid/flatten.js') },
  '/in-page.js': { type: script, body: readNear('../builtin/render-diagram/mermaid/in-page.js') },
};

/** mermaid in parts: a page loads an eighth of it, and then the parts of its kind of diagram. */
function readMermaid(): PageFiles {
  const main = new URL(import.meta.resolve('mermaid/dist/mermaid.esm.min.mjs'));
  const parts = readdirSync(new URL('chunks/mermaid.esm.min/', main)).filter((name) => name.endsWith('.mjs'));
  const paths = ['mermaid.esm.min.mjs', ...parts.map((name) => `chunks/mermaid.esm.min/${name}`)];
  return Object.fromEntries(
    paths.map((path) => [`/mermaid/${path}`, { type: script, body: readFileSync(new URL(path, main)) }]),
  );
}

let browser: Promise<Chromium> | undefined;
let drawings = 0;
let next: Promise<Page> | undefined;

async function openPage(): Promise<Page> {
  if (browser !== undefined && (drawings >= drawingsPerBrowser || !(await browser).alive())) {
    (await browser).close();
    browser = undefined;
  }
  if (browser === undefined) {
    drawings = 0;
    browser = startChromium();
  }
  drawings += 1;
  return Page.open(await browser, files);
}

function preparePage(): void {
  next = openPage();
  // The next call reports the error.
  next.catch(() => {
    browser = undefined;
  });
}

preparePage();
// The process reports ready only now, so that a call's time limit covers drawing alone.
await next?.catch(() => undefined);

export default async function draw(task: BrowserTask): Promise<Picture> {
  try {
    const page = await (next ?? openPage());
    try {
      return await (task.kind === 'mermaid' ? drawMermaid(page, task) : drawSvg(page, task));
    } finally {
      void page.close().catch(() => undefined);
    }
  } catch (error) {
    throw toProblem(error);
  } finally {
    preparePage();
  }
}

function toProblem(error: unknown): unknown {
  if (error instanceof NoChromium)
    return new Problem(
      serviceOff,
      'This picture is drawn in Chromium, which is not installed here. The operator can install it (Debian: apt install chromium; Helm: workers.image). D2 and Graphviz as SVG work without it.',
      { cause: error, members: { service: 'chromium' } },
    );
  if (error instanceof PageCrashed)
    return new Problem(toolLimit, 'The picture needed more memory than a page has, and was stopped.', {
      cause: error,
      members: { limit: 'memory' },
    });
  if (error instanceof Error && error.message.startsWith('Chromium ended'))
    return new Problem(toolFailed, 'The browser that draws pictures ended.', { cause: error });
  return error;
}
