// Finds signs that an app keeps data in a path that its code does not state: the drivers of SQLite, uploads, and what a PHP
// page writes. Where .gitignore leaves out a folder of data that the code names, that folder is the path.
import { posix } from 'node:path';
import type { Tree } from '../tree.ts';
import { isDataName } from './platforms/compose/volumes.ts';

/** A source of the app, with its text. */
export interface SourceText {
  readonly path: string;
  readonly text: string;
}

/** A line that shows that the app keeps data. */
export interface DataSign {
  readonly file: string;
  readonly line: number;
  /** What it keeps, as the object of "keeps": a database of SQLite. */
  readonly what: string;
  /** It may be a cache or a report: it says something of a folder that git ignores, and nothing alone. */
  readonly isWeak?: boolean;
}

/** A folder that .gitignore leaves out, since the app writes to it. */
export interface IgnoredFolder extends DataSign {
  readonly path: string;
}

interface SignPattern {
  readonly files: RegExp;
  readonly line: RegExp;
  readonly what: string;
  /** Only in files that have this too. */
  readonly needs?: RegExp;
  /** Not in files that have this. */
  readonly unless?: RegExp;
  readonly isWeak?: boolean;
}

const database = 'a database of SQLite';
const uploads = 'uploaded files';
/** Uploads that are kept by another server. */
const elsewhere = /\b(?:boto3|aws-sdk|@aws-sdk|s3client|cloudinary|minio|supabase|firebase|azure|memoryStorage)\b/i;
const script = /\.[cm]?[jt]sx?$/;

const patterns: readonly SignPattern[] = [
  {
    files: /\.go$/,
    line: /"(?:github\.com\/(?:mattn\/go-sqlite3|glebarez\/(?:go-)?sqlite|ncruces\/go-sqlite3[\w/]{0,20}|jinzhu\/gorm\/dialects\/sqlite)|modernc\.org\/sqlite|gorm\.io\/driver\/sqlite|zombiezen\.com\/go\/sqlite)"/,
    what: database,
  },
  {
    files: /\.py$/,
    line: /^\s{0,20}(?:import|from) (?:aio)?sqlite3?\b/,
    needs: /\bconnect\((?!\s{0,3}["'](?::memory:|file::memory:))/,
    what: database,
  },
  {
    files: script,
    line: /\b(?:require\(|from )\s{0,3}["'](?:better-sqlite3|sqlite3|node:sqlite|bun:sqlite)["']/,
    what: database,
  },
  {
    files: /\.rs$/,
    line: /\b(?:rusqlite::|sqlx::sqlite|diesel::sqlite|SqlitePool|SqliteConnection)\b/,
    what: database,
  },
  { files: /\.php$/, line: /\bnew \\?SQLite3\(|["']sqlite:(?!:memory:)/, what: database },
  { files: /\.go$/, line: /\.SaveUploadedFile\(/, what: uploads },
  {
    files: /\.go$/,
    line: /\.FormFile\(/,
    needs: /\bos\.(?:Create|OpenFile|WriteFile)\(/,
    unless: elsewhere,
    what: uploads,
  },
  {
    files: /\.py$/,
    line: /\brequest\.files\b|:\s{0,3}(?:list\[)?UploadFile\b/,
    needs: /\.save\(|\bcopyfileobj\(|\bopen\([^)\n]{0,200}["'][wax]b?\+?["']/,
    unless: elsewhere,
    what: uploads,
  },
  {
    files: /models[\w/]{0,60}\.py$/,
    line: /\b(?:File|Image)Field\(/,
    needs: /\bdjango\b/,
    what: uploads,
  },
  { files: script, line: /\bmulter\(|\bformidable\(|\bfileUpload\(/, unless: elsewhere, what: uploads },
  { files: /\.php$/, line: /\bmove_uploaded_file\(/, what: uploads },
  {
    files: /\.php$/,
    line: /^(?!.{0,300}(?:cache|log|tmp|temp|php:\/\/)).{0,300}\b(?:file_put_contents\(|fopen\([^;\n]{0,200},\s{0,3}["'][wax]b?\+?["'])/i,
    what: 'files that its pages write',
  },
  {
    files: /\.py$/,
    line: /\bjson\.dump\(|\.write_(?:text|bytes)\(|\bopen\([^)\n]{0,200}["'][wax]b?\+?["']/,
    isWeak: true,
    what: 'files that it writes',
  },
  { files: script, line: /\b(?:writeFile|appendFile)(?:Sync)?\(/, isWeak: true, what: 'files that it writes' },
  { files: /\.go$/, line: /\bos\.(?:WriteFile|Create|OpenFile)\(/, isWeak: true, what: 'files that it writes' },
];

/** Lists the first sign of each kind of data, in the order of the files. */
export function findDataSigns(texts: readonly SourceText[]): DataSign[] {
  const found = texts.flatMap(({ path, text }) =>
    patterns.flatMap(({ files, line, what, needs, unless, isWeak = false }): DataSign[] => {
      if (!files.test(path) || /cache/i.test(path)) return [];
      if (needs?.test(text) === false || unless?.test(text) === true) return [];
      const index = text.split('\n').findIndex((each) => !isComment(each) && line.test(each));
      return index < 0 ? [] : [{ file: path, line: index + 1, what, isWeak }];
    }),
  );
  return found.filter(({ what }, index) => found.findIndex((each) => each.what === what) === index);
}

function isComment(line: string): boolean {
  return line.length > 500 || /^\s{0,40}(?:#|\/\/|\*|--)/.test(line);
}

/** Programs that look for their files next to their binary. A plan has that of Go in the folder of the app. */
const nextToBinary = { planned: /\bcurrent_exe\(\)/, authored: /\bcurrent_exe\(\)|\bos\.Executable\(\)/ };

/** Lists the folders that .gitignore leaves out, have a name of data, and are named by the code. */
export function findIgnoredFolders(
  tree: Tree,
  texts: readonly SourceText[],
  image: keyof typeof nextToBinary,
): IgnoredFolder[] {
  if (texts.some(({ text }) => nextToBinary[image].test(text))) return [];
  const file = '.gitignore';
  return (tree.readFile(file, 64 * 1024) ?? '').split('\n').flatMap((line, index): IgnoredFolder[] => {
    const path = /^\/?([\w-][\w./-]{0,100}?)(?:\/(?:\*{1,2}(?:\/\*)?)?)?\s{0,20}$/.exec(line)?.[1];
    if (path === undefined || !isDataName(path) || tree.getEntry(path)?.kind === 'file') return [];
    const literal = createFolderLiteral(posix.basename(path));
    const isNamed = texts.some(({ text }) => literal.test(text));
    return isNamed ? [{ path: posix.normalize(path), file, line: index + 1, what: 'the data that git ignores' }] : [];
  });
}

/** Matches a literal that is the folder, or a path in it. */
function createFolderLiteral(name: string): RegExp {
  const escaped = name.replaceAll('.', String.raw`\.`);
  return new RegExp(String.raw`["'\x60](?:\./|/)?(?:[\w-]{1,40}/){0,3}${escaped}(?:/[^"'\x60\n]{0,200})?["'\x60]`);
}
