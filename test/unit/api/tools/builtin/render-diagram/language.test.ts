// The language of a diagram is detected, a fence is taken off, and what is not certain is refused by name.
import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { detectDiagram } from '../../../../../../api/tools/builtin/render-diagram/language.ts';
import { isProblem } from '../../../../../support/tools/call.ts';

describe('detects the language from the source', () => {
  const known: [string, string][] = [
    ['strict digraph x\n{', 'graphviz'],
    ['/* c */ // d\n graph {', 'graphviz'],
    ['graph "a b" { a }', 'graphviz'],
    ['digraph{a->b}', 'graphviz'],
    ['graph TD\nA-->B', 'mermaid'],
    ['graph TD;A-->B{x}', 'mermaid'],
    ['graph TD; a-->b', 'mermaid'],
    ['%% c\nsequenceDiagram', 'mermaid'],
    ['%%{init: {}}%%\ngraph LR', 'mermaid'],
    ['---\ntitle: x\n---\ngraph LR\n a-->b', 'mermaid'],
    ['mindmap\n a', 'mermaid'],
    ['Flowchart LR\n a --> b', 'mermaid'],
    ['sequencediagram\n a->>b: x', 'mermaid'],
    ['gitGraph:\n commit', 'mermaid'],
    ['gitGraph LR:\n commit', 'mermaid'],
    ['C4Context\n Person(a, "b")', 'mermaid'],
    ['xychart-beta\n bar [1]', 'mermaid'],
    ['pie title Pets\n "a": 1', 'mermaid'],
    ['a -> b', 'd2'],
    ['# c\ndirection: right\nx', 'd2'],
    ['graphs -> b', 'd2'],
    ['timeline -> b', 'd2'],
    ['pie: {\n a\n}', 'd2'],
    ['block: { a -> b }', 'd2'],
    ['x: {shape: circle}', 'd2'],
    ['x.shape: circle', 'd2'],
    ['note: |md\n # Title\n|', 'd2'],
  ];
  for (const [source, language] of known)
    test(JSON.stringify(source), () => {
      assert.equal(detectDiagram(source, undefined).language, language);
    });

  test('kind takes precedence', () => {
    assert.equal(detectDiagram('a -> b', 'dot').language, 'graphviz');
    assert.equal(detectDiagram('hello world', 'd2').language, 'd2');
  });
});

test('unwraps a fenced block, by its language or by its content', () => {
  const graph = 'flowchart LR\n A --> B\n';
  for (const source of [
    `\`\`\`mermaid\n${graph}\`\`\``,
    `\n  \`\`\`mermaid\n${graph}  \`\`\`\n\n`,
    `\`\`\`\n${graph}\`\`\``,
    `~~~mermaid\n${graph}~~~`,
    `\`\`\`\`mermaid title="x"\n${graph}\`\`\`\``,
  ])
    assert.deepEqual(detectDiagram(source, undefined), { language: 'mermaid', text: graph, warnings: [] }, source);
  assert.equal(detectDiagram('```dot\ndigraph { a }\n```', undefined).language, 'graphviz');
  assert.equal(detectDiagram('```d2\nhello\n```', undefined).language, 'd2');
});

test('drops text around a fenced block with a warning', () => {
  const { language, text, warnings } = detectDiagram(
    `Here it is:\n\`\`\`mermaid\npie\n "a": 1\n\`\`\`\nEnjoy!`,
    undefined,
  );
  assert.deepEqual([language, text], ['mermaid', 'pie\n "a": 1\n']);
  assert.match(warnings.join(), /text around the fenced block was left out/);
});

test('keeps a fence inside a D2 text block as its content', () => {
  const source = 'a: |md\n  ```go\n  x\n  ```\n|\na -> b';
  assert.deepEqual(detectDiagram(source, undefined), { language: 'd2', text: source, warnings: [] });
});

describe('rejects an uncertain language and explains what to do', () => {
  const unsure: [string, RegExp][] = [
    ['please draw me a house', /does not look like a diagram.*set kind to mermaid, d2 or graphviz/],
    ['Note: a house with a garden', /does not look like a diagram/],
    ['hello', /does not look like a diagram/],
    ['@startuml\na -> b\n@enduml', /PlantUML/],
    ['<svg xmlns="http://www.w3.org/2000/svg"/>', /XML, SVG or HTML/],
    ['{"nodes": []}', /JSON/],
    ['```python\nprint(1)\n```', /fenced block of python/],
    ['```mermaid\npie\n```\n```mermaid\npie\n```', /2 fenced blocks/],
  ];
  for (const [source, words] of unsure)
    test(JSON.stringify(source), () => {
      assert.throws(() => detectDiagram(source, undefined), isProblem('unprocessable', words));
    });

  test('rejects a kind that contradicts the fence', () => {
    assert.throws(
      () => detectDiagram('```mermaid\npie\n```', 'd2'),
      isProblem('unprocessable', /kind is d2, but the fenced block says mermaid/),
    );
  });
});
