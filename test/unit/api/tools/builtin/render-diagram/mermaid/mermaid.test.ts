// A fault of mermaid names the line of the source, though mermaid counts without front matter and comments.
import assert from 'node:assert/strict';
import { test } from 'vitest';
import {
  toMermaidProblem,
  findSourceLine,
  collectNotes,
} from '../../../../../../../api/tools/builtin/render-diagram/mermaid/mermaid.ts';

test('counts lines that mermaid removes', () => {
  const source = '---\ntitle: x\n---\n%% one\nflowchart LR\n%% two\n A --> B\n\n B --> C';
  assert.deepEqual(
    [1, 2, 4].map((line) => findSourceLine(source, line)),
    [5, 7, 9],
  );
  assert.equal(findSourceLine('flowchart LR\n A\n B', 3), 3);
  assert.equal(findSourceLine('%%{init: {}}%%\nflowchart LR\n A', 2), 3);
  assert.equal(findSourceLine('flowchart LR\r\n%% x\r\n A', 2), 3);
});

test('maps a line after the end to the last one', () => {
  assert.equal(findSourceLine('pie\n "a": 1\n\n', 9), 2);
});

test('reports the words of mermaid with the line of the source', () => {
  const source = '%% note\nflowchart LR\n A[Open --> B';
  const { message, members } = toMermaidProblem(source, {
    name: 'Error',
    message: "Parse error on line 2:\n A[Open --> B\n------^\nExpecting 'SQE', got 'EOF'",
    line: 2,
  });
  assert.match(message, /^Mermaid cannot parse source: line 3: unexpected 'EOF'; expected 'SQE'/);
  assert.equal(members.line, 3);
});

test('also converts lines in messages of other parsers', () => {
  const source = '%% note\npie\n "a" x';
  const { message, members } = toMermaidProblem(source, {
    name: 'MermaidParseError',
    message: 'Parsing failed: unexpected character at offset: 8, on line 2, column 6.',
  });
  assert.match(message, /line 3: Parsing failed.*on line 3, column 6/);
  assert.equal(members.line, 3);
});

test('locates a fault without a line by the text that it quotes', () => {
  const { message, members } = toMermaidProblem('gitGraph\n commit\n checkout nope', {
    name: 'Error',
    message: 'Trying to checkout branch which is not yet created.',
    text: 'checkout nope',
  });
  assert.match(message, /line 3: Trying to checkout/);
  assert.equal(members.line, 3);
  assert.equal(
    toMermaidProblem('flowchart LR\n A@{ shape: nosuch }', { name: 'Error', message: 'No such shape: nosuch.' }).members
      .line,
    2,
  );
});

test('asks for content if there is only a heading', () => {
  assert.equal(
    toMermaidProblem('sequenceDiagram', { name: 'Empty', message: '' }).message,
    'Mermaid cannot parse source: it has a heading but nothing to draw. Add what the diagram is to show.',
  );
});

test('names an unknown kind', () => {
  const { message } = toMermaidProblem('%% x\nflowchrt LR', {
    name: 'UnknownDiagramError',
    message: 'No diagram type detected matching given configuration for text: flowchrt',
  });
  assert.match(message, /no diagram type is known by its beginning: flowchrt LR/);
});

// What mermaid leaves out without a word is a warning.

const drawn = { kind: 'flowchart-v2', layout: undefined, logged: [], covered: [] };

test('adds no notes for a plain diagram or a link', () => {
  assert.deepEqual(collectNotes('flowchart LR\n A --> B\n click A "https://good.test/"', drawn), []);
});

test('adds a note for code in a click handler', () => {
  assert.match(collectNotes('flowchart LR\n A\n click A call go()', drawn).join(), /click on A.*runs no code/);
  assert.match(collectNotes('flowchart LR\n A\n click A "javascript:alert(1)"', drawn).join(), /click on A/);
});

test('adds a note for settings that cannot be changed', () => {
  const notes = collectNotes('%%{init: {"securityLevel": "loose", "theme": "dark"}}%%\nflowchart LR\n A', drawn);
  assert.deepEqual(notes, ['The setting securityLevel is ignored: it cannot be changed here.']);
  assert.match(collectNotes('---\nconfig:\n  maxEdges: 9\n---\nflowchart LR\n A', drawn).join(), /maxEdges is ignored/);
  assert.deepEqual(collectNotes('flowchart LR\n A[securityLevel: loose]', drawn), []);
});

test('adds a note for overlapping labels', () => {
  const covered = [['Website', 'Mobile App']] as const;
  assert.match(
    collectNotes('architecture-beta', { ...drawn, covered }).join(),
    /"Website" and "Mobile App" over each other/,
  );
});

test('adds a note for a layout that the diagram type does not support', () => {
  assert.match(
    collectNotes('pie', { ...drawn, kind: 'pie', layout: 'elk' }).join(),
    /no effect on diagrams of the kind pie/,
  );
  assert.deepEqual(collectNotes('flowchart LR\n A', { ...drawn, layout: 'elk' }), []);
});
