// `npm run plan` says what the review of a submitted repository would say.
import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { onTestFinished, test } from 'vitest';
import { planFolder, formatJson, formatText } from '../../../../cli/plan/plan-folder.ts';

const main = join(import.meta.dirname, '../../../../cli/plan/main.ts');
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
    /^plan: python, Flask\nwhy: {2}The app is in the folder web.*\npath: web\nport: 9100\n\n# Planned/,
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
    path: '.',
    findings: [],
    file: 'Dockerfile',
  });
});

test('prints a rejection and exits with 1, and with 64 for a wrong command line', async () => {
  const folder = await folderOf({ 'notes.txt': '' });
  const run = (...args: string[]): { status: number | null; stdout: string } =>
    spawnSync(process.execPath, [main, ...args], { encoding: 'utf8' });
  const refused = run(folder);
  assert.equal(refused.status, 1);
  assert.match(refused.stdout, /^This cannot be planned\.\nerror: plan\/unknown: Nothing that can be built/);
  assert.equal(run(join(folder, 'nowhere')).status, 64);
  assert.match(execFileSync(process.execPath, [main, '--help'], { encoding: 'utf8' }), /^usage: npm run plan/);
});

test('rejects invalid settings and a missing folder', async () => {
  const wrong = planFolder(await folderOf({ 'moorage.yaml': 'run:\n  prot: 1\n', 'index.html': '' }));
  assert.deepEqual([wrong.refused, wrong.findings[0]?.rule], [true, 'settings/invalid']);
  const nowhere = planFolder(await folderOf({ 'moorage.yaml': 'source:\n  path: web\n', 'index.html': '' }));
  assert.deepEqual([nowhere.refused, nowhere.findings[0]?.rule], [true, 'source/path']);
});
