// Which package of a workspace is the app, and how it is built from the top.
import assert from 'node:assert/strict';
import { test } from 'vitest';
import { Rejected } from '../../../../../../controller/pipeline/contract.ts';
import { makePlan } from '../../../../../../controller/pipeline/plan/plan.ts';
import type { Recipe } from '../../../../../../controller/pipeline/plan/recipe.ts';
import { createMemoryTree } from '../../../../../../controller/pipeline/tree.ts';
import { sampleInput } from '../../../../../support/pipeline/sample.ts';
import { json, type Files } from '../plan.cases.ts';

const plan = (files: Files): Recipe => makePlan(createMemoryTree(files), sampleInput());
const library = json({ name: '@a/lib', main: 'dist/index.js', scripts: { build: 'tsc' } });
const next = json({
  name: 'web',
  scripts: { build: 'next build', start: 'next start' },
  dependencies: { next: '15', '@a/lib': '*' },
});
const api = json({ name: 'api', scripts: { start: 'node server.js' }, dependencies: { express: '5' } });
const pages = json({ name: 'pages', scripts: { build: 'vite build' }, devDependencies: { vite: '7' } });

test('builds the only server after its dependencies, and starts it in its folder', () => {
  const { plan: made, dockerfile = '' } = plan({
    'package.json': json({ workspaces: ['apps/*', 'packages/**'] }),
    'package-lock.json': '{}',
    'apps/web/package.json': next,
    'apps/web/app/page.tsx': '',
    'apps/docs/package.json': next,
    'apps/docs/app/page.tsx': '',
    'packages/a/lib/package.json': library,
    'packages/unused/package.json': json({ name: 'unused', scripts: { build: 'false' } }),
  });
  assert.equal(made.framework, 'Next.js');
  assert.match(made.reason, /The package web in apps\/web is the only server of this workspace/);
  assert.match(
    dockerfile,
    /npm ci .*\n# step: .*\nRUN .* cd packages\/a\/lib && npm run build\n# step: .*\nRUN .* cd apps\/web && npm run build\n/,
  );
  assert.match(
    dockerfile,
    /\nWORKDIR \/app\/apps\/web\nCOPY --link --from=build --chown=1000:1000 \["\/app\/","\/app\/"\]\nUSER 1000:1000\n[\s\S]*exec next start --hostname 0\.0\.0\.0 --port \$PORT/,
  );
  assert.doesNotMatch(dockerfile, /unused/);
});

test('supports pnpm and Turborepo', () => {
  const { dockerfile = '' } = plan({
    'package.json': json({
      packageManager: 'pnpm@9.1.0',
      scripts: { build: 'turbo build', start: 'turbo start' },
      devDependencies: { turbo: '2' },
    }),
    'pnpm-lock.yaml': "lockfileVersion: '9.0'\n",
    'pnpm-workspace.yaml': "packages:\n  - 'apps/*'\n  - '!apps/old'\n",
    'apps/api/package.json': api,
    'apps/old/package.json': api,
  });
  assert.match(dockerfile, /pnpm install --frozen-lockfile/);
  assert.match(dockerfile, /turbo run build --filter=api$|exec node server\.js/m);
  assert.match(dockerfile, /^WORKDIR \/app\/apps\/api$/m);
});

test('serves the only web app from its folder', () => {
  const recipe = plan({
    'package.json': json({ workspaces: { packages: ['web', 'lib'] } }),
    'web/package.json': pages,
    'web/index.html': '',
    'lib/package.json': json({ name: 'lib', scripts: { build: 'vite build' }, devDependencies: { vite: '7' } }),
  });
  assert.match(recipe.dockerfile ?? '', /COPY --link --from=build \["\/app\/web\/dist\/","\/srv\/site\/"\]/);
  assert.equal(recipe.filesOnly, true);
});

test('rejects several servers by name, and counts pages that a server depends on as part of it', () => {
  const files = {
    'package.json': json({ workspaces: ['*'] }),
    'api/package.json': api,
    'pages/package.json': pages,
    'pages/index.html': '',
  };
  assert.throws(
    () => plan(files),
    (error: unknown) => {
      assert.ok(error instanceof Rejected);
      assert.equal(error.findings[0].rule, 'plan/several-apps');
      assert.match(error.findings[0].message, /api \(Express\), pages \(Vite\)/);
      return true;
    },
  );
  const whole = plan({
    ...files,
    'api/package.json': json({
      name: 'api',
      scripts: { start: 'node server.js' },
      dependencies: { express: '5', pages: '*' },
    }),
  });
  assert.match(whole.dockerfile ?? '', /cd pages && npm run build[\s\S]*WORKDIR \/app\/api/);
});

test("uses the root's start script", () => {
  const recipe = plan({
    'package.json': json({ workspaces: ['*'], scripts: { start: 'pnpm --filter api start' } }),
    'pnpm-lock.yaml': "lockfileVersion: '9.0'\n",
    'api/package.json': api,
    'pages/package.json': pages,
    'pages/index.html': '',
  });
  assert.match(recipe.plan.reason, /start script defines/);
  assert.equal(recipe.dockerfile?.match(/npm install --global --force pnpm@/g)?.length, 2);
});

test("ignores a start script that runs a package's development server", () => {
  const web = {
    'web/package.json': json({
      name: 'web',
      scripts: { build: 'vite build', start: 'vite' },
      devDependencies: { vite: '7' },
    }),
    'web/index.html': '',
  };
  for (const start of ['yarn --cwd ./web start', 'npm start --workspace web', 'cd web && npm run start']) {
    const recipe = plan({ 'package.json': json({ workspaces: ['web'], scripts: { start } }), ...web });
    assert.match(recipe.plan.reason, /The package web in web is the only web app/, start);
  }
  const one = plan({
    'package.json': json({
      scripts: { build: 'vite build', start: 'npm run dev', dev: 'vite' },
      devDependencies: { vite: '7' },
    }),
    'index.html': '',
  });
  assert.equal(one.filesOnly, true);
});

test('uses a bundler installed at the root for the package that has its configuration', () => {
  const recipe = plan({
    'package.json': json({
      workspaces: ['app', 'packages/*'],
      scripts: { build: 'yarn --cwd ./app build', start: 'yarn --cwd ./app start' },
      devDependencies: { vite: '7' },
    }),
    'yarn.lock': '# yarn lockfile v1\n',
    'app/package.json': json({ name: 'app', scripts: { build: 'vite build', start: 'yarn && vite' } }),
    'app/vite.config.mts': 'export default { build: { outDir: "build" } }',
    'app/index.html': '',
    'packages/lib/package.json': json({ name: 'lib', main: 'a.js' }),
  });
  assert.match(
    recipe.dockerfile ?? '',
    /cd app && yarn run build\n[\s\S]*COPY --link --from=build \["\/app\/app\/build\/","\/srv\/site\/"\]/,
  );
});
