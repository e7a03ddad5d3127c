// Which lines of code state where an app keeps data, and which look like it and do not.
import assert from 'node:assert/strict';
import { test } from 'vitest';
import { findData } from '../../../../../controller/pipeline/plan/data-paths.ts';
import { createMemoryTree } from '../../../../../controller/pipeline/tree.ts';

/** Paths that are found, with a slash at the end of folders. */
function find(files: Readonly<Record<string, string>>): string[] {
  return findData(createMemoryTree(files), 'planned').paths.map(({ path, kind }) =>
    kind === 'folder' ? `${path}/` : path,
  );
}

const stated: readonly (readonly [string, string, string, string])[] = [
  ['SQLAlchemy', 'app.py', 'engine = create_engine("sqlite:///./todo.db")', 'todo.db'],
  ['an asynchronous driver', 'db.py', "URL = 'sqlite+aiosqlite:///data/app.sqlite3'", 'data/app.sqlite3'],
  ['an absolute path', 'db.py', "URL = 'sqlite:////srv/store/app.db'", '/srv/store/app.db'],
  ['alembic.ini', 'alembic.ini', 'sqlalchemy.url = sqlite:///app.db?x', 'app.db'],
  ['sqlite3', 'app.py', 'import sqlite3\ncon = sqlite3.connect("notes.db", timeout=5)', 'notes.db'],
  ['a constant', 'app.py', 'import sqlite3\nDB_PATH = "data/users.db"\nsqlite3.connect(DB_PATH)', 'data/users.db'],
  [
    'a join',
    'src/store.py',
    "import sqlite3\nDATABASE = os.path.join(os.path.dirname(__file__), 'data', 'x.sqlite')",
    'src/data/x.sqlite',
  ],
  [
    "the parent of a file's folder",
    'src/store.py',
    'import aiosqlite\nDB = Path(__file__).parent.parent / "data" / "x.db"',
    'data/x.db',
  ],
  ['better-sqlite3', 'server.js', "const db = new Database('data/app.db'); // better-sqlite3", 'data/app.db'],
  ['sqlite3 of Node', 'server/db.ts', "import sqlite3 from 'sqlite3';\nnew sqlite3.Database('./app.db')", 'app.db'],
  ['Knex', 'knexfile.js', "client: 'sqlite3',\nconnection: { filename: './dev.sqlite3' }", 'dev.sqlite3'],
  [
    'a join of Node',
    'lib/db.js',
    "require('better-sqlite3');\nnew Database(path.join(__dirname, 'app.db'))",
    'lib/app.db',
  ],
  ['Prisma', 'prisma/schema.prisma', 'provider = "sqlite"\n  url      = "file:./dev.db"', 'prisma/dev.db'],
  ['PDO', 'index.php', "<?php $db = new PDO('sqlite:guestbook.db');", 'guestbook.db'],
  [
    'PDO next to its file',
    'inc/db.php',
    "<?php $db = new PDO('sqlite:' . __DIR__ . '/guest.sqlite');",
    'inc/guest.sqlite',
  ],
  ['Go', 'main.go', 'import _ "modernc.org/sqlite"\ndb, err := sql.Open("sqlite", "./data.db")', 'data.db'],
  ['GORM', 'main.go', 'import "gorm.io/driver/sqlite"\ngorm.Open(sqlite.Open("test.db"), nil)', 'test.db'],
  ['SQLx', 'src/main.rs', 'SqlitePool::connect("sqlite://todos.db?mode=rwc")', 'todos.db'],
  ['Chroma', 'rag.py', 'client = chromadb.PersistentClient(path="./chroma_db")', 'chroma_db/'],
  ['LangChain', 'rag.py', "Chroma(persist_directory='db', embedding_function=e)", 'db/'],
  ['TinyDB', 'app.py', "db = TinyDB('db.json')", 'db.json'],
  ['uploads of Flask', 'app.py', "app.config['UPLOAD_FOLDER'] = 'static/uploads'", 'static/uploads/'],
  ['multer', 'server.js', "const upload = multer({ dest: 'uploads/' });", 'uploads/'],
  ['uploads of PHP', 'up.php', '$target_dir = "uploads/";\nmove_uploaded_file($a, $target_dir);', 'uploads/'],
  ['an installer of PHP', 'install.php', "file_put_contents('config.php', $text);", 'config.php'],
  [
    'an installer in a folder',
    'install/index.php',
    "fopen(__DIR__ . '/../config/config.php', 'w')",
    'config/config.php',
  ],
];

test.each(stated)('finds the path that %s states', (_, file, text, path) => {
  assert.deepEqual(find({ [file]: text }), [path]);
});

test("finds Django's database and media in its project", () => {
  const files = {
    'site/manage.py': 'import django',
    'site/shop/settings.py':
      "BASE_DIR = Path(__file__).resolve().parent.parent\nDATABASES = {'default': {'ENGINE': 'django.db.backends.sqlite3',\n'NAME': BASE_DIR / 'db.sqlite3'}}\nMEDIA_ROOT = BASE_DIR / 'media'",
  };
  assert.deepEqual(find(files), ['site/db.sqlite3', 'site/media/']);
});

test('finds the uploads of a Django project without a folder for media', () => {
  const files = {
    'manage.py': 'import django',
    'blog/models.py': "from django.db import models\npic = models.ImageField(upload_to ='profile_pics', blank=True)",
    'blog/migrations/1.py': "models.ImageField(upload_to='older')",
  };
  assert.deepEqual(find(files), ['profile_pics/']);
  assert.deepEqual(find({ ...files, 'core/settings.py': 'STORAGES = {}' }), []);
  const dated = { ...files, 'blog/models.py': "models.FileField(upload_to='docs/%Y/%m')" };
  assert.deepEqual(find(dated), ['docs/']);
});

test("finds Flask-SQLAlchemy's databases in the folder instance", () => {
  const app = "from flask_sqlalchemy import SQLAlchemy\napp.config['SQLALCHEMY_DATABASE_URI'] = 'sqlite:///site.db'";
  assert.deepEqual(find({ 'app.py': app }), ['instance/site.db']);
});

test('a path that is joined to a folder is relative to that, for Flask-SQLAlchemy too', () => {
  const app =
    "from flask_sqlalchemy import SQLAlchemy\nbasedir = x\nURI = os.environ.get('DATABASE_URL') or 'sqlite:///' + os.path.join(basedir, 'app.db')";
  assert.deepEqual(find({ 'config.py': app }), ['app.db']);
  assert.deepEqual(find({ 'web/db.py': 'url = f"sqlite:///{BASE_DIR}/data/app.db"' }), ['web/data/app.db']);
  assert.deepEqual(find({ 'db.py': 'import sqlite3\nDB = os.environ.get("DB_PATH", "app.db")' }), ['app.db']);
});

test('goes up from the folder of a file as the code does', () => {
  const settings = (base: string): string => `import sqlite3\n${base}\nDB_PATH = os.path.join(BASE_DIR, "app.db")`;
  assert.deepEqual(find({ 'a/b/config.py': settings('BASE_DIR = os.path.dirname(os.path.abspath(__file__))') }), [
    'a/b/app.db',
  ]);
  assert.deepEqual(find({ 'a/b/config.py': settings('BASE_DIR = os.path.dirname(os.path.dirname(__file__))') }), [
    'a/app.db',
  ]);
  assert.deepEqual(find({ 'a/b/config.py': settings('BASE_DIR = Path(__file__).resolve().parents[2]') }), ['app.db']);
  assert.deepEqual(find({ 'a/b/config.py': settings('BASE_DIR = os.getcwd()') }), ['app.db']);
  const node = "require('sqlite3');\nnew Database(path.join(process.cwd(), 'app.db'))";
  assert.deepEqual(find({ 'lib/db.js': node }), ['app.db']);
});

test("finds Laravel's database, and its uploads if the code stores some", () => {
  const laravel = { artisan: '', 'composer.json': '{}', '.env.example': 'APP_NAME=x\nDB_CONNECTION=sqlite\n' };
  assert.deepEqual(find(laravel), ['database/database.sqlite']);
  const uploads = { 'app/Http/Controllers/Avatar.php': "$request->file('avatar')->store('avatars');" };
  assert.deepEqual(find({ ...laravel, ...uploads }), ['database/database.sqlite', 'storage/app/']);
  assert.deepEqual(find({ ...laravel, '.env.example': 'DB_CONNECTION=mysql\n' }), []);
});

const ignored: readonly (readonly [string, string, string])[] = [
  ['a database in memory', 'app.py', "create_engine('sqlite:///:memory:')"],
  ['a temporary file', 'app.py', "import sqlite3\nsqlite3.connect('/tmp/x.db')"],
  ['a comment', 'app.py', "import sqlite3\n# sqlite3.connect('x.db')"],
  ['a test', 'tests/test_app.py', "create_engine('sqlite:///test.db')"],
  ['a name that is not a path', 'app.py', "import sqlite3\nDB_NAME = 'users'"],
  ['a path above the app', 'app.py', "import sqlite3\nsqlite3.connect('../x.db')"],
  ['a folder of a cache', 'app.py', "persist_directory='.cache/chroma'"],
  [
    'a folder in a variable',
    'app.py',
    "import sqlite3\nDB = os.path.join(cache_folder, 'x.db')\nDB2 = folder / 'y.db'",
  ],
  ['a cache', 'app.py', "import sqlite3\nsqlite3.connect('cache.v1.db')"],
  ['a read of settings', 'index.php', "require 'config.php'; fopen('config.php', 'r');"],
];

test.each(ignored)('ignores %s', (_, file, text) => {
  assert.deepEqual(find({ [file]: text }), []);
});

test('names the line, and lists a path once', () => {
  const text = "import sqlite3\n\nsqlite3.connect('x.db')\nsqlite3.connect('x.db')";
  assert.deepEqual(findData(createMemoryTree({ 'app.py': text }), 'planned').paths, [
    { path: 'x.db', kind: 'file', file: 'app.py', line: 3, what: 'a database of SQLite' },
  ]);
});
