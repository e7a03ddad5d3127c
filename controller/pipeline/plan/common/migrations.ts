// Runs the migrations of a planned app before its server starts, and reports those that nothing would run.
import type { Finding } from '../../../../crds/hosted-app.ts';
import type { Tree } from '../../tree.ts';

export interface Migration {
  /** Shell command, for the folder in which the app starts. */
  readonly command: string;
  /** The file that shows that the app has migrations. */
  readonly file: string;
  /** Variables of which one names the database server; none if the database is a file, which is always there. */
  readonly variables: readonly string[];
  /**
   * Runs without a database server too, as for frameworks whose default is a file of SQLite. Only with a server does a
   * failure prevent the start.
   */
  readonly isLenient?: true;
}

/** Variables that every database server of an app sets, whatever it is named. See crds/backing-services.ts. */
export const serverVariables: readonly string[] = ['DATABASE_URL', 'PGHOST', 'MYSQL_HOST'];

/** A start command that migrates by itself. The author's own choice stays. */
const migrates =
  /\bprisma (?:migrate deploy|db push)\b|\bdrizzle-kit (?:migrate|push)|\bknex\b.{0,80}\bmigrate:(?:latest|up)\b|\bsequelize(?:-cli)?\b.{0,60}\bdb:migrate\b|\bmigrations?:(?:run|up)\b|\bmigrate:(?:deploy|latest|up|prod)\b|\b(?:run|yarn|pnpm|bun) \S{0,40}\bmigrat(?:e|ions?)\b|\bmanage\.py migrate\b|\bdjango-admin migrate\b|\balembic\b.{0,60}\bupgrade\b|\bflask\b.{0,60}\bdb upgrade\b|\bartisan migrate\b|\bdb:(?:prepare|migrate)\b|\becto\.(?:migrate|setup)\b/;

export function isMigrating(command: string): boolean {
  return migrates.test(command);
}

/** The last line of a start that a migration prevents, before the command. */
export const notStarted = 'The app is not started, since its database is not up to date: ';

/**
 * Puts a migration before a start command. Without a database server there is nothing to migrate, and the app reports
 * that itself. If a migration fails, the app is not started: its log ends with what the migration printed, and the next
 * start tries again.
 */
export function prefixMigration(migration: Migration | undefined, start: string): string {
  if (migration === undefined) return start;
  const { command, variables, isLenient } = migration;
  const isServerless = `[ -z "${variables.map((name) => `$${name}`).join('')}" ]`;
  const shown = shortenCommand(command).replaceAll(/["$`\\]/g, '');
  // The wording has no word of an error, so that the line of the migration itself is quoted as the cause.
  const stop = `{ echo "${notStarted}${shown}" >&2; exit 1; }`;
  if (isLenient === true)
    return `{ ( ${command} ) || { ${isServerless} && echo "The database is not up to date: ${shown}" >&2; } || ${stop}; }; ${start}`;
  const guard = variables.length === 0 ? '' : `${isServerless} || `;
  return `{ ${guard}( ${command} ) || ${stop}; }; ${start}`;
}

/** Describes it in the reason of a plan. */
export function describeMigration({ command, file }: Migration): string {
  return `Before each start it runs ${shortenCommand(command)} (${file}).`;
}

/** Without what only finds the program. */
function shortenCommand(command: string): string {
  return command.replace(/^(?:export \S{1,200}; |cd \S{1,100} && |[A-Z_]+=\S{1,100} )+/, '').slice(0, 100);
}

/** Warns about migrations that no command here applies. */
export function warnAboutMigrations(file: string, what: string, fix: string): Finding {
  return {
    rule: 'plan/migrations',
    severity: 'warning',
    file,
    message: `${what}, so its tables do not exist in a new database.`,
    fix,
  };
}

interface CompiledMigrations {
  /** The files of the migrations. */
  readonly files: RegExp;
  /** The sources that may apply them, and what does. */
  readonly sources: RegExp;
  readonly applies: RegExp;
  readonly fix: string;
}

const maximumSources = 400;

/** Warns about migrations next to a compiled program, in whose image no tool could apply them. */
export function warnAboutCompiledMigrations(
  tree: Tree,
  { files, sources, applies, fix }: CompiledMigrations,
): Finding[] {
  const first = tree.entries.find(({ kind, path }) => kind === 'file' && files.test(path))?.path;
  if (first === undefined) return [];
  const isApplied = tree.entries
    .filter(({ kind, path }) => kind === 'file' && sources.test(path) && !files.test(path))
    .slice(0, maximumSources)
    .some(({ path }) => applies.test(tree.readFile(path, 256 * 1024) ?? ''));
  return isApplied ? [] : [warnAboutMigrations(first, 'Nothing in the code applies this migration', fix)];
}
