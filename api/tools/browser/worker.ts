// Draws what needs a browser: Mermaid diagrams, and SVG with text or HTML that resvg does not draw. Runs in a worker
// process, which keeps the browser and has the next page ready: a call begins with everything loaded, and shares its page
// with no other call.
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { Problem } from '../../../lib/problem.ts';
import { drawMermaid } from '../builtin/render-diagram/mermaid/mermaid.ts';
import { toolFailed, toolLimit } from '../problems.ts';
import { serviceOff } from '../services/backing-services.ts';
import type { Picture } from '../svg/picture.ts';
import { NoChromium, startChromium, type Chromium } from './chromium.ts';
import { Page, PageCrashed, type PageFiles } from './page.ts';
import { drawSvg } from './svg.ts';
import type { BrowserTask } from './task.ts';

/** After so many drawings the browser is started anew: what leaks in it ends then. */
const drawingsPerBrowser = 200;

const script = 'text/javascript; charset=utf-8';
const near = (path: string): Buffer => readFileSync(new URL(path, import.meta.url));
const files: PageFiles = {
  '/': { type: 'text/html; charset=utf-8', body: near('page.html') },
  '/mermaid.js': {
    type: script,
    body: readFileSync(fileURLToPath(import.meta.resolve('mermaid/dist/mermaid.min.js'))),
  },
  '/flatten.js': { type: script, body: near('../builtin/render-diagram/mermaid/flatten.js') },
  '/in-page.js': { type: script, body: near('../builtin/render-diagram/mermaid/in-page.js') },
};

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

function prepare(): void {
  next = openPage();
  // Whoever takes it hears of it.
  next.catch(() => {
    browser = undefined;
  });
}

prepare();
// The process says that it is ready when it is: the time limit of a call is for drawing alone.
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
    throw problemOf(error);
  } finally {
    prepare();
  }
}

function problemOf(error: unknown): unknown {
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
