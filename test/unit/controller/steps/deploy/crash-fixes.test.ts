// What the last lines of a crashed app are taken for.
import assert from 'node:assert/strict';
import { test } from 'vitest';
import {
  findCrashLine,
  findCrashPosition,
  findLastLine,
  findMissingVariables,
  suggestCrashFix,
  suggestNotFoundFix,
} from '../../../../../controller/steps/deploy/crash-fixes.ts';

const cases: readonly (readonly [string, RegExp])[] = [
  [
    'Traceback (most recent call last):\n  File "main.py", line 1\nModuleNotFoundError: No module named \'yaml\'',
    /add it to your dependencies/,
  ],
  ['sqlalchemy.exc.NoSuchTableError: casbin_rule', /the database has none of this name.*make its tables/],
  ["Error [ERR_MODULE_NOT_FOUND]: Cannot find package 'tsx'", /development dependencies/],
  ['OSError: [Errno 28] No space left on device', /run\.resources\.disk/],
  ["Error: EACCES: permission denied, mkdir '/etc/items'", /unprivileged user.*\/tmp/],
  ["PermissionError: [Errno 13] Permission denied: '/data'", /run\.volumes/],
  ['Error: listen EACCES: permission denied 0.0.0.0:80', /port below 1024.*\$PORT/],
  [
    "ModuleNotFoundError: No module named 'faiss'\nusing another index\nKeyError: 'SERVICE_TOKEN'",
    /environment variable that is not set/,
  ],
  ['Error: listen EADDRINUSE: address already in use 0.0.0.0:8080', /the same port/],
  [
    'Error: connect ECONNREFUSED 127.0.0.1:5432',
    /database.*own container.*name: db, type: postgres.*DATABASE_URL.*services\.db\.url/,
  ],
  ['psycopg.OperationalError: could not translate host name "db" to address', /database.*type: postgres/],
  ['MongooseServerSelectionError: getaddrinfo ENOTFOUND mongo', /type: mongo.*MONGODB_URI/],
  ['Error: connect ECONNREFUSED 127.0.0.1:8000', /own container \(localhost\), where only the app itself runs/],
  ['Error: getaddrinfo ENOTFOUND redis-12345.cloud.example.com', /address of one on the public internet/],
  ['ImportError: libGL.so.1: cannot open shared object file: No such file or directory', /opencv-python-headless/],
  ['Error loading shared library libssl.so.1.1: No such file or directory (needed by x)', /OpenSSL 1\.1/],
  ["Failed to find attribute 'app' in 'run'.", /MODULE:OBJECT in the start command/],
  ['ERROR:    Error loading ASGI app. Could not import module "main".', /MODULE:OBJECT in the start command/],
  [
    "ImportError: cannot import name 'url_quote' from 'werkzeug.urls' (/usr/lib/python3/site-packages/werkzeug/urls.py)",
    /Pin it.*werkzeug<3/,
  ],
  [
    '  File "/app/.venv/site-packages/openai/_base_client.py", line 744, in __init__\nTypeError: Client.__init__() got an unexpected keyword argument \'proxies\'',
    /Pin them.*httpx<0\.28/,
  ],
  [
    '  File "/app/main.py", line 4, in run\nTypeError: run() got an unexpected keyword argument \'x\'',
    /last lines of its log/,
  ],
  ['sqlite3.OperationalError: attempt to write a readonly database', /may not write.*run\.volumes/],
  ['unable to open database file (14)', /folder does not exist, or the app may not write/],
  ['Error: @prisma/client did not initialize yet.', /prisma generate/],
  [
    "Failed to configure a DataSource: 'url' attribute is not specified",
    /services in moorage\.yaml.*SPRING_DATASOURCE_URL/,
  ],
  ['java.lang.UnsupportedClassVersionError: a/B has been compiled by a more recent version', /newer Java/],
  ['no main manifest attribute, in app.jar', /does not name a main class/],
  ["ModuleNotFoundError: No module named 'encodings'", /standard library/],
  ["ModuleNotFoundError: No module named 'pkg_resources'", /setuptools below 81/],
  ['Error [ERR_REQUIRE_ESM]: require() of ES Module /app/a.js not supported', /only an ES module/],
  ['ReferenceError: require is not defined in ES module scope', /"type": "module"/],
  [
    'Failed to setup settings: configuration file "config/default" not found',
    /reads a file or folder that is not in the image/,
  ],
  [
    'ValidationError: 1 validation error for Settings\nAPI_ID\n  Field required [type=missing]',
    /settings of the app require these fields.*run\.env/,
  ],
  ["Error: The module 'a.node'\nwas compiled against NODE_MODULE_VERSION 108. This version requires", /another Node/],
  ['ImportError: numpy.core.multiarray failed to import', /numpy<2/],
  ["OSError: [E050] Can't find model 'en_core_web_sm'.", /spaCy model/],
  ['RuntimeError: Found no NVIDIA driver on your system.', /asks for a GPU and there is none/],
  ["OSError: We couldn't connect to 'https://huggingface.co' to load this file", /huggingface\.co and did not get it/],
  ["Error: Could not find a production build in the '.next' directory.", /next build/],
  ['npm error Missing script: "start"', /package\.json does not have/],
  ['No application encryption key has been specified.', /APP_KEY/],
  ['2025/01/01 10:00:00 Error loading .env file', /go on without the file/],
  ['Error: supabaseUrl is required.', /environment variable that is not set/],
  ["Error: P1001: Can't reach database server at `localhost:5432`", /type: postgres/],
  ['exec /entrypoint.sh: no such file or directory', /first line.*Windows/],
  ['exec /app/server: exec format error', /another processor/],
  ["KeyError: 'SERVICE_TOKEN'", /PUT \/api\/apps\/\{slug\}\/secrets\/SERVICE_TOKEN/],
  ['openai.OpenAIError: The api_key client option must be set either by passing api_key', /run\.env/],
  ['Exception: Please set OPENAI_API_KEY environment variable.', /spec\.models\.enabled/],
  ['Please set SEARCH_API_KEY before you start', /run\.env/],
  ["The 'port' trait of a Voila instance expected an int, not the str '$PORT'.", /does not expand variables/],
  ['django.core.exceptions.AppRegistryNotReady: Apps are not loaded', /get_asgi_application/],
  [
    'uwsgi: error while loading shared libraries: libpython3.12.so.1.0: cannot open shared object file: No such file or directory',
    /shared library.*packages\.txt/,
  ],
  [
    'The Environment variables has failed the following validations:\n{"minLength":"APP_SECRET must be longer than or equal to 32 characters"}',
    /run\.env/,
  ],
  [
    "/app/config/boot.rb:3:in `require': cannot load such file -- faker (LoadError)",
    /outside of the groups development and test/,
  ],
  ['Could not find puma-6.4.0 in locally installed gems (Bundler::GemNotFound)', /Gemfile\.lock/],
  [
    'Missing encryption key to decrypt file with. Ask your team for your master key and write it to /app/config/master.key',
    /RAILS_MASTER_KEY/,
  ],
  [
    "ArgumentError: Missing `secret_key_base` for 'production' environment, set this string with `bin/rails credentials:edit`",
    /SECRET_KEY_BASE/,
  ],
  [
    'ExecJS::RuntimeUnavailable: Could not find a JavaScript runtime. See https://github.com/rails/execjs',
    /mini_racer/,
  ],
  [
    'ActiveRecord::StatementInvalid (PG::UndefinedTable: ERROR:  relation "users" does not exist',
    /release: bundle exec rails db:prepare/,
  ],
  ['config/puma.rb:1:in `fetch\': key not found: "QUEUE_NAME" (KeyError)', /run\.env/],
  [
    '** (RuntimeError) environment variable DATABASE_URL is missing.\nFor example: ecto://USER:PASS@HOST/DATABASE',
    /type: postgres/,
  ],
  ['** (RuntimeError) environment variable SECRET_KEY_BASE is missing.', /\$\{\{secret\}\} in run\.env/],
  ['** (System.EnvError) could not fetch environment variable "API_TOKEN" because it is not set', /run\.env/],
  [
    "You must install or update .NET to run this application.\nThe framework 'Microsoft.AspNetCore.App', version '9.0.0' (x64) was not found.",
    /TargetFramework/,
  ],
  [
    'Microsoft.Data.SqlClient.SqlException (0x80131904): A network-related or instance-specific error occurred while establishing a connection to SQL Server.',
    /PostgreSQL \(services/,
  ],
  [
    "Error: Cannot find module '/app/src/indux.js'\n  code: 'MODULE_NOT_FOUND',\n  requireStack: []",
    /start command names a file that is not in the image/,
  ],
  [
    "Error: Cannot find module 'express'\nRequire stack:\n- /app/server.js\n  requireStack: [ '/app/server.js' ]",
    /add it to your dependencies/,
  ],
  [
    "Error: Cannot find module '/app/node_modules/@swc/helpers/esm/a.js'",
    /installed package is not in the image.*outputFileTracingIncludes/,
  ],
  [
    '    job.save(async function (err) {\n             ^^^^^\nSyntaxError: missing ) after argument list\n    at createScript (vm.js:56:10)',
    /Node of the image is an old one.*newer Node/,
  ],
  ['SyntaxError: Unexpected end of input\n    at wrapSafe (node:internal/modules/cjs/loader:1378:20)', /last lines/],
  ['ReferenceError: File is not defined\n    at Object.<anonymous> (/app/node_modules/undici/a.js:1:1)', /too old/],
  [
    "FATA[0000] Binary was compiled with 'CGO_ENABLED=0', go-sqlite3 requires cgo to work. This is a stub",
    /Compile it with CGO_ENABLED=1/,
  ],
  [
    "PHP Fatal error:  require(): Failed opening required '/app/vendor/autoload.php' (include_path='.')",
    /no folder vendor.*composer install/,
  ],
  ['TZInfo::DataSourceNotFound: tzinfo-data is not present.', /gem tzinfo-data/],
  [
    'Did you mean to run dotnet SDK commands? Please install dotnet SDK from:\n  https://dot.example',
    /DLL that is not in the image/,
  ],
  ["  * The application 'shop.dll' does not exist.", /DLL that is not in the image/],
  [
    "Kernel pid terminated (application_controller) ({noproc,{'Elixir.GenServer',call,['Elixir.Mix.ProjectStack']}})",
    /calls Mix, which a release does not have/,
  ],
  [
    '  File "/usr/lib/python3.9/site-packages/gradio_client/utils.py", line 866, in get_type\n    if "const" in schema:\nTypeError: argument of type \'bool\' is not iterable',
    /fails in an installed package \(gradio_client\).*Pin them/,
  ],
  [
    '  File "/usr/lib/python3.9/site-packages/gunicorn/util.py", line 1, in import_app\n    app()\nTypeError: create_app() takes 1 argument',
    /last lines of its log/,
  ],
  ['  File "/app/main.py", line 4, in run\n    x + 1\nTypeError: can only concatenate str', /last lines of its log/],
  [
    "  File \"/app/tasks.py\", line 6, in run\n    data.get('hooks')\nAttributeError: 'NoneType' object has no attribute 'get'",
    /value that is None.*without it\.$/,
  ],
  [
    "  File \"/app/log.py\", line 6, in <module>\n    LOG_LANG.startswith('en')\nAttributeError: 'NoneType' object has no attribute 'startswith'",
    /value that is None.*LANG to C\.UTF-8/,
  ],
  [
    'ValidationError: 1 validation error for Settings\nopenai.api_key\n  Field required [type=missing]',
    /env_nested_delimiter.*OPENAI__API_KEY/,
  ],
  [
    '  File "/app/lib/db.py", line 25, in <module>\n    from sqlalchemy.orm.exc import Unmapped\nImportError: cannot import name Unmapped',
    /pin the package/,
  ],
  [
    "Error [ERR_MODULE_NOT_FOUND]: Cannot find package '/app/.output/server/node_modules/ufo/' imported from /app/a.mjs",
    /Nuxt \(\.output\)/,
  ],
  ['Error: Cannot find module @rollup/rollup-linux-x64-gnu. npm has a bug', /program for each system/],
  ['PHP Fatal error:  Uncaught Error: Class "App\\Kernel" not found in /app/index.php:5', /require-dev/],
  ["./app: /lib/libc.so.6: version `GLIBC_2.34' not found (required by ./app)", /newer C library.*same release/],
  [' FATAL  No build files found in /app/.nuxt/dist/server.', /started without its build/],
  ["Sinatra could not start, the required gems weren't found!", /bundle add rackup puma/],
  [
    'Caused by: java.lang.IllegalArgumentException: Could not resolve placeholder \'a.b\' in value "${a.b}"',
    /property in this line has no value/,
  ],
  ["Process terminated. Couldn't find a valid ICU package installed on the system.", /icu-libs/],
  [
    "System.DllNotFoundException: Unable to load shared library 'libgdiplus' or one of its",
    /apt-get install libgdiplus/,
  ],
  [
    '** (ArgumentError) argument error\n    (kernel) gen_tcp.erl:153: :gen_tcp.connect/4\n    (postgrex) lib/postgrex/protocol.ex:473',
    /host or port of a server.*type: postgres/,
  ],
  ['ArgumentError: `secret_key_base` for production environment must be a type of String`', /SECRET_KEY_BASE/],
  ['panic: open templates: no such file or directory\n\ngoroutine 1 [running]:', /reads a file or folder/],
  ['panic: configuration file not found', /reads a file or folder/],
  [
    '  File "/app/bot/web/app.py", line 7, in <module>\n    from bot.graph import x\nModuleNotFoundError: No module named \'bot\'',
    /does not find its own package.*PYTHONPATH/,
  ],
  [
    '  File "/app/bot/web/app.py", line 7, in <module>\nModuleNotFoundError: No module named \'yaml\'',
    /add it to your dependencies/,
  ],
  ["Error: ENOENT: no such file or directory, stat '/app/build/server/index.js'", /started without its build/],
  ["Error: ENOENT: no such file or directory, open '/app/config.json'", /reads a file or folder/],
  ['RuntimeError: Your system has an unsupported version of sqlite3. Chroma requires', /pysqlite3-binary/],
  ['sh: react-scripts: not found\nnpm ERR! code ELIFECYCLE\nnpm ERR! spawn ENOENT', /calls react-scripts/],
  ['Segmentation fault', /last lines of its log/],
  ['', /last lines of its log/],
];

test('names the variables that a crash reports as missing', () => {
  const logs: readonly (readonly [string, readonly string[]])[] = [
    ["KeyError: 'SERVICE_TOKEN'", ['SERVICE_TOKEN']],
    ['config/puma.rb:1:in `fetch\': key not found: "QUEUE" (KeyError)', ['QUEUE']],
    ['Please set SEARCH_API_KEY and SEARCH_API_URL environment variables', ['SEARCH_API_KEY', 'SEARCH_API_URL']],
    ['ValidationError: 2 validation errors for Settings\napi_id\n  Field required [type=missing]', ['API_ID']],
    ['ValidationError: 1 validation error for AppConfig\ndb.url\n  Field required [type=missing]', ['DB__URL']],
    ['No application encryption key has been specified.', ['APP_KEY']],
    ['Exception: Please set OPENAI_API_KEY environment variable.', ['OPENAI_API_KEY']],
    ['Error: supabaseUrl is required.', []],
    ['Error: environment variable PORT is missing', []],
    ["Error: EACCES: permission denied, mkdir '/etc/items'", []],
  ];
  for (const [log, names] of logs) assert.deepEqual(findMissingVariables(log), names, log);
});

test('explains a crash by the lines before it', () => {
  for (const [log, fix] of cases) assert.match(suggestCrashFix(log), fix, log);
});

test('reports an app that exits successfully as never having started a server, and names a missing one', () => {
  assert.match(suggestCrashFix('done\n', 0), /without starting a server.*\$PORT/);
  assert.match(suggestCrashFix("KeyError: 'SERVICE_TOKEN'", 0), /run\.env/);
  assert.match(suggestNotFoundFix('sh: 1: tsx: not found\n'), /calls tsx, which is not in the image/);
  assert.match(suggestNotFoundFix(''), /start command was not found/);
  assert.match(suggestNotFoundFix('/bin/sh: rake db:migrate && rails s -b 0.0.0.0: not found'), /quoted as one word/);
  assert.match(suggestNotFoundFix('bash: line 1: tsx: command not found'), /calls tsx/);
  assert.match(
    suggestNotFoundFix('exec: "gunicorn": executable file not found in $PATH'),
    /calls gunicorn, which is not/,
  );
  assert.match(suggestNotFoundFix('/usr/bin/env: ‘node\\r’: No such file or directory'), /line ends of Windows/);
  assert.match(suggestNotFoundFix('exec: "/start.sh": permission denied: unknown'), /not executable/);
  assert.match(suggestNotFoundFix('failed to create shim task: context canceled'), /the app did not cause/);
});

test('finds the line with the reason, and none in a log without one', () => {
  const said: readonly (readonly [string, string | undefined])[] = [
    [
      'Traceback\n  File "app.py", line 1\nModuleNotFoundError: No module named \'PIL\'\n',
      "ModuleNotFoundError: No module named 'PIL'",
    ],
    [
      "    raise RuntimeError(\nRuntimeError: Either 'A' or 'B' must be set.\n[1] [ERROR] Reason: Worker failed to boot.",
      "RuntimeError: Either 'A' or 'B' must be set",
    ],
    [
      'Error: first\n    at a.js:1\nTypeError: x is undefined\n    at b.js:2\n\nNode.js v24',
      'TypeError: x is undefined',
    ],
    [
      'connecting\nError: connect ECONNREFUSED 127.0.0.1:5432\n    at a.js:1',
      'Error: connect ECONNREFUSED 127.0.0.1:5432',
    ],
    ["thread 'main' panicked at src/main.rs:5:10:\nno url", "thread 'main' panicked at src/main.rs:5:10: no url"],
    [
      'ValidationError: 2 validation errors for Settings\nAPI_ID\n  Field required [type=missing]\nAPI_HASH\n  Field required [type=missing]',
      'API_ID, API_HASH: Field required',
    ],
    [
      `{"msg":"${'x'.repeat(300)} error while loading shared libraries: libssl.so.1.1: cannot open shared object file"}`,
      `…${'x'.repeat(19)} error while loading shared libraries: libssl.so.1.1: cannot open shared object file"}`,
    ],
    [
      "  File \"/app/a.py\", line 6, in run\n    if x.get(y):\n       ^^^^^\nAttributeError: 'NoneType' object has no attribute 'get'",
      "if x.get(y): AttributeError: 'NoneType' object has no attribute 'get'",
    ],
    [
      '    job.save(async function (err) {\n             ^^^^^\n\nSyntaxError: missing ) after argument list\n    at createScript (vm.js:56:10)',
      'job.save(async function (err) { SyntaxError: missing ) after argument list',
    ],
    [
      'org.example.BeanException: Error creating bean\n    at a.B.c(D.java:1)\nCaused by: java.lang.IllegalStateException: no port\n    ... 17 more',
      'Caused by: java.lang.IllegalStateException: no port',
    ],
    ['ready\nFATA[0000] no such thing\nbye', 'FATA[0000] no such thing'],
    [
      "starting\nKernel pid terminated (application_controller) ('x')\n\nCrash dump is being written",
      "Kernel pid terminated (application_controller) ('x')",
    ],
    ['starting\nno errors so far\n', undefined],
    ['starting\n[bot] login failed: no token\nbye', '[bot] login failed: no token'],
    ['', undefined],
  ];
  for (const [log, line] of said) assert.equal(findCrashLine(log), line, log);
  assert.equal(findCrashLine(`ValueError: ${'x'.repeat(500)}`)?.length, 201);
});

test('finds the last line that is no frame', () => {
  assert.equal(findLastLine('starting\nthe moon is down\n    at a.js:1\n\n'), 'the moon is down');
  assert.equal(findLastLine('\n'), undefined);
});

test('parses a long line quickly', () => {
  assert.match(suggestCrashFix('missing '.repeat(100_000)), /last lines of its log/);
  assert.equal(findCrashLine('a.'.repeat(100_000)), undefined);
  for (const word of [
    "ImportError: cannot import name 'a' from 'b' (",
    'TypeError: x got ',
    'exec: "x": ',
    'A_B is ',
    'Error ',
  ])
    assert.ok(suggestCrashFix(word.repeat(2_000)).length > 0);
});

test.each([
  [
    'Python names the innermost call last',
    'Traceback (most recent call last):\n  File "/app/main.py", line 3, in <module>\n    run()\n  File "/app/lib/run.py", line 12, in run\n    import PIL\nModuleNotFoundError: No module named',
    'lib/run.py:12',
  ],
  [
    'Python packages are passed over',
    'Traceback (most recent call last):\n  File "/app/main.py", line 3, in <module>\n  File "/app/.venv/lib/python3.12/site-packages/flask/app.py", line 99, in run\nRuntimeError: no',
    'main.py:3',
  ],
  [
    'a syntax error of Python',
    '  File "/app/app.py", line 1\n    this is no python\n    ^^^^\nSyntaxError: invalid syntax',
    'app.py:1',
  ],
  [
    'Node names it first',
    'file:///app/server.js:7\n  nope();\n  ^\n\nReferenceError: nope is not defined\n    at file:///app/server.js:7:3\n    at node:internal/main:1:1',
    'server.js:7',
  ],
  [
    'a frame of Node',
    'TypeError: x\n    at Object.<anonymous> (/app/node_modules/a/b.js:1:2)\n    at run (/usr/src/app/src/run.ts:4:5)',
    'src/run.ts:4',
  ],
  [
    'Ruby',
    "/usr/local/lib/ruby/3.3/kernel.rb:1:in 'require': cannot load such file -- x (LoadError)\n\tfrom /app/config.ru:2:in 'block'",
    'config.ru:2',
  ],
  ['Go', 'panic: no\n\ngoroutine 1 [running]:\nmain.main()\n\t/src/cmd/main.go:9 +0x18', 'cmd/main.go:9'],
  ['PHP', 'PHP Fatal error:  Uncaught Error: no in /app/public/index.php on line 5', 'public/index.php:5'],
  ['a log without a traceback', 'no configuration found\n', undefined],
  ['an address is no file', 'listening on 127.0.0.1:8080\nError: connect ECONNREFUSED 10.0.0.1:5432', undefined],
])('%s', (_name, log, expected) => {
  const found = findCrashPosition(log);
  assert.equal(found === undefined ? undefined : `${found.file}:${found.line}`, expected);
});

const end = '\nThe app is not started, since its database is not up to date: migrate\n';

test.each([
  [
    'Prisma',
    'Error: P3018\n\nA migration failed to apply.\n\nDatabase error:\nERROR: relation "User" does not exist',
    'Error: P3018 ERROR: relation "User" does not exist',
  ],
  [
    'Prisma on another schema',
    'Error: P3005\n\nThe database schema is not empty. Read more: https://pris.ly/d/migrate-baseline',
    'Error: P3005 The database schema is not empty. Read more: https://pris.ly/d/migrate-baseline',
  ],
  [
    'Alembic',
    'Traceback (most recent call last):\n  File "/app/x.py", line 1\nsqlalchemy.exc.ProgrammingError: (psycopg2.errors.UndefinedTable) relation "users" does not exist\nLINE 1: ALTER TABLE users',
    'sqlalchemy.exc.ProgrammingError: (psycopg2.errors.UndefinedTable) relation "users" does not exist',
  ],
  [
    'Laravel',
    "   Illuminate\\Database\\QueryException \n\n  SQLSTATE[42S01]: Table 'users' already exists (SQL: create table)",
    "SQLSTATE[42S01]: Table 'users' already exists (SQL: create table)",
  ],
  ['a tool that names no error', 'checking\nnothing to do with this', 'nothing to do with this'],
])('quotes what a migration of %s printed, and not the line after it', (_, log, expected) => {
  assert.equal(findCrashLine(`${log}${end}`), expected);
  assert.match(suggestCrashFix(`${log}${end}`, 1), /brings the database up to date.*empty database/);
});

test('prefers the cause of a failed migration that is known', () => {
  const log = `Error: P1001: Can't reach database server at \`localhost:5432\`${end}`;
  assert.match(suggestCrashFix(log, 1), /own container.*type: postgres/);
  const driver = `sqlalchemy.exc.InvalidRequestError: The asyncio extension requires an async driver to be used.${end}`;
  assert.match(suggestCrashFix(driver, 1), /postgresql\+asyncpg:\/\/\$\{\{services\.db\.user\}\}/);
});
