// render_diagram draws three languages, reports faults with their line, and reads nothing outside the text.
import assert from 'node:assert/strict';
import { afterAll, beforeAll, describe, test } from 'vitest';
import { createRenderDiagramTool } from '../../../api/tools/builtin/render-diagram/render-diagram.ts';
import { createWorkers } from '../../../api/tools/engine/workers/pool.ts';
import { Problem } from '../../../lib/problem.ts';
import { ensureBrowser } from '../../support/devtools.ts';
import { chooseSamples } from '../../support/repetitions.ts';
import { call, isProblem, createServices, shortenTasks, patience } from '../../support/tools/call.ts';
import { countColours } from '../../support/tools/colours.ts';

const workers = createWorkers(patience);
beforeAll(() => ensureBrowser());
afterAll(() => workers.close());
const tool = createRenderDiagramTool(createServices({ workers }));
/** For sources that use up their time. */
const impatient = createRenderDiagramTool(createServices({ workers: shortenTasks(workers, { toMs: 2_500 }) }));
const svgOf = async (input: Record<string, unknown>): Promise<string> =>
  new TextDecoder().decode((await call(tool, input)).artifact?.bytes);

const samples: Record<string, { source: string; texts: string[] }> = {
  graphviz: { source: 'digraph { Question -> "中文" [label="leads to"] }', texts: ['Question', '中文', 'leads to'] },
  d2: { source: 'a: Question\na -> b: leads to\nb: 中文', texts: ['Question', '中文', 'leads to'] },
  mermaid: { source: 'flowchart LR\n  A[Question] -->|leads to| B{中文}', texts: ['Question', '中文', 'leads to'] },
};
for (const [kind, { source, texts }] of Object.entries(samples)) {
  test(`draws ${kind} as SVG and as PNG, and detects the language from the text`, async () => {
    const { result, artifact } = await call(tool, { source });
    assert.deepEqual([result.kind, result.format, result.warnings], [kind, 'svg', []]);
    assert.deepEqual([artifact?.mediaType, artifact?.fileName], ['image/svg+xml', 'diagram.svg']);
    const svg = new TextDecoder().decode(artifact?.bytes);
    for (const text of texts)
      assert.ok(svg.includes(text) || svg.includes(text.replace(' ', '&#160;')), `${text} in ${svg.slice(0, 3_000)}`);
    assert.doesNotMatch(svg, /var\(--|color-mix|@import|googleapis/);
    const png = await call(tool, { source, engine: kind, format: 'png' });
    assert.equal(png.artifact?.mediaType, 'image/png');
    assert.deepEqual([...png.artifact.bytes.subarray(0, 4)], [0x89, 0x50, 0x4e, 0x47]);
    assert.ok(Number(png.result.width) > Number(result.width) * 1.5);
    assert.ok((await countColours(png.artifact.bytes)) > 2, 'something is drawn');
  });
}

test('draws the other layouts and kinds of diagrams', async () => {
  for (const layout of ['neato', 'circo', 'patchwork'])
    assert.match(await svgOf({ source: 'graph { a -- b }', layout }), /<svg/);
  assert.match(await svgOf({ source: 'a -> b', kind: 'd2', layout: 'elk' }), /<svg/);
  const mermaid = [
    '---\ntitle: x\n---\ngraph TD\n A-->B',
    '```mermaid\ngantt\n section A\n B :2024-01-01, 3d\n```',
    'pie\n "a": 1',
    // What differs below is the kind alone, and render-diagram-browser.test.ts draws each.
    'graph TD; a-->b',
    'sequenceDiagram\n A->>B: hi',
    'classDiagram\n Animal <|-- Duck',
    'stateDiagram-v2\n [*] --> Still',
    'erDiagram\n A ||--o{ B : has',
    'xychart-beta\n x-axis [a, b]\n bar [1, 2]',
    'gitGraph\n commit',
  ];
  for (const source of chooseSamples(mermaid, 3)) {
    assert.match(await svgOf({ source }), /<svg/, source);
  }
  await assert.rejects(
    call(tool, { source: 'graph { a }', layout: 'elk' }),
    isProblem('unprocessable', /Graphviz has no layout elk\. Available: dot/),
  );
});

test('reports an error with its line, and draws the next diagram', async () => {
  const faults: [string, string, RegExp, number][] = [
    ['graphviz', 'digraph {\n a -> b\n c -> }', /line 3: syntax error near '}'/, 3],
    ['graphviz', 'hello', /line 1: syntax error/, 1],
    ['d2', 'a -> b\nx: {shape: nosuch}', /line 2: column 12: unknown shape "nosuch"/, 2],
    ['mermaid', 'pie\n "a": x', /line 2: .*unexpected character/, 2],
    ['mermaid', 'flowchart LR\n A[open', /line 2: unexpected/, 2],
  ];
  for (const [kind, source, words, line] of faults) {
    await assert.rejects(
      call(tool, { source, kind }),
      (error) =>
        isProblem('unprocessable', words)(error) && (error as { members: { line?: number } }).members.line === line,
      source,
    );
    assert.match(await svgOf({ source: samples[kind]?.source, kind }), /<svg/);
  }
});

describe('malicious text', () => {
  test('draws nothing that runs or reaches out', async () => {
    const sources: [string, string][] = [
      [
        'graphviz',
        'digraph { a [URL="javascript:alert(1)" image="/etc/passwd" label="<script>alert(1)</script>"]; b [URL="https://good.test/"]; stylesheet="https://evil.test/x.css" }',
      ],
      [
        'graphviz',
        'digraph { shapepath="/etc"; imagepath="/etc"; a [shape=none label=<<TABLE HREF="javascript:alert(1)"><TR><TD><IMG SRC="/etc/passwd"/></TD></TR></TABLE>>] }',
      ],
      [
        'd2',
        'a: {link: "javascript:alert(1)"; icon: https://evil.test/x.svg; tooltip: "<script>alert(1)</script>"}\nb: |md\n  <script>alert(1)</script> <img src=x onerror=alert(1)>\n|',
      ],
      [
        'mermaid',
        'graph TD\n A["<script>alert(1)</script>"] --> B["<img src=x onerror=alert(1)>"]\n click A "javascript:alert(1)"\n style A fill:url(http://evil.test/x)',
      ],
    ];
    for (const [kind, source] of sources) {
      const svg = await svgOf({ source, kind }).catch((error: unknown) => {
        assert.ok(isProblem('unprocessable', /./)(error));
        return '';
      });
      assert.doesNotMatch(
        svg,
        /<(script|iframe|img)\b|<\w+(\s[\w:-]+="[^"]*")*\son\w+=|href="(?!https:\/\/good|#|data:image\/png)|url\((?!#|&quot;data:)|evil\.test\/x\.css|root:x/i,
        `${kind}: ${svg}`,
      );
    }
  });

  test('reads no file by import', async () => {
    for (const source of ['...@/etc/passwd', 'x: @../../package.json', 'x: @"/etc/passwd"'])
      await assert.rejects(
        call(tool, { source, kind: 'd2' }),
        isProblem('unprocessable', /failed to import|import/i),
        source,
      );
  });

  const bombs: [string, string][] = [
    [
      'graphviz',
      `digraph { ${Array.from({ length: 2_500 }, (_, i) => `a${i} -> a${(i * 7919) % 2_500}; a${i} -> a${(i * 104_729) % 2_500};`).join(' ')} }`,
    ],
    ['graphviz', `digraph { a [fontsize=1000000 label="x"]; b [width=1000000 height=1000000] }`],
    [
      'd2',
      `${'*: {a: {b}}\n'.repeat(3)}${Array.from({ length: 3_000 }, (_, i) => `n${i} -> n${(i * 31) % 3_000}`).join('\n')}`,
    ],
    ['mermaid', `graph TD\n${Array.from({ length: 4_000 }, (_, i) => ` n${i} --> n${(i * 31) % 4_000}`).join('\n')}`],
  ];
  for (const [kind, source] of bombs) {
    test(`stops a ${kind} that is too large without affecting the next: ${source.slice(0, 30)}`, async () => {
      const outcome = await call(impatient, { source, kind, format: 'png' }).then(
        () => 'drawn',
        (error: unknown) =>
          error instanceof Problem && ['unprocessable', 'tool-limit'].includes(error.type.slug) ? 'refused' : '',
      );
      assert.match(outcome, /drawn|refused/);
      assert.match(await svgOf({ source: samples[kind]?.source, kind }), /<svg/);
    });
  }
});
