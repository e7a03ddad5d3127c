// Files of guides that are wrong: each is named with its field.
import assert from 'node:assert/strict';
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, test } from 'vitest';
import { readGuides } from '../../../../../api/catalog/guides/load.ts';
import { guideSlugs } from '../../../../../api/catalog/guides/source.ts';

const own = join(import.meta.dirname, '../../../../../manifests/guides');
const file = 'best-model-for-research-agent.yaml';
let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'moorage-guides-'));
  cpSync(own, folder, { recursive: true });
});
afterEach(() => {
  rmSync(folder, { recursive: true, force: true });
});

function change(from: RegExp, to: string): void {
  const text = readFileSync(join(folder, file), 'utf8');
  assert.match(text, from);
  writeFileSync(join(folder, file), text.replace(from, to));
}

test('guides are in the order of the interface', () => {
  assert.deepEqual(
    readGuides(folder).map(({ slug }) => slug),
    guideSlugs,
  );
});

test.each([
  ['an unknown field', /^question:/m, 'questions: x\nquestion:', /best-model-for-research-agent\.yaml: .*questions/],
  ['no answer', /^answer: >-/m, 'answers: >-', /best-model-for-research-agent\.yaml: answer: /],
  ['a time that is none', /^updated: .*$/m, 'updated: yesterday', /yaml: updated: must be a UTC time/],
  ['another name', /^slug: .*$/m, 'slug: transcribe-audio-url-via-mcp', /yaml: slug: is transcribe-audio-url-via-mcp/],
  ['a slug of nobody', /^slug: .*$/m, 'slug: my-guide', /yaml: slug: /],
  ['claims without evidence', /^evidence: .*$/m, 'evidence: []', /yaml: claims: needs evidence/],
  ['a claim of no kind', /kind: best-value/, 'kind: best', /yaml: claims\.0\.kind/],
  ['a step without a call', /call: \{ get: \/api\/models \}/, 'call: {}', /yaml: steps\.0\.call/],
  ['no YAML', /^slug:/m, '}slug:', /best-model-for-research-agent\.yaml: /],
])('%s', (_name, from, to, says) => {
  change(from, to);
  assert.throws(() => readGuides(folder), says);
});

test('a guide of the interface that is not there', () => {
  rmSync(join(folder, file));
  assert.throws(() => readGuides(folder), /best-model-for-research-agent\.yaml is missing/);
});
