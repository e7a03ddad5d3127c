// D2 sources: of its documentation's kinds, and what could be dropped.
import type { DiagramCase } from './case.ts';

export const d2Cases: readonly DiagramCase[] = [
  {
    name: 'connections',
    source: 'x -> y: hello world\ny <- z\nz -- w: line\nw <-> x: both',
    texts: ['hello world', 'line', 'both'],
  },
  {
    name: 'shapes',
    source:
      'a.shape: circle\nb.shape: cylinder\nc.shape: queue\nd.shape: package\ne.shape: step\nf.shape: callout\ng.shape: stored_data\nh.shape: person\ni.shape: diamond\nj.shape: oval\nk.shape: hexagon\nl.shape: cloud\nm.shape: document\nn.shape: page\no.shape: parallelogram\na -> b -> c -> d -> e -> f\ng -> h -> i -> j -> k -> l',
    texts: ['a', 'o'],
  },
  {
    name: 'containers',
    source:
      'clouds: {\n aws: {\n load_balancer -> api\n api -> db\n }\n gcloud: {\n auth -> db\n }\n gcloud -> aws\n}\nusers -> clouds.aws.load_balancer: requests',
    texts: ['clouds', 'load_balancer', 'gcloud', 'requests'],
  },
  {
    name: 'sql tables',
    source:
      'users: {\n shape: sql_table\n id: int {constraint: primary_key}\n name: varchar\n}\norders: {\n shape: sql_table\n user_id: int {constraint: foreign_key}\n}\norders.user_id -> users.id',
    texts: ['users', 'varchar', 'PK', 'FK'],
  },
  {
    name: 'uml class',
    source:
      'Parser: {\n shape: class\n +reader: io.RuneReader\n -lookahead: "[]rune"\n #peeked: bool\n +peek(): (r rune, eof bool)\n}',
    texts: ['Parser', 'io.RuneReader', 'peek()'],
  },
  {
    name: 'sequence',
    source:
      'shape: sequence_diagram\nalice -> bob: What does it mean?\nbob -> alice: The ability to play\nalice.note: thinks',
    texts: ['What does it mean?', 'The ability to play'],
  },
  { name: 'grid', source: 'grid-rows: 2\ngrid-columns: 2\nOne\nTwo\nThree\nFour', texts: ['One', 'Four'] },
  {
    name: 'markdown',
    source: 'explanation: |md\n  # Heading\n  A paragraph with **bold** text\n  - first item\n|\nexplanation -> other',
    texts: ['Heading', 'bold', 'first item'],
  },
  {
    name: 'code block',
    source: 'code: |go\n  func main() {\n    fmt.Println("hi")\n  }\n|\ncode -> run',
    texts: ['main', 'run'],
  },
  {
    name: 'styles',
    source:
      'a: Filled {\n style: {\n fill: "#f4a261"\n stroke: "#264653"\n font-color: black\n stroke-dash: 3\n shadow: true\n multiple: true\n }\n}\na -> b: {style.animated: true}',
    texts: ['Filled', 'b'],
  },
  {
    name: 'classes',
    source: 'classes: {\n load: {label: "load\\nbalancer"; style.fill: honeydew}\n}\nweb -> lb\nlb.class: load',
    texts: ['balancer', 'web'],
  },
  {
    name: 'variables',
    source: 'vars: {\n port: harbour\n}\nserver: Server in ${port}\nserver -> db',
    texts: ['Server in harbour'],
  },
  {
    name: 'globs',
    source: 'iphone 10\niphone 11 mini\niphone 11 pro\n*.height: 100\niphone 10 -> iphone 11 pro',
    texts: ['iphone 11 mini'],
  },
  {
    name: 'arrowheads',
    source:
      'a -> b: {\n source-arrowhead: 1\n target-arrowhead: * {shape: diamond; style.filled: true}\n}\nc -> d: {target-arrowhead.shape: cf-many}',
    texts: ['1', '*'],
  },
  {
    name: 'near and title',
    source: 'title: |md\n  # A winning strategy\n| {near: top-center}\npoll -> result',
    texts: ['A winning strategy', 'result'],
  },
  { name: 'direction', source: 'direction: right\nx -> y -> z: onward', texts: ['onward'] },
  {
    name: 'latex',
    source: 'eq: |latex\n  \\lim_{h \\rightarrow 0 } \\frac{f(x+h)-f(x)}{h}\n|\neq -> done',
    texts: ['done'],
  },
  {
    name: 'many scripts',
    source:
      'a: Ελληνικά Кириллица\nb: 简体中文 日本語 한국어\nc: العربية עברית\nd: हिन्दी ภาษาไทย\ne: 🚀 launch\na -> b -> c -> d -> e',
    texts: ['Ελληνικά', '简体中文', '한국어', 'हिन्दी', '🚀'],
  },
  {
    name: 'long labels',
    source:
      'a: 一个非常长的中文标签用来检查文字是否适合它的框\nb: A rather long label in English that has to fit into its box\na -> b: 这条边的标签也不短',
    texts: ['一个非常长的中文标签', 'A rather long label', '这条边的标签也不短'],
  },
  {
    name: 'link and tooltip',
    source: 'a: {link: "https://good.test/"; tooltip: Total abstinence}\na -> b',
    texts: ['b'],
    marks: /https:\/\/good\.test\//,
  },
  { name: 'icon from outside', source: 'a: {icon: https://evil.test/x.svg}\na -> b', refused: /image from outside/ },
  { name: 'layers', source: 'a -> b\nlayers: {\n inside: { c -> d }\n}', refused: /layers/ },
  { name: 'fault', source: 'a -> b\nx: {shape: nosuch}', refused: /line 2/ },
];
