// What keeps the data of an app: volumes that a plan adds, links to them, and findings where neither is possible.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import {
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { onTestFinished, test } from 'vitest';
import type { Finding } from '../../../../../crds/hosted-app.ts';
import { locateApp, planApp } from '../../../../../controller/pipeline/plan/repository.ts';
import { createMemoryTree } from '../../../../../controller/pipeline/tree.ts';
import { sampleInput } from '../../../../support/pipeline/sample.ts';

interface KeptData {
  readonly volumes: readonly string[];
  readonly findings: readonly Finding[];
  readonly command: string;
  readonly reason: string;
  readonly from: string | undefined;
}

function keep(files: Readonly<Record<string, string>>, changes: Parameters<typeof sampleInput>[0] = {}): KeptData {
  const tree = createMemoryTree(files);
  const app = locateApp(sampleInput(changes), tree);
  const { dockerfile = '', plan } = planApp(tree, app);
  const command = /^CMD (\[.*\])$/m.exec(dockerfile)?.[1];
  return {
    volumes: (app.settings?.run?.volumes ?? []).map(({ path }) => path),
    findings: app.platform.filter(({ rule }) => rule === 'data/not-lasting'),
    command: command === undefined ? '' : ((JSON.parse(command) as string[]).at(-1) ?? ''),
    reason: plan.reason,
    from: app.settings?.platform?.file,
  };
}

const requirements = { 'requirements.txt': 'flask\n' };
const flask = (line: string): Record<string, string> => ({
  ...requirements,
  'app.py': `import sqlite3\nfrom flask import Flask\napp = Flask(__name__)\n${line}\n`,
});

test('a planned app gets a volume at the folder that its code writes to', () => {
  const { volumes, findings, reason, from, command } = keep(flask("app.config['UPLOAD_FOLDER'] = 'uploads'"));
  assert.deepEqual(volumes, ['/app/uploads']);
  assert.deepEqual(findings, []);
  assert.match(reason, /A volume keeps uploaded files \(uploads\)\.$/);
  assert.equal(from, 'app.py');
  assert.doesNotMatch(command, /keep/);
});

test('a file, and a folder with files of the image, are linked to a volume', () => {
  const { volumes, command } = keep({ ...flask("sqlite3.connect('notes.db')"), 'notes.db': 'seed' });
  assert.deepEqual(volumes, ['/data']);
  assert.match(command, /^keep\(\) \{.*if \[ -w \/data \]; then keep \/app\/notes\.db \/data\/notes\.db; fi; /);
  const folder = keep({ ...flask("app.config['UPLOAD_FOLDER'] = 'static/img'"), 'static/img/logo.png': 'x' });
  assert.deepEqual(folder.volumes, ['/data']);
  assert.match(folder.command, /keep \/app\/static\/img \/data\/static\/img folder; fi; /);
});

test('uses as many volumes as an author may have, and links the rest', () => {
  const lines = "app.config['UPLOAD_FOLDER'] = 'uploads'\npersist_directory='vectors'\nsqlite3.connect('x.db')";
  const { volumes, command } = keep(flask(lines));
  assert.deepEqual(volumes, ['/app/uploads', '/data']);
  assert.match(command, /keep \/app\/vectors \/data\/vectors folder; keep \/app\/x\.db \/data\/x\.db; fi/);
});

test("an author's Dockerfile, command or volumes stay, and what does not last is reported with its fix", () => {
  const own = { ...flask("sqlite3.connect('notes.db')"), Dockerfile: 'FROM python\nWORKDIR /srv/web\nCOPY . .\nCMD x' };
  const [finding] = keep(own).findings;
  assert.deepEqual(keep(own).volumes, []);
  assert.deepEqual([finding?.file, finding?.line], ['app.py', 4]);
  assert.equal(
    finding?.message,
    'The app keeps a database of SQLite in /srv/web/notes.db, which is on no volume: it is lost whenever the app is restarted or a new commit comes.',
  );
  assert.match(finding.fix, /run: \{volumes: \[\{name: srv-web-data, path: \/srv\/web\/data\}\]\}/);
  const chosen = { ...flask("sqlite3.connect('a/b.db')"), 'moorage.yaml': 'run: {volumes: [{name: x, path: /x}]}' };
  assert.match(keep(chosen).findings[0]?.fix ?? '', /^Add this to moorage\.yaml: .*path: \/app\/a\}/);
  assert.deepEqual(keep({ ...chosen, 'moorage.yaml': 'run: {volumes: [{name: x, path: /app/a}]}' }).findings, []);
  const commanded = keep({ ...flask("sqlite3.connect('x.db')"), 'moorage.yaml': 'run: {command: [python, app.py]}' });
  assert.deepEqual([commanded.volumes, commanded.findings.length], [[], 1]);
  assert.equal(keep(flask("sqlite3.connect('x.db')"), { pinned: ['run.volumes'] }).findings.length, 1);
});

test('ignores a database that a variable or a database server replaces', () => {
  const line = "url = os.environ.get('DATABASE_URL', 'sqlite:///x.db')";
  const served = 'services: [{name: db, type: postgres}]';
  assert.deepEqual(keep({ ...flask(line), 'moorage.yaml': served }).volumes, []);
  const set = 'run: {env: [{name: DATABASE_URL, value: "postgres://elsewhere.test/x"}]}';
  assert.deepEqual(keep({ ...flask(line), 'moorage.yaml': set }).volumes, []);
  assert.deepEqual(keep(flask(line)).volumes, ['/data']);
});

test('an app that keeps nothing has no volume', () => {
  const { volumes, findings, command } = keep(flask('app.run()'));
  assert.deepEqual([volumes, findings], [[], []]);
  assert.doesNotMatch(command, /keep/);
});

test('the start of a planned image moves the data, keeps it at the next start, and needs no volume', () => {
  const root = mkdtempSync(join(tmpdir(), 'moorage-links-'));
  onTestFinished(() => {
    rmSync(root, { recursive: true, force: true });
  });
  const lines = "sqlite3.connect('db/notes.db')\napp.config['UPLOAD_FOLDER'] = 'static/img'\nDB_FILE = 'new.db'";
  const { command } = keep({ ...flask(lines), 'db/notes.db': 'seed', 'db/schema.sql': '', 'static/img/a.png': 'x' });
  const snippet = command.slice(0, command.indexOf('fi; ', command.indexOf('if [ -w')) + 4);
  const script = snippet.replaceAll('/app/', `${root}/app/`).replaceAll('/data', `${root}/data`);
  const start = (): void => {
    execFileSync('sh', ['-ec', `${script} echo started`]);
  };
  /** A new container has the files of the image. */
  const renew = (): void => {
    rmSync(join(root, 'app'), { recursive: true, force: true });
    mkdirSync(join(root, 'app', 'db'), { recursive: true });
    mkdirSync(join(root, 'app', 'static', 'img'), { recursive: true });
    writeFileSync(join(root, 'app', 'db', 'notes.db'), 'seed');
    writeFileSync(join(root, 'app', 'static', 'img', 'a.png'), 'x');
  };
  renew();
  start();
  assert.ok(!lstatSync(join(root, 'app', 'db', 'notes.db')).isSymbolicLink(), 'without a volume nothing changes');
  mkdirSync(join(root, 'data'));
  start();
  assert.equal(readFileSync(join(root, 'app', 'db', 'notes.db'), 'utf8'), 'seed');
  writeFileSync(join(root, 'app', 'db', 'notes.db'), 'more');
  writeFileSync(join(root, 'app', 'new.db'), 'made');
  writeFileSync(join(root, 'app', 'static', 'img', 'b.png'), 'y');
  renew();
  start();
  start();
  assert.equal(readFileSync(join(root, 'app', 'db', 'notes.db'), 'utf8'), 'more');
  assert.equal(readFileSync(join(root, 'app', 'new.db'), 'utf8'), 'made');
  assert.equal(realpathSync(join(root, 'app', 'new.db')), realpathSync(join(root, 'data', 'new.db')));
  assert.ok(existsSync(join(root, 'app', 'static', 'img', 'a.png')));
  assert.equal(readFileSync(join(root, 'app', 'static', 'img', 'b.png'), 'utf8'), 'y');
});

const php = { 'index.php': "<?php\n$dir = ROOT . 'content';\nfile_put_contents($dir . '/site.php', $x);" };

test('a folder that git ignores lasts in a planned app, with what the image has in it', () => {
  const { volumes, command, findings, reason } = keep({ ...php, '.gitignore': 'content/*', 'content/.htaccess': 'x' });
  assert.deepEqual([volumes, findings], [['/data'], []]);
  assert.match(command, /keep \/app\/content \/data\/content folder; fi; /);
  assert.match(reason, /A volume keeps the data that git ignores \(content\)\.$/);
  assert.deepEqual(keep({ ...php, '.gitignore': 'content/' }).volumes, ['/app/content']);
});

test('data in a folder that is not known is reported before it is lost', () => {
  const { volumes, findings } = keep(php);
  assert.deepEqual(volumes, []);
  const [{ file, line, message, fix } = assert.fail('no finding')] = findings;
  assert.deepEqual([findings.length, file, line], [1, 'index.php', 3]);
  assert.equal(
    message,
    'The app keeps files that its pages write, and its code does not state in which folder. Unless that is on a volume, it is lost whenever the app is restarted or a new commit comes.',
  );
  assert.match(fix, /run: \{volumes: \[\{name: app-data, path: \/app\/data\}\]\}/);
  const own = keep({ ...php, Dockerfile: 'FROM php:8.2-apache\nWORKDIR /var/www/html\nCOPY . .' });
  assert.match(own.findings[0]?.fix ?? '', /path: \/var\/www\/html\/data/);
});

test('nothing is reported of data in an unknown folder where volumes are chosen, or a server keeps it', () => {
  assert.deepEqual(keep({ ...php, 'moorage.yaml': 'run: {volumes: [{name: x, path: /x}]}' }).findings, []);
  assert.deepEqual(keep(php, { pinned: ['run.volumes'] }).findings, []);
  const lines = { ...flask('sqlite3.connect(path)'), 'moorage.yaml': 'services: [{name: db, type: postgres}]' };
  assert.deepEqual(keep(lines).findings, []);
});
