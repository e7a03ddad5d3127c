// What mermaid leaves out without a word is a warning.
import assert from 'node:assert/strict';
import { test } from 'vitest';
import { notesOn } from '../../../../../../../api/tools/builtin/render-diagram/mermaid/notes.ts';

const drawn = { kind: 'flowchart-v2', layout: undefined, logged: [], covered: [] };

test('nothing to say of a plain diagram, and of a link', () => {
  assert.deepEqual(notesOn('flowchart LR\n A --> B\n click A "https://good.test/"', drawn), []);
});

test('code behind a click', () => {
  assert.match(notesOn('flowchart LR\n A\n click A call go()', drawn).join(), /click on A.*runs no code/);
  assert.match(notesOn('flowchart LR\n A\n click A "javascript:alert(1)"', drawn).join(), /click on A/);
});

test('settings that cannot be changed', () => {
  const notes = notesOn('%%{init: {"securityLevel": "loose", "theme": "dark"}}%%\nflowchart LR\n A', drawn);
  assert.deepEqual(notes, ['The setting securityLevel is ignored: it cannot be changed here.']);
  assert.match(notesOn('---\nconfig:\n  maxEdges: 9\n---\nflowchart LR\n A', drawn).join(), /maxEdges is ignored/);
  assert.deepEqual(notesOn('flowchart LR\n A[securityLevel: loose]', drawn), []);
});

test('labels that lie on each other', () => {
  const covered = [['Website', 'Mobile App']] as const;
  assert.match(
    notesOn('architecture-beta', { ...drawn, covered }).join(),
    /"Website" and "Mobile App" over each other/,
  );
});

test('a layout of a kind that has none', () => {
  assert.match(
    notesOn('pie', { ...drawn, kind: 'pie', layout: 'elk' }).join(),
    /no effect on diagrams of the kind pie/,
  );
  assert.deepEqual(notesOn('flowchart LR\n A', { ...drawn, layout: 'elk' }), []);
});
