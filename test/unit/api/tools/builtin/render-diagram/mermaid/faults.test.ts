// A fault of mermaid names the line of the source, though mermaid counts without front matter and comments.
import assert from 'node:assert/strict';
import { test } from 'vitest';
import { faultOf, sourceLine } from '../../../../../../../api/tools/builtin/render-diagram/mermaid/faults.ts';

test('lines that mermaid removes are counted', () => {
  const source = '---\ntitle: x\n---\n%% one\nflowchart LR\n%% two\n A --> B\n\n B --> C';
  assert.deepEqual(
    [1, 2, 4].map((line) => sourceLine(source, line)),
    [5, 7, 9],
  );
  assert.equal(sourceLine('flowchart LR\n A\n B', 3), 3);
  assert.equal(sourceLine('%%{init: {}}%%\nflowchart LR\n A', 2), 3);
  assert.equal(sourceLine('flowchart LR\r\n%% x\r\n A', 2), 3);
});

test('a line behind the end is the last one', () => {
  assert.equal(sourceLine('pie\n "a": 1\n\n', 9), 2);
});

test('the words are those of mermaid, with the line of the source', () => {
  const source = '%% note\nflowchart LR\n A[Open --> B';
  const { message, members } = faultOf(source, {
    name: 'Error',
    message: "Parse error on line 2:\n A[Open --> B\n------^\nExpecting 'SQE', got 'EOF'",
    line: 2,
  });
  assert.match(message, /^Mermaid cannot parse source: line 3: unexpected 'EOF'; expected 'SQE'/);
  assert.equal(members.line, 3);
});

test('lines in the words of other parsers are counted too', () => {
  const source = '%% note\npie\n "a" x';
  const { message, members } = faultOf(source, {
    name: 'MermaidParseError',
    message: 'Parsing failed: unexpected character at offset: 8, on line 2, column 6.',
  });
  assert.match(message, /line 3: Parsing failed.*on line 3, column 6/);
  assert.equal(members.line, 3);
});

test('a fault without a line is looked for by the text that it names', () => {
  const { message, members } = faultOf('gitGraph\n commit\n checkout nope', {
    name: 'Error',
    message: 'Trying to checkout branch which is not yet created.',
    text: 'checkout nope',
  });
  assert.match(message, /line 3: Trying to checkout/);
  assert.equal(members.line, 3);
  assert.equal(
    faultOf('flowchart LR\n A@{ shape: nosuch }', { name: 'Error', message: 'No such shape: nosuch.' }).members.line,
    2,
  );
});

test('an unknown kind is named', () => {
  const { message } = faultOf('%% x\nflowchrt LR', {
    name: 'UnknownDiagramError',
    message: 'No diagram type detected matching given configuration for text: flowchrt',
  });
  assert.match(message, /no diagram type is known by its beginning: flowchrt LR/);
});
