// DOT sources: of Graphviz's documentation's kinds, and what could be dropped.
import type { DiagramCase } from './case.ts';

export const dotCases: readonly DiagramCase[] = [
  {
    name: 'digraph',
    source:
      'digraph G { main -> parse -> execute; main -> init; main -> cleanup; execute -> make_string; init -> make_string }',
    texts: ['main', 'cleanup'],
  },
  { name: 'graph', source: 'graph { a -- b -- c; b -- d [label=side] }', texts: ['side'] },
  {
    name: 'records',
    source:
      'digraph { node [shape=record]; s1 [label="<f0> left|<f1> middle|<f2> right"]; s2 [label="{one|two}"]; s1:f1 -> s2 }',
    texts: ['left', 'middle', 'two'],
  },
  {
    name: 'html table',
    source:
      'digraph { a [shape=plain label=<<TABLE BORDER="0" CELLBORDER="1"><TR><TD PORT="x"><B>bold</B></TD><TD><I>italic</I></TD></TR><TR><TD COLSPAN="2" BGCOLOR="yellow">wide</TD></TR></TABLE>>]; a:x -> b }',
    texts: ['bold', 'italic', 'wide'],
  },
  {
    name: 'clusters',
    source:
      'digraph { subgraph cluster_0 { label="process one"; style=filled; color=lightgrey; a0 -> a1 } subgraph cluster_1 { label="process two"; b0 -> b1 } start -> a0; start -> b0; a1 -> end; b1 -> end }',
    texts: ['process one', 'process two', 'start'],
  },
  {
    name: 'ranks',
    source: 'digraph { rankdir=LR; {rank=same; a; b} a -> c; b -> c [style=dashed, color=red, label="dashed"] }',
    texts: ['dashed'],
  },
  {
    name: 'shapes',
    source:
      'digraph { a [shape=box]; b [shape=diamond]; c [shape=doublecircle]; d [shape=cylinder]; e [shape=note]; f [shape=tab]; g [shape=folder]; h [shape=component]; i [shape=star]; j [shape=house]; a->b->c->d->e; f->g->h->i->j }',
    texts: ['a', 'j'],
  },
  {
    name: 'colours',
    source:
      'digraph { bgcolor="#fafafa"; node [style="filled,rounded" shape=box fillcolor="lightblue:white" gradientangle=90]; a -> b [color="red;0.5:blue"] }',
    texts: ['a'],
  },
  {
    name: 'arrowheads',
    source:
      'digraph { a -> b [arrowhead=diamond arrowtail=crow dir=both]; b -> c [arrowhead=odot]; c -> d [arrowhead=vee headlabel=head taillabel=tail] }',
    texts: ['head', 'tail'],
  },
  { name: 'strict', source: 'strict graph { a -- b; a -- b; b -- a }', texts: ['a', 'b'] },
  {
    name: 'quoted names',
    source: 'digraph "my graph" { "node one" -> "node \\"two\\""; "ünï" -> "node one" }',
    texts: ['node one', 'node "two"', 'ünï'],
  },
  { name: 'ports and compass', source: 'digraph { a:e -> b:w; b:s -> a:s }', texts: ['a', 'b'] },
  {
    name: 'graph label',
    source: 'digraph { label="The title"; labelloc=t; fontsize=24; a -> b }',
    texts: ['The title'],
  },
  { name: 'comments', source: '/* head */ // more\n# pre\ndigraph { a -> b // tail\n }', texts: ['a'] },
  {
    name: 'self loops',
    source: 'digraph { a -> a [label=again]; a -> b; a -> b [label=twice] }',
    texts: ['again', 'twice'],
  },
  {
    name: 'state machine',
    source:
      'digraph fsm { rankdir=LR; node [shape=doublecircle]; LR_0 LR_3; node [shape=circle]; LR_0 -> LR_2 [label="SS(B)"]; LR_0 -> LR_1 [label="SS(S)"]; LR_2 -> LR_3 [label="S(A)"] }',
    texts: ['SS(B)', 'LR_3'],
  },
  {
    name: 'line breaks',
    source: 'digraph { a [label="left\\lright\\r" shape=box]; b [label="up\\ndown"]; a -> b }',
    texts: ['left', 'down'],
  },
  { name: 'entities', source: 'digraph { a [label="&alpha; &amp; &lt;x&gt;"]; a -> b }', texts: ['α'] },
  {
    name: 'many scripts',
    source:
      'digraph { a [label="Ελληνικά Кириллица"]; b [label="简体中文 日本語 한국어"]; c [label="العربية עברית"]; d [label="हिन्दी ภาษาไทย"]; e [label="🚀 launch"]; a -> b -> c -> d -> e }',
    texts: ['Ελληνικά', '简体中文', '한국어', 'हिन्दी', '🚀'],
  },
  {
    name: 'long labels',
    source:
      'digraph { node [shape=box]; a [label="一个非常长的中文标签用来检查文字是否适合它的框"]; b [label="A rather long label in English that has to fit into its box"]; a -> b [label="这条边的标签也不短"] }',
    texts: ['一个非常长的中文标签', 'A rather long label'],
  },
  {
    name: 'link',
    source: 'digraph { a [URL="https://good.test/"]; a -> b }',
    texts: ['a'],
    marks: /https:\/\/good\.test\//,
  },
  { name: 'image', source: 'digraph { a [image="x.png"]; a -> b }', refused: /image/ },
  { name: 'unknown shape', source: 'digraph { a [shape=nosuchshape]; a -> b }', warned: /nosuchshape/ },
  { name: 'fault', source: 'digraph {\n a -> b\n c -> }', refused: /line 3/ },
];
