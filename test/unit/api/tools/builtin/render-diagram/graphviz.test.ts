// Graphviz measures in the font that is drawn, and nothing of what is added for that is seen.
import assert from 'node:assert/strict';
import { Graphviz } from '@hpcc-js/wasm-graphviz';
import { test, describe } from 'vitest';
import { addFont, removePads, collectDotNotes } from '../../../../../../api/tools/builtin/render-diagram/graphviz.ts';
import { isProblem } from '../../../../../support/tools/call.ts';

const graphviz = await Graphviz.load();
const svgOf = (source: string): string => removePads(graphviz.layout(addFont(source), 'svg', 'dot'));
/** Width of the only box. */
function measureBox(svg: string): number {
  const points = (/<polygon fill="none" stroke="black" points="([^"]*)"/.exec(svg)?.[1] ?? '').split(' ');
  const xs = points.map((point) => Number(point.split(',')[0]));
  return Math.max(...xs) - Math.min(...xs);
}

test('adds the font first, on the line with the brace', () => {
  assert.match(
    addFont('/* { */ digraph "a{" {\n a }'),
    /^\/\* \{ \*\/ digraph "a\{" \{ graph \[fontname="Arial"\];.*\n a \}$/,
  );
  assert.equal(addFont('digraph {\n\n a }').split('\n').length, 3);
  assert.equal(addFont('no graph'), 'no graph');
});

test('gives a wide letter one em, and keeps its name', () => {
  const label = '一个非常长的中文标签用来检查文字';
  const svg = svgOf(`digraph { a [shape=box label="${label}"] }`);
  assert.ok(svg.includes(`>${label}</text>`), svg);
  // 14 pt of each letter, and the margin.
  assert.ok(measureBox(svg) >= label.length * 14, String(measureBox(svg)));
  assert.ok(measureBox(svg) <= label.length * 14 * 1.2, String(measureBox(svg)));
});

test('keeps names with wide letters as one node', () => {
  const svg = svgOf('digraph { 起点站点 -> "终点站点"; "起点站点" -> 终点站点 }');
  assert.equal(svg.match(/class="node"/g)?.length, 2);
  assert.match(svg, />起点站点</);
});

// What Graphviz would leave out without a word is refused or said.

test('adds no notes for names that Graphviz knows', () => {
  for (const source of [
    'digraph { a [shape=box style="rounded,filled" label="image=x.png shape=nosuch"]; a -> b [arrowhead=odiamond arrowtail=lcrow] }',
    'digraph { /* shape=nosuch */ a // shape=nosuch\n# style=nosuch\n }',
    'graph "shape=nosuch" { subgraph cluster_a { a -- b } }',
    'digraph { a [label=<<TABLE><TR><TD BGCOLOR="red">style=nosuch</TD></TR></TABLE>>] }',
    'digraph { a [shape=record label="<f> x"]; a:f -> b }',
  ])
    assert.deepEqual(collectDotNotes(source), [], source);
});

test('adds a note for names that Graphviz does not know', () => {
  assert.deepEqual(
    collectDotNotes('digraph { a [shape=nosuch style="filled,fancy"]; a -> b [arrowhead=nope]; c [shape=nosuch] }'),
    [
      'Graphviz has no shape nosuch: a box is drawn.',
      'Graphviz has no style fancy: it is left out.',
      'Graphviz has no arrow nope: a usual one is drawn.',
    ],
  );
});

describe('rejects source that would draw a different picture', () => {
  const refused: [string, RegExp][] = [
    ['digraph { a [image="x.png"] }', /names an image: x\.png/],
    ['digraph { a [ shapefile = "y.svg" ] }', /names an image: y\.svg/],
    ['digraph { a [label=<<TABLE><TR><TD><IMG SRC="z.png"/></TD></TR></TABLE>>] }', /names an image: z\.png/],
    ['digraph { a } digraph { b }', /has 2 graphs/],
  ];
  for (const [source, words] of refused)
    test(source, () => {
      assert.throws(() => collectDotNotes(source), isProblem('unprocessable', words));
    });
});
