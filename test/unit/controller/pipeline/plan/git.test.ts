// What plans do for code that asks git for the commit: in the build, which has no .git folder, and in the running app.
import assert from 'node:assert/strict';
import { test } from 'vitest';
import { makePlan } from '../../../../../controller/pipeline/plan/plan.ts';
import { createMemoryTree } from '../../../../../controller/pipeline/tree.ts';
import { sampleInput } from '../../../../support/pipeline/sample.ts';
import { type Files, flask, json } from './plan.cases.ts';

const commit = 'a'.repeat(40);

function planApp(files: Files): { stages: string[]; rules: string[] } {
  const { dockerfile = '', findings } = makePlan(createMemoryTree(files), sampleInput());
  return { stages: dockerfile.split(/^(?=FROM )/m), rules: findings.map(({ rule, file }) => `${rule} ${file ?? ''}`) };
}

const repository =
  /^RUN git init --quiet \. && GIT_AUTHOR_DATE=\S+ GIT_COMMITTER_DATE=\S+ git .* commit --quiet --allow-empty/m;
const cargo = '[package]\nname = "a"\n';

test.each([
  [
    'Maven',
    { 'pom.xml': '<project><plugin><artifactId>git-commit-id-maven-plugin</artifactId></plugin></project>' },
    'pom.xml',
  ],
  ['Gradle', { 'build.gradle': 'plugins { id "com.gorylenko.gradle-git-properties" }', gradlew: '' }, 'build.gradle'],
  ['Cargo', { 'Cargo.toml': `${cargo}[build-dependencies]\nvergen-git2 = "1"\n`, 'src/main.rs': '' }, 'Cargo.toml'],
  [
    'a build script of Cargo',
    { 'Cargo.toml': cargo, 'build.rs': 'fn main() { Command::new("git"); }', 'src/main.rs': '' },
    'build.rs',
  ],
])('makes a repository with one commit for a tool of %s that fails without one', (_, files, file) => {
  const { stages, rules } = planApp(files);
  assert.match(stages[1] ?? '', repository);
  assert.ok((stages[1] ?? '').indexOf('COPY . .') < (stages[1] ?? '').indexOf('git init'));
  assert.deepEqual(rules, [`plan/git-history ${file}`]);
});

test('makes no repository for a Java or Rust app that asks for none', () => {
  for (const files of [{ 'pom.xml': '<project/>' }, { 'Cargo.toml': cargo, 'src/main.rs': '' }] as Files[])
    assert.doesNotMatch(planApp(files).stages.join(''), /git init/);
});

test('gives the build of a Node app the variables of the commit that its configuration reads, after the packages', () => {
  const files = {
    'package.json': json({ scripts: { build: 'vite build' }, devDependencies: { vite: '6' } }),
    'index.html': '',
    'vite.config.ts': 'export default { define: { v: process.env.VITE_GIT_SHA ?? process.env["SOURCE_COMMIT"] } }',
  };
  const [, build = ''] = planApp(files).stages;
  assert.match(
    build,
    new RegExp(
      `npm install[\\s\\S]*^ARG VITE_GIT_SHA=${commit}\nARG SOURCE_COMMIT=${commit}$[\\s\\S]*npm run build`,
      'm',
    ),
  );
});

test('installs git where Mix checks packages that come from it at each start', () => {
  const mix = (deps: string): Files => ({
    'mix.exs': `defmodule A.MixProject do\n  use Mix.Project\n  def project, do: [app: :a, elixir: "~> 1.14", deps: deps()]\n  def application, do: [mod: {A, []}]\n  defp deps, do: [${deps}]\nend\n`,
    'lib/a.ex': 'defmodule A do\n  def start(_, _), do: Supervisor.start_link([{Bandit, plug: A}], [])\nend\n',
  });
  assert.match(
    planApp(mix('{:heroicons, github: "tailwindlabs/heroicons", app: false}')).stages[2] ?? '',
    /apt-get install .* git /,
  );
  assert.doesNotMatch(planApp(mix('{:bandit, "~> 1.0"}')).stages[2] ?? '', / git /);
});

test.each([
  ['Ruby', { Gemfile: 'gem "sinatra"', 'config.ru': '', 'config/initializers/version.rb': 'V = `git rev-parse HEAD`' }],
  [
    'Python',
    {
      'requirements.txt': 'flask',
      'app.py': `import subprocess\n${flask}v = subprocess.check_output(["git", "rev-parse", "HEAD"])\n`,
    },
  ],
])('installs git for an app in %s that calls it', (_, files) => {
  assert.match(planApp(files).stages[2] ?? '', /apt-get install .*\bgit\b/);
});

test.each([
  ['Ruby', { Gemfile: 'gem "sinatra"', 'config.ru': '', 'config/initializers/version.rb': '# `git rev-parse HEAD`' }],
  ['Python', { 'requirements.txt': 'flask', 'app.py': `${flask}# subprocess.run(["git"])\nname = "git"\n` }],
])('installs no git for an app in %s that only mentions it', (_, files) => {
  assert.doesNotMatch(planApp(files).stages[2] ?? '', /\bgit\b/);
});
