// What a plan of a compiled app says about its database: queries that need one in the build, and migrations that nothing runs.
import assert from 'node:assert/strict';
import { test } from 'vitest';
import { Rejected } from '../../../../../../controller/pipeline/contract.ts';
import { mergePlatforms } from '../../../../../../controller/pipeline/plan/platforms/settings.ts';
import { makePlan } from '../../../../../../controller/pipeline/plan/plan.ts';
import { createMemoryTree } from '../../../../../../controller/pipeline/tree.ts';
import { sampleInput } from '../../../../../support/pipeline/sample.ts';
import type { Changes, Files } from '../plan.cases.ts';

const cargo =
  '[package]\nname = "a"\n[dependencies]\nsqlx = { version = "0.8", features = ["runtime-tokio", "postgres"] }\n';
const checked = {
  'Cargo.toml': cargo,
  'src/main.rs':
    '// query!("old")\nfn main() {\n    let url = std::env::var("DATABASE_URL");\n    sqlx::query!("select 1");\n    sqlx::migrate!();\n}\n',
};

function planRules(files: Files, changes: Changes = {}): string[] {
  return makePlan(createMemoryTree(files), sampleInput(changes)).findings.map(
    ({ rule, file }) => `${rule} ${file ?? ''}`,
  );
}

test('refuses queries that SQLx checks against a database in the build, with the line and the command', () => {
  try {
    planRules(checked);
    assert.fail('it was planned');
  } catch (error) {
    assert.ok(error instanceof Rejected);
    const [finding] = error.findings;
    assert.deepEqual([finding.rule, finding.file, finding.line], ['plan/database-in-build', 'src/main.rs', 4]);
    assert.match(finding.fix, /cargo sqlx prepare.*commit the folder \.sqlx/);
  }
});

test.each([
  ['what cargo sqlx prepare wrote', { ...checked, '.sqlx/query-0a1b.json': '{}' }, {}],
  [
    'an address in build.env',
    checked,
    { build: { ...sampleInput().build, env: [{ name: 'DATABASE_URL', value: 'postgres://x' }] } },
  ],
  [
    'a program without the queries of another one',
    {
      ...checked,
      'src/main.rs': 'fn main() { sqlx::migrate!(); }',
      'src/bin/fill.rs': 'fn main() { sqlx::query!("select 1"); }',
    },
    {},
  ],
  [
    'queries that are not checked',
    { ...checked, 'src/main.rs': 'fn main() { sqlx::query("select 1"); sqlx::migrate!(); }' },
    {},
  ],
])('plans %s', (_, files, changes) => {
  assert.deepEqual(planRules(files, changes), []);
});

test.each([
  ['sqlx = { version = "0.8", features = ["postgres"] }', 'postgres'],
  ['diesel = { version = "2", features = ["mysql"] }', 'mysql'],
  ['sqlx = { version = "0.8", features = ["postgres", "sqlite"] }', undefined],
  ['serde = "1"', undefined],
])('gives a Rust app that reads DATABASE_URL the server of its crate: %s', (line, expected) => {
  const files = { ...checked, 'Cargo.toml': `[package]\nname = "a"\n[dependencies]\n${line}\n` };
  const { settings } = mergePlatforms(createMemoryTree(files), undefined, sampleInput());
  assert.deepEqual(
    settings?.services?.map(({ type }) => type),
    expected === undefined ? undefined : [expected],
  );
});

const diesel = {
  'Cargo.toml': '[package]\nname = "a"\n[dependencies]\ndiesel = { version = "2", features = ["postgres"] }\n',
  'src/main.rs': 'fn main() {}',
  'migrations/1_a/up.sql': '',
};
const go = {
  'go.mod': 'module example.org/a\n\ngo 1.22\n',
  'main.go': 'package main\nfunc main() {}\n',
  'db/migrations/1_a.up.sql': '',
};
const web = {
  'a.csproj':
    '<Project Sdk="Microsoft.NET.Sdk.Web"><PropertyGroup><TargetFramework>net8.0</TargetFramework></PropertyGroup></Project>',
  'Program.cs': 'app.Run();',
  'Migrations/ShopModelSnapshot.cs': '',
};

test.each([
  [
    'Rust',
    diesel,
    'migrations/1_a/up.sql',
    { 'src/main.rs': 'const M: EmbeddedMigrations = embed_migrations!(); fn main() {}' },
  ],
  ['Go', go, 'db/migrations/1_a.up.sql', { 'db.go': 'package main\nimport "github.com/pressly/goose/v3"\n' }],
  ['.NET', web, 'Migrations/ShopModelSnapshot.cs', { 'Program.cs': 'db.Database.Migrate(); app.Run();' }],
])('warns about migrations of %s that the program does not apply itself', (_, files, file, applied) => {
  assert.deepEqual(planRules(files as Files), [`plan/migrations ${file}`]);
  assert.deepEqual(planRules({ ...files, ...applied }), []);
});
