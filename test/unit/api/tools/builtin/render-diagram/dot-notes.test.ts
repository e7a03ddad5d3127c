// What Graphviz would leave out without a word is refused or said.
import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { dotNotes } from '../../../../../../api/tools/builtin/render-diagram/dot-notes.ts';
import { isProblem } from '../../../../../support/tools/call.ts';

test('nothing to say of what Graphviz knows', () => {
  for (const source of [
    'digraph { a [shape=box style="rounded,filled" label="image=x.png shape=nosuch"]; a -> b [arrowhead=odiamond arrowtail=lcrow] }',
    'digraph { /* shape=nosuch */ a // shape=nosuch\n# style=nosuch\n }',
    'graph "shape=nosuch" { subgraph cluster_a { a -- b } }',
    'digraph { a [label=<<TABLE><TR><TD BGCOLOR="red">style=nosuch</TD></TR></TABLE>>] }',
    'digraph { a [shape=record label="<f> x"]; a:f -> b }',
  ])
    assert.deepEqual(dotNotes(source), [], source);
});

test('names that Graphviz does not know are said', () => {
  assert.deepEqual(
    dotNotes('digraph { a [shape=nosuch style="filled,fancy"]; a -> b [arrowhead=nope]; c [shape=nosuch] }'),
    [
      'Graphviz has no shape nosuch: a box is drawn.',
      'Graphviz has no style fancy: it is left out.',
      'Graphviz has no arrow nope: a usual one is drawn.',
    ],
  );
});

describe('what would be another picture is refused', () => {
  const refused: [string, RegExp][] = [
    ['digraph { a [image="x.png"] }', /names an image: x\.png/],
    ['digraph { a [ shapefile = "y.svg" ] }', /names an image: y\.svg/],
    ['digraph { a [label=<<TABLE><TR><TD><IMG SRC="z.png"/></TD></TR></TABLE>>] }', /names an image: z\.png/],
    ['digraph { a } digraph { b }', /has 2 graphs/],
  ];
  for (const [source, words] of refused)
    test(source, () => {
      assert.throws(() => dotNotes(source), isProblem('unprocessable', words));
    });
});
