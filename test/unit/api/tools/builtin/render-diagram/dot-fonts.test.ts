// Graphviz measures in the font that is drawn, and nothing of what is added for that is seen.
import assert from 'node:assert/strict';
import { Graphviz } from '@hpcc-js/wasm-graphviz';
import { test } from 'vitest';
import { withFont, withoutPads } from '../../../../../../api/tools/builtin/render-diagram/dot-fonts.ts';

const graphviz = await Graphviz.load();
const svgOf = (source: string): string => withoutPads(graphviz.layout(withFont(source), 'svg', 'dot'));
/** Width of the only box. */
function boxOf(svg: string): number {
  const points = (/<polygon fill="none" stroke="black" points="([^"]*)"/.exec(svg)?.[1] ?? '').split(' ');
  const xs = points.map((point) => Number(point.split(',')[0]));
  return Math.max(...xs) - Math.min(...xs);
}

test('the font stands first, on the line of the brace', () => {
  assert.match(
    withFont('/* { */ digraph "a{" {\n a }'),
    /^\/\* \{ \*\/ digraph "a\{" \{ graph \[fontname="Arial"\];.*\n a \}$/,
  );
  assert.equal(withFont('digraph {\n\n a }').split('\n').length, 3);
  assert.equal(withFont('no graph'), 'no graph');
});

test('a wide letter has an em, and its name is as it was', () => {
  const label = '一个非常长的中文标签用来检查文字';
  const svg = svgOf(`digraph { a [shape=box label="${label}"] }`);
  assert.ok(svg.includes(`>${label}</text>`), svg);
  // 14 pt of each letter, and the margin.
  assert.ok(boxOf(svg) >= label.length * 14, String(boxOf(svg)));
  assert.ok(boxOf(svg) <= label.length * 14 * 1.2, String(boxOf(svg)));
});

test('names with wide letters stay one node', () => {
  const svg = svgOf('digraph { 起点站点 -> "终点站点"; "起点站点" -> 终点站点 }');
  assert.equal(svg.match(/class="node"/g)?.length, 2);
  assert.match(svg, />起点站点</);
});
