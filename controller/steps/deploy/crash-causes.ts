// What programs print when they crash, and what an author can do about it.
import { authorLimits } from '../../../crds/app-manifest.ts';

/** The first that matches counts, so the more specific ones come first. */
export const crashCauses: readonly (readonly [RegExp, string])[] = [
  [
    /ModuleNotFoundError|ImportError: No module|Cannot find (?:module|package)|ERR_MODULE_NOT_FOUND/,
    'The code imports a package or file that is not in the image: add it to your dependencies, or commit the file. Packages needed at run time must not be development dependencies.',
  ],
  [
    /error while loading shared libraries: /,
    'A program needs a shared library that is not in the image: list the Debian package that brings it in packages.txt, use a package with prebuilt binaries, or install the library in a Dockerfile.',
  ],
  [
    /cannot load such file -- |Bundler::GemNotFound|Could not find \S{1,80} in (?:any of the sources|locally installed gems)/,
    'The code requires a gem or file that is not in the image: name the gem in the Gemfile outside of the groups development and test, and commit Gemfile.lock, or commit the file.',
  ],
  [
    /Missing encryption key to decrypt|EncryptedFile::MissingKeyError|MessageEncryptor::InvalidMessage/,
    'Rails cannot decrypt config/credentials.yml.enc, whose key (config/master.key) is not in the repository: only the operator of this installation can set RAILS_MASTER_KEY, as a secret. Let the app start without it: remove config.require_master_key, and read keys from variables.',
  ],
  [
    /Missing `?secret_key_base|secret_key_base for 'production' environment/,
    'Rails has no SECRET_KEY_BASE, and no Gemfile at the top names rails, by which one would be made up for it: set it to ${{secret}} in run.env of moorage.yaml.',
  ],
  [
    /Could not find a JavaScript runtime|ExecJS::RuntimeUnavailable/,
    'A gem runs JavaScript, and the image has no Node: commit Gemfile.lock, by which a plan sees that, or add the gem mini_racer, or install nodejs in the Dockerfile.',
  ],
  [
    /ActiveRecord::PendingMigrationError|PG::UndefinedTable|Mysql2::Error: Table '[^'\n]{1,200}' doesn't exist|SQLite3::SQLException: no such table/,
    'The database lacks a table: run the migrations before the app starts, such as with a line "release: bundle exec rails db:prepare" in the Procfile.',
  ],
  [
    /environment variable DATABASE_URL is missing|"DATABASE_URL" because it is not set/,
    'The app requires a database: give it one with services in moorage.yaml (name: db, type: postgres), which sets DATABASE_URL.',
  ],
  [
    /environment variable SECRET_KEY_BASE is missing|"SECRET_KEY_BASE" because it is not set|:secret_key_base (?:to be|is not) set/,
    'Phoenix requires SECRET_KEY_BASE: set it to ${{secret}} in run.env of moorage.yaml, which makes one that stays.',
  ],
  [
    /You must install or update \.NET to run this application|The framework '[\w.]{1,80}', version '[\w.-]{1,30}'[^\n]{0,60} was not found/,
    'The app was published for another version of .NET than the image runs: set TargetFramework to net8.0 or net10.0, or add a Dockerfile with the runtime that it needs.',
  ],
  [
    /establishing a connection to SQL Server|LocalDB is not supported on this platform|The ConnectionString property has not been initialized/,
    'The app cannot reach its database: SQL Server is not run beside apps here. Let it use PostgreSQL (services in moorage.yaml) or a file of SQLite on a volume (run.volumes), and set its connection string in run.env (ConnectionStrings__NAME).',
  ],
  [
    /['"=: ]\$\{?PORT\b/,
    'The start command passes on $PORT as it is written: CMD in exec form (["…"]) does not expand variables. Write it in shell form (CMD server --port=$PORT), or as ["sh", "-c", "exec server --port=$PORT"].',
  ],
  [
    /but settings are not configured|AppRegistryNotReady|Apps aren't loaded yet/,
    'asgi.py or wsgi.py imports modules of the app before Django is set up, which only "manage.py runserver" forgives: set DJANGO_SETTINGS_MODULE and call get_asgi_application() (or get_wsgi_application()) first, and import them below.',
  ],
  [
    /ENOSPC|EDQUOT|No space left on device|Disk quota exceeded/i,
    `The app filled its disk or a volume: write less (caches, logs, uploads), or increase run.resources.disk (maximum ${authorLimits.run.disk}) or the size of the volume (run.volumes) in moorage.yaml.`,
  ],
  [
    /EACCES|PermissionError|Permission denied|Read-only file system|EROFS/i,
    'The app runs as an unprivileged user who can write only to its own folder, its home directory and /tmp: write there, or to a volume (run.volumes in moorage.yaml).',
  ],
  [/EADDRINUSE|Address already in use/i, 'Two parts of the app listen on the same port: start one server, on $PORT.'],
  [
    /(?:ECONNREFUSED|Connection refused|could not (?:connect|translate)|ENOTFOUND|Name or service not known|getaddrinfo)/i,
    'The app cannot reach a server that it needs, such as a database: set the address of one on the public internet in run.env of moorage.yaml (only the operator of this installation can set a password or other secret), keep data in a file on a volume (run.volumes), or make the app start without it.',
  ],
  [
    /\bOPENAI_(?:API_KEY|BASE_URL|API_BASE)\b/,
    'The app asks for a key of models: where the operator of this installation lets it call models (spec.models.enabled of its HostedApp), it finds OPENAI_API_KEY and OPENAI_BASE_URL. Or make it start without them, and report what is missing where it is used.',
  ],
  [
    /[Ee]nvironment [Vv]ariables?\b.{0,40}(?:fail|invalid)|KeyError: '[A-Z][A-Z0-9_]+'|\bkey not found: "[A-Z][A-Z0-9_]+"|(?:environment variable|api[ _-]?key|credentials?)\b.{0,60}(?:missing|required|not set|not found|must be set|undefined)|(?:missing|must (?:set|provide)|please (?:set|provide)).{0,60}(?:environment variable|api[ _-]?key|[A-Z]{3,}_[A-Z_]+)/i,
    'The app requires an environment variable that is not set: set it in run.env of moorage.yaml. If it is a secret, only the operator of this installation can set it (never commit it): make the app start without it, and report what is missing where it is used.',
  ],
];
