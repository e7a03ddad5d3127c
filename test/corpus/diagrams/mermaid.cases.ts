// Mermaid sources beside those of mermaid's own examples: what other engines drop or draw as something else.
import type { DiagramCase } from './case.ts';

export const mermaidCases: readonly DiagramCase[] = [
  { name: 'one line', source: 'graph TD; a-->b; b-->c', texts: ['a', 'b', 'c'] },
  {
    name: 'circle and cross ends',
    source: 'flowchart LR\n A--oB\n B--xC\n C x--x D\n D o--o E\n E<-->F',
    texts: ['A', 'F'],
    marks: /marker-(start|end)="[^"]*(circle|cross)/,
  },
  {
    name: 'slanted shapes',
    source: 'flowchart TD\n A[/Lean right/] --> B[\\Lean left\\]\n B --> C[/Trapezoid\\]\n C --> D[\\Turned/]',
    texts: ['Lean right', 'Lean left', 'Trapezoid', 'Turned'],
  },
  {
    name: 'all old shapes',
    source:
      'flowchart TD\n A(((Double))) --> B((Circle))\n B --> C([Stadium])\n C --> D[[Subroutine]]\n D --> E[(Database)]\n E --> F{{Hexagon}}\n F --> G>Flag]\n G --> H{Decision}',
    texts: ['Double', 'Circle', 'Stadium', 'Subroutine', 'Database', 'Hexagon', 'Flag', 'Decision'],
  },
  {
    name: 'new shapes',
    source:
      'flowchart TD\n A@{ shape: manual-input, label: "User Input" }\n B@{ shape: docs, label: "Multiple Documents" }\n C@{ shape: procs, label: "Process Automation" }\n D@{ shape: paper-tape, label: "Paper Records" }\n E@{ shape: cloud, label: "Cloud" }\n A --> B --> C --> D --> E',
    texts: ['User Input', 'Multiple Documents', 'Process Automation', 'Paper Records', 'Cloud'],
  },
  {
    name: 'autonumber and notes',
    source:
      'sequenceDiagram\n autonumber\n participant A as Alice\n actor B as Bob\n A->>+B: Hello\n Note right of B: Bob thinks\n Note over A,B: Both wait\n B-->>-A: Hi\n A-)B: Async\n A-xB: Lost',
    texts: ['Alice', 'Bob', 'Hello', 'Bob thinks', 'Both wait', 'Async', 'Lost', '1', '4'],
  },
  {
    name: 'blocks of a sequence',
    source:
      'sequenceDiagram\n box Aqua Group one\n participant A\n participant B\n end\n loop Every minute\n A->>B: Ping\n end\n alt is up\n B->>A: Pong\n else is down\n B--xA: Nothing\n end\n par first\n A->>B: One\n and second\n A->>B: Two\n end\n critical Connect\n A->>B: Dial\n option Timeout\n A->>A: Log\n end\n rect rgb(200, 240, 255)\n A->>B: Coloured\n end\n create participant C\n A->>C: New\n destroy C\n A-xC: Gone',
    texts: [
      'Group one',
      'Every minute',
      'is up',
      'is down',
      'first',
      'second',
      'Connect',
      'Timeout',
      'Coloured',
      'Gone',
    ],
  },
  {
    name: 'choice, fork, join and notes',
    source:
      'stateDiagram-v2\n state if_state <<choice>>\n state fork_state <<fork>>\n state join_state <<join>>\n [*] --> Check\n Check --> if_state\n if_state --> Low: n < 0\n if_state --> High: n >= 0\n High --> fork_state\n fork_state --> Left\n fork_state --> Right\n Left --> join_state\n Right --> join_state\n join_state --> [*]\n note right of Low: Below zero\n state Nested {\n [*] --> Inner\n --\n [*] --> Other\n }\n High --> Nested',
    texts: ['Check', 'Low', 'n < 0', 'n >= 0', 'Left', 'Right', 'Below zero', 'Nested', 'Inner', 'Other'],
  },
  {
    name: 'generics and members',
    source:
      'classDiagram\n class Square~Shape~{\n int id\n List~int~ position\n setPoints(List~int~ points)\n getPoints() List~int~\n +draw()* void\n -count$ int\n }\n class Shape { <<interface>> }\n Shape <|.. Square : realises\n Customer "1" --> "*" Ticket\n note for Square "Has four sides"\n namespace Geo { class Point { +x } }',
    texts: [
      'Square<Shape>',
      'List<int> position',
      'setPoints(List<int> points)',
      '«interface»',
      'realises',
      'Has four sides',
      'Geo',
      '+x',
      '1',
      '*',
    ],
  },
  {
    name: 'edge labels and lengths',
    source: 'flowchart LR\n A-- one -->B\n B-->|two|C\n C-. three .->D\n D== four ==>E\n E~~~F\n F --- G & H',
    texts: ['one', 'two', 'three', 'four', 'G', 'H'],
  },
  {
    name: 'subgraphs with directions',
    source:
      'flowchart TB\n subgraph one [First group]\n direction LR\n a1-->a2\n end\n subgraph two\n b1-->b2\n end\n one-->two\n style two fill:#eef,stroke:#336\n classDef hot fill:#fdd,stroke:#c00,color:#600\n class a1 hot',
    texts: ['First group', 'two', 'a1', 'b2'],
  },
  {
    name: 'markdown and entities',
    source: 'flowchart LR\n A["`**bold** and *italic*\nsecond line`"] --> B["quote #quot;x#quot; #9829; a<br/>b"]',
    texts: ['bold', 'italic', 'second line', 'quote "x" ♥', 'b'],
  },
  {
    name: 'front matter and directive',
    source:
      '---\ntitle: Harbour plan\nconfig:\n  theme: forest\n---\n%%{init: {"flowchart": {"curve": "stepBefore"}}}%%\n%% a comment\nflowchart LR\n Ship --> Quay',
    texts: ['Harbour plan', 'Ship', 'Quay'],
  },
  {
    name: 'hand drawn',
    source: '---\nconfig:\n  look: handDrawn\n---\nflowchart LR\n Rough --> Lines',
    texts: ['Rough', 'Lines'],
  },
  {
    name: 'many scripts',
    source:
      'flowchart TD\n A[Ελληνικά] --> B[Кириллица]\n B --> C[简体中文 繁體]\n C --> D[日本語 かな カナ]\n D --> E[한국어]\n E --> F[العربية]\n F --> G[עברית]\n G --> H[हिन्दी क्षत्रिय]\n H --> I[ภาษาไทย]\n I --> J[🚀 emoji 👩‍💻 🇩🇪]',
    texts: ['Ελληνικά', 'Кириллица', '简体中文', '日本語', '한국어', 'العربية', 'עברית', 'हिन्दी', 'ภาษาไทย', '🚀'],
  },
  {
    name: 'icons',
    source:
      'flowchart LR\n A[fa:fa-car Car] --> B[fab:fa-github Code]\n C@{ icon: "fa:user", form: "square", label: "User Icon", pos: "t" }\n B --> C',
    texts: ['Car', 'Code', 'User Icon'],
  },
  {
    name: 'links stay',
    source: 'flowchart LR\n A[Docs] --> B\n click A "https://good.test/docs" "Read"',
    texts: ['Docs'],
    marks: /https:\/\/good\.test\/docs/,
  },
  {
    name: 'entities and keys',
    source:
      'erDiagram\n CUSTOMER ||--o{ ORDER : places\n ORDER ||--|{ LINE-ITEM : contains\n CUSTOMER { string name PK "full name"\n string sector FK }\n p[Person] { string first UK }',
    texts: ['CUSTOMER', 'places', 'LINE-ITEM', 'full name', 'PK', 'Person'],
  },
  {
    name: 'gantt with dates',
    source:
      'gantt\n title A plan\n dateFormat YYYY-MM-DD\n excludes weekends\n section Build\n Frame :done, f1, 2024-01-01, 10d\n Roof :active, crit, after f1, 5d\n Party :milestone, 2024-01-25, 0d\n section Later\n Paint : 2024-01-20, 3d',
    texts: ['A plan', 'Build', 'Frame', 'Roof', 'Party', 'Paint'],
  },
  {
    name: 'dagre by layout',
    source: '---\nconfig:\n  layout: dagre\n---\nflowchart TD\n A-->B & C\n B & C-->D',
    texts: ['A', 'D'],
  },
  { name: 'unclosed node', source: 'flowchart LR\n A[Open --> B', refused: /line 2/ },
  {
    name: 'nonsense in a sequence',
    source: 'sequenceDiagram\n A->>B: hi\n this is nonsense\n B->>A: x',
    refused: /line 3.*this is nonsense/,
  },
  { name: 'only a heading', source: 'sequenceDiagram', refused: /nothing to draw|line 1/ },
  {
    name: 'fault after comments',
    source: '---\ntitle: x\n---\n%% one\nflowchart LR\n%% two\n A --> B\n B --> [C',
    refused: /line 8/,
  },
  { name: 'fault in a pie', source: 'pie title Pets\n "Dogs" : 386\n "Cats" eighty', refused: /line 3/ },
  {
    name: 'image from outside',
    source: 'flowchart LR\n A@{ img: "http://evil.test/x.png", label: "Remote" }',
    refused: /image from outside: http:\/\/evil\.test/,
  },
  { name: 'unknown icon', source: 'flowchart LR\n A[fa:fa-no-such-icon Text]', refused: /no icon fa:fa-no-such-icon/ },
];
