// Finds files and folders in which the app's own code keeps data that should last: SQLite files, uploads, stores of vectors,
// and settings that an installer writes. Only paths that the code states are found.
import { posix } from 'node:path';
import type { Tree, TreeEntry } from '../tree.ts';
import { type DataSign, findDataSigns, findIgnoredFolders, type SourceText } from './data-signs.ts';
import { findDjangoFolder } from './python/start/django.ts';

/** A path in which the app keeps data. */
export interface DataPath {
  /** Relative to the folder of the app, or absolute. */
  readonly path: string;
  readonly kind: 'file' | 'folder';
  /** The line that states it. */
  readonly file: string;
  readonly line: number;
  /** What it is, as the object of "keeps": a database. */
  readonly what: string;
}

const maximumFiles = 400;
const maximumFileBytes = 256 * 1024;
const maximumPaths = 6;
const longestLine = 500;

/** Languages whose images have only what was compiled, so that paths of the source are not theirs. */
const compiled = /^(?:pom\.xml|build\.gradle(?:\.kts)?|mix\.exs|[^/]{1,80}\.(?:[cf]sproj|sln))$/;

/** The data that an app keeps. */
export interface KeptData {
  /** In the order of the files, each once. */
  readonly paths: readonly DataPath[];
  /** Data whose path the code does not state. */
  readonly unplaced: readonly DataSign[];
}

/** @param image whether a plan makes the image, or the author's Dockerfile */
export function findData(tree: Tree, image: 'planned' | 'authored'): KeptData {
  if (tree.entries.some(({ path }) => compiled.test(path))) return { paths: [], unplaced: [] };
  const files = tree.entries.filter(isSource).slice(0, maximumFiles);
  const context = { tree, django: findDjangoFolder(tree), isFlaskSqlalchemy: false };
  const texts = files.map(({ path }) => ({ path, text: tree.readFile(path, maximumFileBytes) ?? '' }));
  context.isFlaskSqlalchemy = texts.some(({ text }) => /^\s{0,20}(?:from|import) flask_sqlalchemy\b/m.test(text));
  const stated = [
    ...texts.flatMap(({ path, text }) => findInFile(path, text, context)),
    ...findByFramework(tree, texts),
    ...findDjangoUploads(texts, context.django),
  ];
  const signs = isLaravel(tree) ? [] : findDataSigns(texts);
  const ignored = signs.length === 0 ? [] : findIgnoredFolders(tree, texts, image);
  const found = [...stated, ...ignored.map((each) => ({ ...each, kind: 'folder' as const }))];
  const kept = found.filter(({ path }, index) => found.findIndex((each) => each.path === path) === index);
  // A file inside of a folder that lasts needs nothing.
  const paths = kept
    .filter(({ path }) => !kept.some((each) => each.kind === 'folder' && path.startsWith(`${each.path}/`)))
    .slice(0, maximumPaths);
  const unplaced = signs.filter(({ isWeak, what }) => isWeak !== true && !stated.some((each) => each.what === what));
  return { paths, unplaced: ignored.length > 0 ? [] : unplaced };
}

const sources = /\.(?:py|[cm]?[jt]sx?|php|go|rs|prisma|toml|ini)$/i;
/** Code that visitors do not run. */
const aside =
  /(?:^|\/)(?:tests?|__tests__|spec|e2e|docs?|examples?|samples?|notebooks?|benchmarks?|scripts?|migrations?|alembic|seeds?|fixtures?|node_modules|vendor|venv|dist|build|\.[^/]+)\/|(?:^|[/._-])(?:test|spec|conftest)[^/]*\.[a-z]+$|\.(?:min\.js|d\.ts)$/i;

function isSource({ kind, path, bytes }: TreeEntry): boolean {
  return kind === 'file' && bytes <= maximumFileBytes && sources.test(path) && !aside.test(path);
}

interface Context {
  readonly tree: Tree;
  /** Folder of manage.py. */
  readonly django: string | undefined;
  /** It keeps relative databases in the folder instance. */
  isFlaskSqlalchemy: boolean;
}

/** A way in which code states a path: the pattern of a line, where the path is relative to, and what it is. */
interface Pattern {
  /** Files that it is looked for in. */
  readonly files: RegExp;
  /** With the group `path`, or with `joined`: literals that are joined to a path. */
  readonly line: RegExp;
  readonly kind: DataPath['kind'];
  readonly what: string;
  /** Only in files that have this too. */
  readonly needs?: RegExp;
}

const python = /\.py$/;
const script = /\.[cm]?[jt]sx?$/;
const database = String.raw`[\w./-]{1,120}\.(?:db3?|sqlite3?|sqlitedb)`;
const folder = String.raw`\.{0,2}/{0,1}[\w-]{1,40}(?:/[\w-]{1,40}){0,4}/?`;
/** The arguments of a join before the last one, such as BASE_DIR, "data". */
const joined = String.raw`(?<joined>(?:[^"'\n]{0,80}["'][\w./-]{1,60}["']\s{0,3}[,/+]\s{0,3}){0,3}[^"'\n]{0,80})`;
/** PHP's folder of the file, before a literal. */
const phpFolder = String.raw`(?<joined>(?:__DIR__|dirname\((?:__FILE__|__DIR__)\))\s{0,3}\.\s{0,3}["']/?)`;

const patterns: readonly Pattern[] = [
  {
    files: /\.(?:py|toml|ini)$/,
    line: new RegExp(String.raw`sqlite(?:\+[a-z]{1,20})?:///(?<path>(?!:memory:)/?${database})["'\s?]`),
    kind: 'file',
    what: 'a database of SQLite',
  },
  {
    files: python,
    line: new RegExp(String.raw`sqlite(?:\+[a-z]{1,20})?:///["']\s{0,3}\+${joined}["'](?<path>${database})["']`),
    kind: 'file',
    what: 'a database of SQLite',
  },
  {
    files: python,
    line: new RegExp(String.raw`sqlite(?:\+[a-z]{1,20})?:///\{(?<joined>\w{1,40})\}/(?<path>${database})["']`),
    kind: 'file',
    what: 'a database of SQLite',
  },
  {
    files: python,
    line: new RegExp(String.raw`\bconnect\(\s{0,4}(?:database\s{0,3}=\s{0,3})?${joined}["'](?<path>${database})["']`),
    needs: /\b(?:aio)?sqlite3?\b/,
    kind: 'file',
    what: 'a database of SQLite',
  },
  {
    files: python,
    line: new RegExp(
      String.raw`^\s{0,20}(?:self\.)?\w{0,40}(?:db|database|sqlite)\w{0,40}(?::\s{0,3}\w{1,20})?\s{0,3}=${joined}["'](?<path>${database})["']`,
      'i',
    ),
    needs: /\b(?:aio)?sqlite3?\b|settings/,
    kind: 'file',
    what: 'a database of SQLite',
  },
  {
    files: python,
    line: new RegExp(String.raw`["']NAME["']\s{0,3}:${joined}["'](?<path>${database})["']`),
    needs: /django\.db\.backends\.sqlite3/,
    kind: 'file',
    what: 'a database of SQLite',
  },
  {
    files: script,
    line: new RegExp(
      String.raw`\b(?:new (?:sqlite3\.|sqlite\.)?Database(?:Sync)?\(|(?:filename|storage|database)\s{0,3}:|createClient\(\{\s{0,3}url\s{0,3}:)${joined}["'\x60](?:file:)?(?<path>${database})["'\x60]`,
    ),
    needs: /sqlite|libsql/i,
    kind: 'file',
    what: 'a database of SQLite',
  },
  {
    files: /\.prisma$/,
    line: /^\s{0,20}url\s{0,20}=\s{0,3}"file:(?<path>[\w./-]{1,120})"/,
    needs: /provider\s{0,20}=\s{0,3}"sqlite"/,
    kind: 'file',
    what: 'a database of SQLite',
  },
  {
    files: /\.php$/,
    line: new RegExp(String.raw`["']sqlite:(?<path>${database})["']`),
    kind: 'file',
    what: 'a database of SQLite',
  },
  {
    files: /\.php$/,
    line: new RegExp(
      String.raw`(?:new \\?SQLite3\(\s{0,3}|["']sqlite:["']\s{0,3}\.\s{0,3})(?:${phpFolder}|["'])(?<path>${database})["']`,
    ),
    kind: 'file',
    what: 'a database of SQLite',
  },
  {
    files: /\.go$/,
    line: new RegExp(
      String.raw`\b(?:Open|Connect)\((?:"sqlite3?", )?"(?:file:)?(?<path>${database})(?:\?[^"]{0,80})?"`,
    ),
    needs: /sqlite/,
    kind: 'file',
    what: 'a database of SQLite',
  },
  {
    files: /\.rs$/,
    line: new RegExp(String.raw`"sqlite:(?://)?(?<path>${database})(?:\?[^"]{0,80})?"`),
    kind: 'file',
    what: 'a database of SQLite',
  },
  {
    files: python,
    line: new RegExp(
      String.raw`\b(?:PersistentClient\((?:path\s{0,3}=\s{0,3})?|persist_directory\s{0,3}=\s{0,3})["'](?<path>${folder})["']`,
    ),
    kind: 'folder',
    what: 'a store of vectors',
  },
  {
    files: python,
    line: /\bTinyDB\(\s{0,3}["'](?<path>[\w./-]{1,120}\.json)["']/,
    kind: 'file',
    what: 'a database of TinyDB',
  },
  {
    files: python,
    line: new RegExp(
      String.raw`\b(?:UPLOAD_(?:FOLDER|DIR|PATH)|MEDIA_ROOT)\b["'\]]{0,2}\s{0,3}=${joined}["'](?<path>${folder})["']`,
    ),
    kind: 'folder',
    what: 'uploaded files',
  },
  {
    files: script,
    line: new RegExp(String.raw`\bmulter\(\{\s{0,3}dest\s{0,3}:${joined}["'\x60](?<path>${folder})["'\x60]`),
    kind: 'folder',
    what: 'uploaded files',
  },
  {
    files: script,
    line: new RegExp(
      String.raw`\b(?:cb|callback|done)\(\s{0,3}null\s{0,3},${joined}["'\x60](?<path>${folder})["'\x60]\s{0,3}\)`,
    ),
    needs: /\bmulter\b[\s\S]{0,4000}destination/,
    kind: 'folder',
    what: 'uploaded files',
  },
  {
    files: /\.php$/,
    line: /^\s{0,20}\$\w{0,20}(?:dir|folder|path|target|upload)\w{0,20}\s{0,3}=\s{0,3}["'](?<path>[\w-]{1,40}(?:\/[\w-]{1,40}){0,3})\/["']/i,
    needs: /\bmove_uploaded_file\(/,
    kind: 'folder',
    what: 'uploaded files',
  },
  {
    files: /\.php$/,
    line: new RegExp(
      String.raw`\b(?:file_put_contents\(|fopen\((?=[^;\n]{0,200},\s{0,3}["'][wax]))\s{0,3}(?:${phpFolder}|["'])(?<path>[\w./-]{0,60}(?:config|settings|installed)[\w-]{0,30}\.(?:php|inc|ini|json|lock))["']`,
      'i',
    ),
    kind: 'file',
    what: 'settings that its installer writes',
  },
];

function findInFile(file: string, text: string, context: Context): DataPath[] {
  const applicable = patterns.filter(({ files, needs }) => files.test(file) && (needs?.test(text) ?? true));
  if (applicable.length === 0) return [];
  return text.split('\n').flatMap((line, index) => {
    if (line.length > longestLine || /^\s{0,40}(?:#|\/\/|\*|--)/.test(line)) return [];
    return applicable.flatMap(({ line: pattern, kind, what }) => {
      const groups = pattern.exec(line)?.groups;
      const path = groups === undefined ? undefined : resolvePath({ file, text }, line, groups, context);
      return path === undefined ? [] : [{ path, kind, file, line: index + 1, what }];
    });
  });
}

/** The folder of the file itself, in Python, Node and PHP. */
const ownFolder = /__file__|__FILE__|__dirname|__DIR__|import\.meta\./;
/** Names of variables that hold a folder of the code. */
const baseName = String.raw`(?:BASE_?DIR|basedir|ROOT_?DIR|PROJECT_ROOT|APP_ROOT|HERE|here)`;
const baseFolder = new RegExp(String.raw`\b${baseName}\b`);
const baseDefinition = new RegExp(String.raw`\b${baseName}\s{0,3}=(?<value>[^=\n]{0,200})`);
/** The folder in which the app starts. */
const workingFolder = /\bgetcwd\(|\bcwd\(|\bcurdir\b|\broot_path\b/;
/** A path that is joined to a variable. */
const joinedToVariable = /(?:join|resolve)\(\s{0,3}[A-Za-z_$]|[\w)\]]\s{0,3}\/\s{0,3}$/;

/** Returns the path relative to the folder of the app; undefined if it is elsewhere, or is not known. */
function resolvePath(
  source: { readonly file: string; readonly text: string },
  line: string,
  { path = '', joined }: Readonly<Record<string, string | undefined>>,
  context: Context,
): string | undefined {
  const before = joined ?? '';
  // Names of variables are literals too, in os.environ.get("DB_PATH", "app.db").
  const literals = [...before.matchAll(/["']([\w./-]{1,60})["']/g)]
    .map(([, literal = '']) => literal)
    .filter((literal) => !/^[A-Z][A-Z0-9_]*$/.test(literal));
  const stated = [...literals, path].join('/');
  if (stated.startsWith('/')) return toLasting(posix.normalize(stated));
  // A path that is joined to another one is absolute.
  const isFlaskDatabase = context.isFlaskSqlalchemy && joined === undefined && line.includes(':///');
  const base = isFlaskDatabase ? 'instance' : findBase(source, before, context);
  return base === undefined ? undefined : toLasting(posix.join(base, stated));
}

/** The folder that a stated path is relative to; undefined if it is in a variable whose value is not known. */
function findBase(
  { file, text }: { readonly file: string; readonly text: string },
  before: string,
  { tree, django }: Pick<Context, 'tree' | 'django'>,
): string | undefined {
  const own = posix.dirname(file);
  if (file.endsWith('.prisma')) return own;
  const stated = readFolder(own, before);
  if (stated !== undefined) return stated;
  if (!baseFolder.test(before)) return joinedToVariable.test(before) ? undefined : findWorkingFolder(file, tree);
  // Django's settings are below the folder of manage.py.
  const usual = django !== undefined && file.includes('settings') ? django : own;
  return readFolder(own, baseDefinition.exec(text)?.groups?.['value'] ?? '') ?? usual;
}

/** The folder that code computes, from that of its file or from where the app starts. */
function readFolder(own: string, code: string): string | undefined {
  if (ownFolder.test(code)) return climbFolders(own, code);
  return workingFolder.test(code) ? '.' : undefined;
}

/** Goes up from the folder of a file as its code does, such as with Path(__file__).parent.parent. */
function climbFolders(own: string, code: string): string {
  const indexed = Number(/\.parents\[(\d)\]/.exec(code)?.[1] ?? 0);
  const calls = Math.max(code.match(/\.parent\b/g)?.length ?? 0, code.match(/dirname\(/g)?.length ?? 0);
  // Of a file's own path, the first step leads to its folder.
  const steps = /__file__|__FILE__|import\.meta\.url/.test(code) ? calls - 1 : calls;
  return posix.join(own, '../'.repeat(indexed > 0 ? indexed : Math.max(0, steps)));
}

/** The folder of the app, where planned apps start; the folder of a package.json above the file. */
function findWorkingFolder(file: string, tree: Tree): string {
  if (!script.test(file)) return '.';
  for (let each = posix.dirname(file); each !== '.'; each = posix.dirname(each))
    if (tree.has(posix.join(each, 'package.json'))) return each;
  return '.';
}

/** Folders that are not meant to last, or are not the app's. */
function toLasting(path: string): string | undefined {
  const clean = path.replace(/(?!^)\/+$/, '');
  if (clean === '.' || clean === '' || clean.startsWith('..')) return undefined;
  return /^\/(?:tmp|var\/tmp|dev|proc|run)(?:\/|$)|(?:^|\/)(?:tmp|temp|[^/]{0,40}cache[^/]{0,40})(?:\/|$)/i.test(clean)
    ? undefined
    : clean;
}

/** Without MEDIA_ROOT, Django keeps uploads in the folder in which it starts. */
function findDjangoUploads(texts: readonly SourceText[], project: string | undefined): DataPath[] {
  const chosen = /\b(?:MEDIA_ROOT|DEFAULT_FILE_STORAGE|STORAGES)\b/;
  if (project === undefined || texts.some(({ text }) => chosen.test(text))) return [];
  return texts.flatMap(({ path: file, text }) =>
    text.split('\n').flatMap((line, index): DataPath[] => {
      // After a part such as %Y, the folder depends on the date.
      const folder =
        /\b(?:File|Image)Field\(.{0,200}\bupload_to\s{0,3}=\s{0,3}["']([\w-]{1,60}(?:\/[\w-]{1,60}){0,4})/.exec(line);
      const path = folder === null ? undefined : toLasting(posix.join(project, folder[1] ?? ''));
      return path === undefined ? [] : [{ path, kind: 'folder', file, line: index + 1, what: 'uploaded files' }];
    }),
  );
}

const storesFiles = /->(?:store|storeAs|storePublicly|storePubliclyAs)\(|\bStorage::/;

/** Laravel's database, unless the repository chooses another one, and its uploads. */
function findByFramework(tree: Tree, texts: readonly SourceText[]): DataPath[] {
  if (!isLaravel(tree)) return [];
  const file = '.env.example';
  const lines = (tree.readFile(file, 64 * 1024) ?? '').split('\n');
  const index = lines.findIndex((line) => /^\s{0,10}DB_CONNECTION\s{0,3}=/.test(line));
  const isSqlite = /=\s{0,3}["']?sqlite/.test(index < 0 ? '=sqlite' : (lines[index] ?? ''));
  const store = texts.find(({ path, text }) => path.startsWith('app/') && storesFiles.test(text));
  return [
    ...(isSqlite ? [createLaravelDatabase(index < 0 ? 'artisan' : file, Math.max(index, 0) + 1)] : []),
    ...(store === undefined ? [] : [createLaravelUploads(store)]),
  ];
}

function createLaravelDatabase(file: string, line: number): DataPath {
  return { path: 'database/database.sqlite', kind: 'file', file, line, what: 'a database of SQLite' };
}

function isLaravel(tree: Tree): boolean {
  return tree.has('artisan') && tree.has('composer.json');
}

function createLaravelUploads({ path: file, text }: SourceText): DataPath {
  const line = text.split('\n').findIndex((each) => storesFiles.test(each)) + 1;
  return { path: 'storage/app', kind: 'folder', file, line, what: 'uploaded files' };
}
