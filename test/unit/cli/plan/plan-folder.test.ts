// `npm run plan` says what the review of a submitted repository would say.
import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { onTestFinished, test } from 'vitest';
import { planFolder, formatJson, formatText } from '../../../../cli/plan/plan-folder.ts';

const main = join(import.meta.dirname, '../../../../cli/moorage/main.ts');
const flask = 'from flask import Flask\napp = Flask(__name__)\n';

async function folderOf(files: Readonly<Record<string, string>>): Promise<string> {
  const root = await mkdtemp(join(tmpdir(), 'moorage-plan-'));
  onTestFinished(() => rm(root, { recursive: true, force: true }));
  for (const [path, text] of Object.entries(files)) {
    await mkdir(dirname(join(root, path)), { recursive: true });
    await writeFile(join(root, path), text);
  }
  return root;
}

test('plans a folder that is not a repository, with its moorage.yaml and the app folder', async () => {
  const planned = planFolder(
    await folderOf({
      'moorage.yaml': 'run:\n  port: 9100\n',
      'web/requirements.txt': 'flask',
      'web/app.py': flask,
      '.git/package.json': '{}',
      'node_modules/a/package.json': '{}',
    }),
  );
  assert.equal(planned.refused, false);
  assert.equal(planned.path, 'web');
  assert.equal(planned.plan?.port, 9100);
  assert.match(planned.plan.reason, /in the folder web/);
  assert.match(
    formatText(planned),
    /^plan: python, Flask\nwhy: {2}The app is in the folder web.*\nsure: likely, since the code shows it\npath: web\nport: 9100\n\n# Planned/,
  );
});

test("an author's Dockerfile is named, not written", async () => {
  const planned = planFolder(await folderOf({ Dockerfile: 'FROM a\n' }));
  assert.equal(planned.dockerfile, undefined);
  assert.equal(planned.file, 'Dockerfile');
  assert.deepEqual(JSON.parse(formatJson(planned)), {
    refused: false,
    strategy: 'dockerfile',
    reason: 'The repository has a Dockerfile, which is built as is.',
    certainty: 'certain',
    path: '.',
    findings: [],
    file: 'Dockerfile',
  });
});

test('prints a rejection and exits with 1, and with 2 for a wrong command line', async () => {
  const folder = await folderOf({ 'notes.txt': '' });
  const run = (...args: string[]): { status: number | null; stdout: string } =>
    spawnSync(process.execPath, [main, 'plan', ...args], { encoding: 'utf8' });
  const refused = run(folder);
  assert.equal(refused.status, 1);
  assert.match(refused.stdout, /^This cannot be planned\.\nerror: plan\/unknown: Nothing that can be built/);
  assert.equal(run(join(folder, 'nowhere')).status, 2);
  assert.match(execFileSync(process.execPath, [main, 'plan', '--help'], { encoding: 'utf8' }), /^usage: moorage plan/m);
});

test('plans the content of a published package with --package', async () => {
  const folder = await folderOf({
    'package.json': JSON.stringify({ name: 'acme', bin: 'dist/cli.js', scripts: { build: 'tsc' } }),
    'dist/cli.js': 'require("http").createServer().listen(process.env.PORT);\n',
    'node_modules/bundled/package.json': '{}',
  });
  const run = (...args: string[]): { status: number | null; stdout: string } =>
    spawnSync(process.execPath, [main, 'plan', folder, ...args], { encoding: 'utf8' });
  const { status, stdout } = run('--package', 'npm');
  assert.equal(status, 0, stdout);
  assert.match(stdout, /why: {2}It is the npm package acme, as published\. Its program acme is started, as npx does\./);
  assert.match(run().stdout, /^This cannot be planned/);
  assert.equal(run('--package', 'gem').status, 2);
});

test('rejects invalid settings and a missing folder', async () => {
  const wrong = planFolder(await folderOf({ 'moorage.yaml': 'run:\n  prot: 1\n', 'index.html': '' }));
  assert.deepEqual([wrong.refused, wrong.findings[0]?.rule], [true, 'settings/invalid']);
  const nowhere = planFolder(await folderOf({ 'moorage.yaml': 'source:\n  path: web\n', 'index.html': '' }));
  assert.deepEqual([nowhere.refused, nowhere.findings[0]?.rule], [true, 'source/path']);
});

test('shows services, volumes and variables that the app would get, with the file that they are from', async () => {
  const planned = planFolder(
    await folderOf({
      Dockerfile: 'FROM a\n',
      'compose.yaml': [
        'services:',
        '  web:',
        '    build: .',
        '    volumes: ["data:/data"]',
        '    environment: {DATABASE_URL: "postgres://u:p@db:5432/u", SESSION_SECRET: x, API_KEY: "${API_KEY}"}',
        '  db: {image: "postgres:16"}',
        'volumes: {data: {}}',
        '',
      ].join('\n'),
    }),
  );
  const text = formatText(planned);
  for (const line of [
    /^service: {2}db \(postgres 16\)$/m,
    /^volume: {3}\/data \(data, /m,
    /^variable: DATABASE_URL=postgres:\/\/u:p@db:5432\/u$/m,
    /^variable: SESSION_SECRET=\(generated\)$/m,
    /^from: compose\.yaml \(run\.env, run\.volumes, services\)$/m,
    /^warning: compose\/unset-variables.*API_KEY/m,
  ])
    assert.match(text, line);
  const read = JSON.parse(formatJson(planned)) as { settings?: { services?: unknown } };
  assert.ok(Array.isArray(read.settings?.services));
});

test('prints the components, what connects them, and why each is planned as it is', async () => {
  const planned = planFolder(
    await folderOf({
      'moorage.yaml': [
        'components:',
        '  - {name: web, path: web, dependsOn: [api], env: [{name: API_URL, value: "http://api:8000/v1"}]}',
        '  - {name: api, path: api, route: {path: /api, stripPath: true, morePaths: [/ws]}, port: 8000}',
        '  - {name: nightly, kind: cron, image: api, command: [python, clean.py], schedule: "0 3 * * *"}',
        '',
      ].join('\n'),
      'web/requirements.txt': 'flask',
      'web/app.py': flask,
      'api/Dockerfile': 'FROM a\nCMD ["serve"]\n',
    }),
  );
  assert.deepEqual([planned.refused, planned.plan?.strategy], [false, 'python']);
  assert.match(
    formatText(planned),
    new RegExp(
      [
        '^web: Python, Flask, in web',
        '  answers requests below /',
        '  others reach it at http://web:8080',
        '  starts after api',
        '  its variables name api',
        '  why:  requirements.txt .*',
        '  sure: likely, since the code shows it',
        'api: Dockerfile, in api',
        '  answers requests below /api, which is removed, and below /ws',
        '  others reach it at http://api:8000',
        '  why:  The repository has a Dockerfile, which is built as is.',
        '  sure: certain, .*',
        'nightly: image of api, cron',
        '  runs at 0 3 \\* \\* \\* \\(UTC\\)',
        '  runs python clean.py',
        '',
        '# web',
        '# Planned by Moorage.*',
      ].join('\n'),
    ),
  );
  assert.match(formatText(planned), /\n# api\nThe Dockerfile of the repository is built: Dockerfile\n/);
  const { components } = JSON.parse(formatJson(planned)) as { components: { name: string; dockerfile?: string }[] };
  assert.deepEqual(
    components.map(({ name, dockerfile }) => [name, dockerfile === undefined]),
    [
      ['web', false],
      ['api', true],
      ['nightly', true],
    ],
  );
});

test('names the component that cannot be planned', async () => {
  const planned = planFolder(
    await folderOf({
      'moorage.yaml': 'components:\n  - {name: web, path: web}\n  - {name: api, path: nowhere, kind: worker}\n',
      'web/requirements.txt': 'flask',
      'web/app.py': flask,
    }),
  );
  assert.ok(planned.refused);
  assert.match(
    formatText(planned),
    /source\/path: Component api: The repository has no folder "nowhere"\. Set components\[api\]\.path/,
  );
});
