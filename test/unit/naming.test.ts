// Checks that functions start with a verb of the list in docs/glossary.md.
import assert from 'node:assert/strict';
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'vitest';

const root = join(import.meta.dirname, '..', '..');
const rooms = ['api', 'controller', 'activator', 'lib', 'crds', 'cli', 'charts', 'docs', 'localnode'] as const;
type Room = (typeof rooms)[number];

const program = 'the entry point of a program';
const schema = 'builds a zod schema, which is named after the value that it accepts';

/** Functions that keep a name without a verb, as `path name`, and why. */
const exceptions: Readonly<Record<string, string>> = {
  'cli/apps/main.ts main': program,
  'cli/main.ts main': program,
  'controller/pipeline/main.ts main': program,
  'crds/hosted-app.ts appPath': schema,
  'crds/values.ts duration': schema,
  'crds/values.ts quantity': schema,
  'crds/values.ts relativePath': schema,
  'api/http/response.ts html': 'a template tag, named after its language so that editors and Prettier format it',
  'api/models/catalog.ts modelField': schema,
  'api/tools/engine/reading.ts jsonField': schema,
  'api/tools/engine/reading.ts decodedField': schema,
  'api/tools/inputs/fields.ts fileFields': schema,
  'api/tools/inputs/fields.ts urlField': schema,
  'api/tools/inputs/fields.ts pictureFormat': schema,
};

/** Functions of a module's top level: declarations, and constants that hold an arrow function. Prettier starts them at the margin. */
const declarations = [
  /^(?:export )?(?:default )?(?:async )?function\*? (?<name>\w+)/gm,
  /^(?:export )?const (?<name>\w+)(?:: [^=\n]+)? = (?:async )?(?:<[^()]*>)?(?:\w+|\([^()]*\)(?:: [^=\n]+)?) =>/gm,
];

const verbs = readVerbs();
const found = rooms.flatMap((room) => listBadNames(room).map((name) => ({ room, name })));

test('the verbs of the glossary are in alphabetical order, each once', () => {
  assert.deepEqual(verbs, [...new Set(verbs)].sort());
});

test.each(rooms)('functions of %s start with a verb', (room) => {
  const names = found.filter((one) => one.room === room && exceptions[one.name] === undefined).map(({ name }) => name);
  assert.deepEqual(
    names,
    [],
    `Name each of these functions of ${room} after what it does, with a verb from "Verbs of functions" in docs/glossary.md.`,
  );
});

test('every exception still exists', () => {
  const names = new Set(found.map(({ name }) => name));
  assert.deepEqual(
    Object.keys(exceptions).filter((name) => !names.has(name)),
    [],
    'Remove these exceptions from test/unit/naming.test.ts: the functions are gone or start with a verb.',
  );
});

test.each([
  ['function priceOf(units: number): Money {', ['priceOf']],
  ['export async function* frames(', ['frames']],
  ['export default function written(): void {', ['written']],
  ['const later = (ms: string): string => `${ms}`;', ['later']],
  ['export const half = async <Value>(value: Value): Promise<Value> =>', ['half']],
  ['export function formatMoney(amount: Money): string {', []],
  ['function canonicalOf(text: string): string {', ['canonicalOf']],
  ['const total = (price + margin) / 2;', []],
  ['  function inner(): void {', []],
])('in %s finds the bad names %j', (source, expected) => {
  assert.deepEqual(listNames(source).filter(hasNoVerb), expected);
});

/** Reads the code block of the section "Verbs of functions". */
function readVerbs(): string[] {
  const glossary = readFileSync(join(root, 'docs/glossary.md'), 'utf8');
  const block = /^## Verbs of functions\n[^#]*?^```text\n(?<verbs>[^`]+)^```$/m.exec(glossary)?.groups?.['verbs'];
  assert.ok(block !== undefined, 'docs/glossary.md has no section "Verbs of functions" with a code block');
  return block.trim().split(/\s+/);
}

/** Lists the functions of a room whose names start with no verb, as `path name`. */
function listBadNames(room: Room): string[] {
  const files = globSync(`${room}/**/*.ts`, {
    cwd: root,
    exclude: ['**/node_modules/**', '**/*.test.ts', '**/*.d.ts'],
  });
  return files.sort().flatMap((file) =>
    listNames(readFileSync(join(root, file), 'utf8'))
      .filter(hasNoVerb)
      .map((name) => `${file} ${name}`),
  );
}

/** Lists the functions of a module, overloads once. */
function listNames(source: string): string[] {
  const names = declarations.flatMap((pattern) =>
    [...source.matchAll(pattern)].map(({ groups }) => groups?.['name'] ?? ''),
  );
  return [...new Set(names)];
}

function hasNoVerb(name: string): boolean {
  const [word = ''] = /^[a-z]+/.exec(name) ?? [];
  return !verbs.includes(word);
}
