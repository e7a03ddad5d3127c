// Mermaid in Chromium: hostile sources reach nothing and run nothing, a page that does not end is ended with its browser,
// and what the browser writes is gone with it.
import assert from 'node:assert/strict';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, test } from 'vitest';
import { createBrowserTask } from '../../../api/tools/svg/picture.ts';
import { createRenderDiagramTool } from '../../../api/tools/builtin/render-diagram/render-diagram.ts';
import { createWorkers } from '../../../api/tools/engine/workers/pool.ts';
import type { DiagramCase } from '../../corpus/diagrams/case.ts';
import { corpusOf, judge, kinds, type Kind } from '../../corpus/diagrams/judge.ts';
import { ensureBrowser } from '../../support/devtools.ts';
import { waitUntil } from '../../support/kubernetes/until.ts';
import { isDeep } from '../../support/repetitions.ts';
import { call, isProblem, createServices, patience } from '../../support/tools/call.ts';
import { countColours } from '../../support/tools/colours.ts';

// Other test files start browsers at the same time: those of this one write to its own folder.
const ownFolder = mkdtempSync(join(tmpdir(), 'moorage-browsers-'));
const { TMPDIR: usualFolder } = process.env;
process.env['TMPDIR'] = ownFolder;
const workers = createWorkers(patience);
const tool = createRenderDiagramTool(createServices({ workers }));
beforeAll(() => ensureBrowser());
afterAll(async () => {
  await workers.close();
  // Other files run in this process later.
  if (usualFolder === undefined) delete process.env['TMPDIR'];
  else process.env['TMPDIR'] = usualFolder;
  rmSync(ownFolder, { recursive: true });
});

const svgOf = async (source: string): Promise<string> =>
  new TextDecoder().decode((await call(tool, { source, kind: 'mermaid' })).artifact?.bytes);

/** The process ids of the browsers that this file's workers run. */
function browsers(): string[] {
  return readdirSync('/proc').filter((pid) => {
    try {
      const command = readFileSync(`/proc/${pid}/cmdline`, 'utf8');
      const environment = readFileSync(`/proc/${pid}/environ`, 'utf8');
      return command.includes('--remote-debugging-pipe') && environment.includes(`${ownFolder}/moorage-worker-`);
    } catch {
      return false;
    }
  });
}
const folders = (): string[] => readdirSync(ownFolder).filter((name) => name.startsWith('moorage-worker-'));

describe('untrusted sources', () => {
  test('send no request to any address', async () => {
    const asked: string[] = [];
    const server = createServer((request, response) => {
      asked.push(request.url ?? '');
      response.end();
    });
    server.listen(0, '127.0.0.1');
    await new Promise((resolve) => server.once('listening', resolve));
    const at = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const sources = [
      `flowchart LR\n A@{ img: "${at}/img.png", label: "x" }`,
      `flowchart LR\n A["<img src='${at}/label.png'>"]`,
      `flowchart LR\n A["<iframe src='${at}/frame'></iframe><script src='${at}/script.js'></script>x"]`,
      `flowchart LR\n A\n style A fill:url(${at}/style)`,
      `%%{init: {"themeCSS": "@import url(${at}/theme.css); .node rect { fill: url(${at}/fill) }"}}%%\nflowchart LR\n A`,
      `%%{init: {"fontFamily": "x; } @font-face { font-family: x; src: url(${at}/font)"}}%%\nflowchart LR\n A`,
      `%%{init: {"securityLevel": "loose", "htmlLabels": true}}%%\nflowchart LR\n A["<img src=x onerror=fetch('${at}/fetch')>"]\n click A call fetch("${at}/click")`,
      `architecture-beta\n service a(${at}/icon)[A]`,
      `C4Context\n Person(a, "A", "d", $sprite="${at}/sprite.png")`,
    ];
    for (const source of sources) {
      const svg = await svgOf(source).catch((error: unknown) => {
        assert.ok(isProblem('unprocessable', /./)(error), source);
        return '';
      });
      assert.ok(!svg.includes(`${at}/`), `${source}\n${svg}`);
      assert.doesNotMatch(svg, /<script|<iframe|<img|\son\w+=/i, source);
    }
    server.close();
    assert.deepEqual(asked, []);
  });

  test('lose links that run code, with a warning', async () => {
    const { result, artifact } = await call(tool, {
      source: 'flowchart LR\n A --> B\n click A "javascript:alert(1)"\n click B "https://good.test/"',
    });
    const svg = new TextDecoder().decode(artifact?.bytes);
    assert.doesNotMatch(svg, /javascript:/i);
    assert.match(svg, /https:\/\/good\.test\//);
    assert.match((result.warnings as string[]).join(), /click on A/);
  });

  test('give the same picture for the same source', async () => {
    for (const source of [
      'gitGraph\n commit\n branch b\n commit',
      '%%{init: {"look": "handDrawn"}}%%\nflowchart LR\n A-->B',
    ])
      assert.equal(await svgOf(source), await svgOf(source));
  });

  test('have formulas drawn as PNG, and rejected as SVG', async () => {
    const source = 'flowchart LR\n A["$$\\\\frac{1}{2}$$"] --> B';
    await assert.rejects(svgOf(source), isProblem('unprocessable', /format=png/));
    const { artifact } = await call(tool, { source, format: 'png' });
    assert.ok((await countColours(artifact?.bytes ?? new Uint8Array())) > 2);
  });
});

test('kills an endless page with its browser, and gives the next call another one', async () => {
  const others = { browsers: browsers(), folders: folders() };
  const own = createWorkers(patience);
  const edges = Array.from({ length: 1_900 }, (_, n) => ` n${n % 700} --> n${(n * 31) % 700}`);
  const source = `flowchart TD\n${edges.join('\n')}`;
  const task = createBrowserTask({ kind: 'mermaid', source, layout: undefined, format: 'svg', scale: 1 });
  await assert.rejects(
    own.run({ ...task, timeoutMs: 700 }, { owner: 'somebody' }),
    isProblem('tool-limit', /longer than 0\.7 s/),
  );
  // The other workers may end theirs meanwhile.
  const onlyOthers = (): boolean =>
    browsers().every((pid) => others.browsers.includes(pid)) &&
    folders().every((name) => others.folders.includes(name));
  await waitUntil(onlyOthers);
  const small = createBrowserTask({
    kind: 'mermaid',
    source: 'flowchart LR\n A',
    layout: undefined,
    format: 'svg',
    scale: 1,
  });
  await own.run(small, { owner: 'somebody' });
  assert.ok(!onlyOthers(), 'it waits for the next call');
  await own.close();
  await waitUntil(onlyOthers);
});

test('draws emoji, scripts without a bundled font, and HTML in D2 and Graphviz with the browser', async () => {
  for (const input of [
    { kind: 'd2', source: 'a: 🚀 한국어 हिन्दी ภาษาไทย' },
    { kind: 'd2', source: 'a: |md\n  # Heading\n  text\n|' },
    { kind: 'graphviz', source: 'digraph { a [label="🚀 한국어 हिन्दी"] }' },
  ]) {
    const { result, artifact } = await call(tool, { ...input, format: 'png' });
    assert.deepEqual([result.format, artifact?.mediaType, result.warnings], ['png', 'image/png', []]);
    assert.ok((await countColours(artifact?.bytes ?? new Uint8Array())) > 3, input.source);
  }
});

describe('corpus', () => {
  // One of each kind of diagram, and as PNG one of each language: it is the picture that the page of the SVG shows.
  // `npm run test:deep` draws all of it both ways, and so does `node test/show/diagrams.ts`.
  const seen = new Set<string>();
  const isFirst = (family: string): boolean => !seen.has(family) && seen.add(family).has(family);
  const familyOf = (kind: Kind, { name, refused }: DiagramCase): string => {
    if (name.includes(':')) return name.split(':')[0] ?? '';
    // Without a title, almost all sources in Mermaid are flowcharts.
    const group = kind === 'mermaid' ? 'others' : String(name.length % 4);
    return `${kind} ${refused === undefined ? group : 'refused'}`;
  };
  const sample = kinds.flatMap((kind) =>
    corpusOf(kind)
      .filter((each) => isFirst(familyOf(kind, each)) || isDeep)
      .map((each, index) => ({ kind, each, png: index === 0 || isDeep })),
  );
  for (const { kind, each, png } of sample)
    test(`${kind}: ${each.name}`, async () => {
      const { verdict, words } = await judge(tool, kind, each, { png });
      assert.notEqual(verdict, 'wrong', words);
    });
});
