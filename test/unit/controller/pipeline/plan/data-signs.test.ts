// Which sources show that an app keeps data whose path they do not state, and which folders that git ignores are that path.
import assert from 'node:assert/strict';
import { test } from 'vitest';
import { findData } from '../../../../../controller/pipeline/plan/data-paths.ts';
import { createMemoryTree } from '../../../../../controller/pipeline/tree.ts';

type Files = Readonly<Record<string, string>>;

function findSigns(files: Files): string[] {
  return findData(createMemoryTree(files), 'planned').unplaced.map(({ file, line, what }) => `${file}:${line} ${what}`);
}

function findFolders(files: Files): string[] {
  return findData(createMemoryTree(files), 'planned').paths.map(({ path, file, line }) => `${path} ${file}:${line}`);
}

const signs: readonly (readonly [string, string, string, string])[] = [
  [
    'a driver of Go',
    'db.go',
    'import (\n\t_ "modernc.org/sqlite"\n)\nsql.Open("sqlite", path)',
    'db.go:2 a database of SQLite',
  ],
  [
    'GORM',
    'db.go',
    'import "github.com/glebarez/sqlite"\ngorm.Open(sqlite.Open(file))',
    'db.go:1 a database of SQLite',
  ],
  [
    'a database above the app',
    'a/db.go',
    'import "gorm.io/driver/sqlite"\ngorm.Open("./../x.db")',
    'a/db.go:1 a database of SQLite',
  ],
  ['sqlite3 of Python', 'app.py', 'import sqlite3\nsqlite3.connect(os.environ["DB"])', 'app.py:1 a database of SQLite'],
  ['better-sqlite3', 'db.js', "const D = require('better-sqlite3');\nnew D(file);", 'db.js:1 a database of SQLite'],
  ['rusqlite', 'src/db.rs', 'use rusqlite::Connection;', 'src/db.rs:1 a database of SQLite'],
  ['PDO', 'db.php', "<?php\n$p = new PDO('sqlite:' . $file);", 'db.php:2 a database of SQLite'],
  ['an upload of Gin', 'up.go', 'c.SaveUploadedFile(fh, dst)', 'up.go:1 uploaded files'],
  ['a form of Go', 'up.go', 'f, _, _ := r.FormFile("f")\nout, _ := os.Create(name)', 'up.go:1 uploaded files'],
  ['an upload of Flask', 'up.py', "f = request.files['f']\nf.save(path)", 'up.py:1 uploaded files'],
  [
    'an upload of FastAPI',
    'up.py',
    'def up(file: UploadFile):\n  shutil.copyfileobj(file.file, out)',
    'up.py:1 uploaded files',
  ],
  ['multer', 'up.js', 'multer({ storage })', 'up.js:1 uploaded files'],
  [
    'a field of Django',
    'a/models.py',
    'from django.db import models\nmodels.FileField(upload_to=name)',
    'a/models.py:2 uploaded files',
  ],
  ['an upload of PHP', 'up.php', '<?php move_uploaded_file($a, $b);', 'up.php:1 uploaded files'],
  [
    'a page that writes',
    'in.php',
    '<?php\nfile_put_contents(PATH_DATABASES . "site.php", $x);',
    'in.php:2 files that its pages write',
  ],
];

test.each(signs)('finds the sign that %s is', (_, file, text, sign) => {
  assert.deepEqual(findSigns({ [file]: text }), [sign]);
});

test.each([
  ['a database in memory', 'app.py', 'import sqlite3\nsqlite3.connect(":memory:")'],
  ['uploads in memory', 'up.js', 'multer({ storage: multer.memoryStorage() })'],
  ['uploads for S3', 'up.py', "import boto3\nrequest.files['f'].save(path)"],
  ['a form that is only read', 'up.go', 'f, _, _ := r.FormFile("f")'],
  ['a cache', 'in.php', '<?php file_put_contents($cacheFile, $x);'],
  ['a database of a cache', 'lib/cache.py', 'import sqlite3\nsqlite3.connect(path)'],
  ['a comment', 'db.go', '// import "modernc.org/sqlite"'],
  ['a report', 'app.py', 'open(name, "w").write(x)'],
])('%s is no sign', (_, file, text) => {
  assert.deepEqual(findSigns({ [file]: text }), []);
});

test('a path that is stated needs no sign', () => {
  const text = 'import _ "modernc.org/sqlite"\nsql.Open("sqlite", "./data.db")';
  assert.deepEqual(findSigns({ 'main.go': text }), []);
  assert.deepEqual(findSigns({ 'main.go': text, 'up.go': 'c.SaveUploadedFile(f, d)' }), ['up.go:1 uploaded files']);
});

const writes = {
  'install.php': "<?php\ndefine('PATH', ROOT . 'bl-content' . DS);\nfile_put_contents(PATH . 'x', $y);",
};

test('a folder of data that git ignores and the code names is where the app keeps it', () => {
  const files = { ...writes, '.gitignore': 'vendor\nbl-content/*\n!bl-content/.keep\n' };
  assert.deepEqual(findFolders(files), ['bl-content .gitignore:2']);
  assert.deepEqual(findSigns(files), []);
  const go = { 'db.go': 'import _ "github.com/mattn/go-sqlite3"\nname := "data/main.db"', '.gitignore': 'data/' };
  assert.deepEqual(findFolders(go), ['data .gitignore:1']);
  const settings = { 'app.py': 'DIR = os.path.join(ROOT, "instance")\njson.dump(x, f)', '.gitignore': '/instance/\n' };
  assert.deepEqual(findFolders(settings), ['instance .gitignore:1']);
});

test('a folder next to the binary of Go is known in planned images alone', () => {
  const tree = createMemoryTree({ 'a.go': 'e, _ := os.Executable()\nos.Create("data/x")', '.gitignore': 'data/' });
  assert.deepEqual(
    findData(tree, 'planned').paths.map(({ path }) => path),
    ['data'],
  );
  assert.deepEqual(findData(tree, 'authored').paths, []);
});

test.each([
  ['the code does not name', { ...writes, '.gitignore': 'data/' }],
  ['is generated', { 'a.py': 'json.dump(x, open("dist/data", "w"))', '.gitignore': 'dist/data' }],
  ['has no name of data', { 'a.py': 'json.dump(x, open("plugins/a", "w"))', '.gitignore': 'plugins' }],
  ['nothing is written to', { 'a.py': 'read("data/x.csv")', '.gitignore': 'data' }],
  ['is next to the binary', { 'a.rs': 'use rusqlite::X;\ncurrent_exe();\nopen("data/x")', '.gitignore': 'data/' }],
  ['is a file', { 'a.py': 'json.dump(x, open("data", "w"))', data: 'x', '.gitignore': 'data' }],
])('a folder that %s is not kept', (_, files: Files) => {
  assert.deepEqual(findFolders(files), []);
});
