// What a plan of a Python app does for its database: the migration before each start, the server that Django's settings ask
// for, and the values that they require in the build.
import assert from 'node:assert/strict';
import { test } from 'vitest';
import { mergePlatforms } from '../../../../../../controller/pipeline/plan/platforms/settings.ts';
import { makePlan } from '../../../../../../controller/pipeline/plan/plan.ts';
import { createMemoryTree } from '../../../../../../controller/pipeline/tree.ts';
import { sampleInput } from '../../../../../support/pipeline/sample.ts';
import { fastapi, type Files, flask } from '../plan.cases.ts';

function readCommand(files: Files): string {
  const { dockerfile = '' } = makePlan(createMemoryTree(files), sampleInput());
  const line = /^CMD (\[.*\])$/m.exec(dockerfile)?.[1] ?? '[]';
  return (JSON.parse(line) as string[])[2] ?? '';
}

const manage = (settings: string): string =>
  `import os\nos.environ.setdefault("DJANGO_SETTINGS_MODULE", "${settings}")\nfrom django.core.management import execute_from_command_line\n`;
const wsgi = (settings: string): string =>
  `import os\nos.environ.setdefault("DJANGO_SETTINGS_MODULE", "${settings}")\n`;
const django = {
  'requirements.txt': 'django\npsycopg2-binary\n',
  'manage.py': manage('shop.settings'),
  'shop/wsgi.py': wsgi('shop.settings'),
  'shop/settings.py': '',
};

test.each([
  ['without a Procfile', django],
  ['with a Procfile that only names the server', { ...django, Procfile: 'web: gunicorn shop.wsgi\n' }],
])('migrates Django %s, and does not start it if that fails with a database server', (_, files) => {
  assert.match(
    readCommand(files),
    /^\{ \( python manage\.py migrate --noinput \) \|\| \{ \[ -z "\$DATABASE_URL\$PGHOST\$MYSQL_HOST" \] && echo "[^"]+" >&2; \} \|\| \{ echo "The app is not started[^"]+" >&2; exit 1; \}; \}; exec gunicorn /,
  );
});

test.each([
  [
    'a release command',
    'web: gunicorn shop.wsgi\nrelease: python manage.py migrate\n',
    /^\( python manage\.py migrate \) && exec gunicorn/,
  ],
  [
    'a start that migrates',
    'web: python manage.py migrate && gunicorn shop.wsgi\n',
    /^python manage\.py migrate && gunicorn/,
  ],
])('leaves the database to %s', (_, procfile, expected) => {
  assert.match(readCommand({ ...django, Procfile: procfile }), expected);
});

test('migrates Django in the folder of manage.py', () => {
  const files = Object.entries(django).map(([path, text]) => [path.includes('.txt') ? path : `site/${path}`, text]);
  assert.match(
    readCommand(Object.fromEntries(files) as Files),
    /^\{ \( cd site && python manage\.py migrate --noinput \) \|\| .*; cd site && exec gunicorn/,
  );
});

test('migrates with the settings of the server where manage.py names those for development', () => {
  const files = {
    ...django,
    'manage.py': manage('shop.settings.local'),
    'shop/wsgi.py': wsgi('shop.settings.production'),
    'shop/settings/production.py': 'DEBUG = False',
  };
  assert.match(
    readCommand(files),
    /\( DJANGO_SETTINGS_MODULE=\$\{DJANGO_SETTINGS_MODULE:-shop\.settings\.production\} python manage\.py migrate/,
  );
});

const alembic = {
  'requirements.txt': 'fastapi\nalembic\nasyncpg\n',
  'app/main.py': fastapi,
  'alembic.ini': '[alembic]\nscript_location = %(here)s/migrations\n',
  'migrations/versions/1_a.py': '',
};

test('runs the migrations of Alembic if the app has a database server', () => {
  assert.match(
    readCommand(alembic),
    /^\{ \[ -z "\$DATABASE_URL\S+" \] \|\| \( alembic upgrade head \) \|\| \{ echo .*exit 1; \}; \}; exec uvicorn/,
  );
});

test.each([
  [
    'the configuration',
    { ...alembic, 'alembic.ini': '[alembic]\nscript_location = migrations\nsqlalchemy.url = sqlite:///./a.db\n' },
  ],
  ['the code', { ...alembic, 'app/db.py': 'import os\nurl = os.getenv("DB", "sqlite+aiosqlite:///./a.db")\n' }],
])('runs the migrations of Alembic on a file of SQLite that %s names', (_, files) => {
  assert.match(readCommand(files), /^\{ \( alembic upgrade head \)/);
});

test('runs Alembic in the folder of its configuration', () => {
  const files = {
    'requirements.txt': 'fastapi\nalembic\n',
    'backend/main.py': fastapi,
    'backend/alembic.ini': '[alembic]\nscript_location = alembic\n',
    'backend/alembic/versions/1_a.py': '',
  };
  assert.match(readCommand(files), /\( cd backend && alembic upgrade head \)/);
});

test('runs the migrations of Flask with the application that the server starts', () => {
  const files = {
    'requirements.txt': 'flask\nflask-migrate\n',
    'autoapp.py': flask,
    Procfile: 'web: gunicorn autoapp:app -b 0.0.0.0:$PORT\n',
    'migrations/env.py': '',
    'migrations/versions/1_a.py': '',
    'config.py': 'URI = "sqlite:///app.db"\n',
  };
  assert.match(readCommand(files), /^\{ \( FLASK_APP="\$\{FLASK_APP:-autoapp:app\}" flask db upgrade \)/);
});

test.each([
  [
    'plan/migrations alembic.ini',
    { ...alembic, 'migrations/versions/1_a.py': { linkTo: 'x' }, 'migrations/versions/.gitkeep': '' },
  ],
  ['plan/migrations migrations', { 'requirements.txt': 'flask\nflask-migrate\n', 'app.py': flask }],
])('warns that the database stays empty without migrations in the repository: %s', (expected, files) => {
  const { 'migrations/versions/1_a.py': _, ...rest } = files as Record<string, string>;
  const listRules = (more: Files): string[] =>
    makePlan(createMemoryTree({ ...rest, ...more }), sampleInput()).findings.map(
      ({ rule, file }) => `${rule} ${file ?? ''}`,
    );
  assert.deepEqual(listRules({}), [expected]);
  assert.deepEqual(listRules({ 'db.py': 'Base.metadata.create_all(engine)\n' }), []);
});

const fromVariables = `DATABASES = {
    "default": {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": os.environ.get("DB_NAME"),
        "USER": config("DB_USER"),
        "HOST": env.str("DB_HOST"),
        "PASSWORD": os.environ["POSTGRES_PASSWORD"],
    }
}
`;

test.each([
  [
    'variables',
    fromVariables,
    ['DB_NAME=${{services.db.database}}', 'DB_USER=${{services.db.user}}', 'DB_HOST=${{services.db.host}}'],
  ],
  ['an address', 'DATABASES = {"default": dj_database_url.config(conn_max_age=600)}\n', []],
  [
    'an address with a name',
    'DATABASES = {"default": env.db("DJANGO_DATABASE_URL")}\n',
    ['DJANGO_DATABASE_URL=${{services.db.url}}'],
  ],
])('gives Django the server that its settings read from %s', (_, settings, expected) => {
  const { settings: merged } = mergePlatforms(
    createMemoryTree({ ...django, 'shop/settings.py': settings }),
    undefined,
    sampleInput(),
  );
  assert.deepEqual(
    merged?.services?.map(({ name, type }) => `${name} ${type}`),
    ['db postgres'],
  );
  assert.deepEqual(
    (merged.run?.env ?? []).map(({ name, value }) => `${name}=${value}`),
    expected,
  );
});

test.each([
  ['can take a file of SQLite', 'DATABASES = {"default": dj_database_url.config(default="sqlite:///db.sqlite3")}\n'],
  ['name a host', 'DATABASES = {"default": {"ENGINE": "django.db.backends.postgresql", "HOST": "localhost"}}\n'],
])('gives Django no server if its settings %s', (_, settings) => {
  const tree = createMemoryTree({ ...django, 'shop/settings.py': settings });
  assert.equal(mergePlatforms(tree, undefined, sampleInput()).settings?.services, undefined);
});

test('gives the collection of static files what the settings require, and leaves what build.env sets', () => {
  const settings = `STATIC_ROOT = "x"
SECRET_KEY = config("KEY")
DEBUG = env.bool("DEBUG")
# OLD = os.environ["OLD"]
DATABASES = {"default": env.db("DATABASE_URL")}
CACHES = os.environ["REDIS_URL"]
PORT = config("MAIL_PORT", cast=int)
OPTIONAL = config("OPTIONAL", default="a")
HOST = os.environ["MAIL_HOST"]
`;
  const build = { ...sampleInput().build, env: [{ name: 'MAIL_HOST', value: 'x' }] };
  const { dockerfile = '' } = makePlan(
    createMemoryTree({ ...django, 'shop/settings.py': settings }),
    sampleInput({ build }),
  );
  assert.match(
    dockerfile,
    /^RUN SECRET_KEY=none DJANGO_SECRET_KEY=none REDIS_URL=redis:\/\/127\.0\.0\.1:6379 KEY=none DEBUG=False DATABASE_URL=sqlite:\/\/\/\/tmp\/build\.db MAIL_PORT=1 \/opt\/venv\/bin\/python manage\.py collectstatic/m,
  );
});

test.each([
  [
    'setuptools-scm',
    '[project]\nname = "My.App"\ndynamic = ["version"]\n[build-system]\nrequires = ["setuptools-scm"]\n',
    'SETUPTOOLS_SCM_PRETEND_VERSION_FOR_MY_APP=0.0.0',
  ],
  [
    'uv-dynamic-versioning',
    '[project]\nname = "a"\n[build-system]\nrequires = ["hatchling", "uv-dynamic-versioning"]\n',
    'UV_DYNAMIC_VERSIONING_BYPASS=0.0.0',
  ],
  [
    'PDM',
    '[project]\nname = "a"\n[build-system]\nrequires = ["pdm-backend"]\n[tool.pdm.version]\nsource = "scm"\n',
    'PDM_BUILD_SCM_VERSION=0.0.0',
  ],
])('gives a project a version that %s would take from git', (_, pyproject, expected) => {
  const files = {
    'pyproject.toml': `${pyproject}[project.scripts]\nserve = "app:main"\n`,
    'app.py': 'from http.server import HTTPServer\ndef main():\n    HTTPServer(("", 80), None).serve_forever()\n',
  };
  const { dockerfile = '' } = makePlan(createMemoryTree(files), sampleInput());
  assert.match(
    dockerfile,
    new RegExp(`^RUN --mount\\S+ ${expected} /opt/moorage/uv/bin/uv pip install .* --no-deps \\.`, 'm'),
  );
});

test('gives a project that setup.py installs with its packages a version too', () => {
  const files = {
    'setup.py':
      'from setuptools import setup\nsetup(name="shop", use_scm_version=True, setup_requires=["setuptools_scm"], install_requires=["flask"])\n',
    'app.py': flask,
  };
  const { dockerfile = '' } = makePlan(createMemoryTree(files), sampleInput());
  assert.match(
    dockerfile,
    /^RUN \S+ SETUPTOOLS_SCM_PRETEND_VERSION_FOR_SHOP=0\.0\.0 bash \/opt\/moorage\/uv\/install setup\.py \./m,
  );
});
