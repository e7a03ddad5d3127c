// Separates what needs a database from the scripts of a build, since none runs while an image is built.
import type { Finding } from '../../../../crds/hosted-app.ts';
import { quoteShellWord, renderStep } from '../recipe.ts';

type Scripts = Readonly<Record<string, string>>;

/** How a script calls the program of a package. */
const caller = String.raw`(?:(?:\.\/)?node_modules\/\.bin\/|(?:(?:npx|bunx|yarn(?: run)?|pnpm(?: exec| dlx)?|bun x|npm exec)\s+(?:--?\S+\s+)*(?:--\s+)?))?`;
/** Files of variables, which are not in the repository. */
const wrapper = String.raw`(?:(?:dotenv(?:\s+-\S+\s+\S+)*\s+--|cross-env(?:\s+\w+=\S*)*)\s+)?`;
const migration = new RegExp(
  String.raw`^${wrapper}${caller}(?:prisma\s+(?:migrate\s+(?:deploy|dev)|db\s+push)|drizzle-kit\s+(?:migrate|push(?::\w+)?)|knex\s.{0,100}migrate:latest|sequelize(?:-cli)?\s.{0,60}db:migrate(?!:)|(?:ts-node\s.{0,80})?typeorm[\w-]*\s.{0,100}migration:run|mikro-orm\s.{0,60}migration:up)(?=\s|$)`,
);
const seed = new RegExp(
  String.raw`^${wrapper}${caller}(?:prisma\s+db\s+seed|knex\s.{0,100}seed:run|sequelize(?:-cli)?\s.{0,60}db:seed:all)(?=\s|$)`,
);
/** Scripts of the project, called by name. */
const run = /^(?:npm run|yarn(?: run)?|pnpm(?: run)?|bun run)\s+(?:-s\s+|--silent\s+)?([\w:.-]{1,60})$/;
/** Scripts that the install or the build runs by itself. */
const builders = ['preinstall', 'install', 'postinstall', 'prepare', 'prebuild', 'build', 'postbuild'];

export interface BuildScripts {
  /** Scripts whose text changes, without what needs a database. */
  readonly changed: Scripts;
  /** The migration that was taken out. */
  readonly migration: string | undefined;
  /** Commands that fill a database with sample data, which were taken out and are not run. */
  readonly seeds: readonly string[];
}

/** Takes migrations, and what fills a database with samples, out of the scripts that a build runs. */
export function extractDatabaseCommands(scripts: Scripts): BuildScripts {
  const changed: Record<string, string> = {};
  const migrations: string[] = [];
  const seeds: string[] = [];
  for (const name of listBuilders(scripts)) {
    const parts = (scripts[name] ?? '').split(/\s&&\s/).map((part) => part.trim());
    const kept = parts.filter((part) => {
      const command = resolveCommand(scripts, part);
      if (migration.test(command)) migrations.push(command);
      else if (seed.test(command)) seeds.push(command);
      else return true;
      return false;
    });
    if (kept.length < parts.length) changed[name] = kept.length === 0 ? 'true' : kept.join(' && ');
  }
  return { changed, migration: migrations[0], seeds: [...new Set(seeds)] };
}

/** Lists the scripts of the build, and those that they call. */
function listBuilders(scripts: Scripts): string[] {
  const names = new Set(builders.filter((name) => scripts[name] !== undefined));
  for (const name of names)
    for (const part of (scripts[name] ?? '').split(/\s&&\s/)) {
      const called = run.exec(part.trim())?.[1];
      const isPlain = called !== undefined && !migration.test(resolveCommand(scripts, part.trim()));
      if (isPlain && scripts[called] !== undefined) names.add(called);
    }
  return [...names];
}

/** Follows `npm run db:migrate` to the command of that script. */
function resolveCommand(scripts: Scripts, part: string): string {
  const called = run.exec(part)?.[1];
  const text = called === undefined ? undefined : scripts[called]?.trim();
  return text === undefined || text.includes('&&') ? part : text;
}

/** Flags that let a tool delete data, or ask for a person. */
const destructive = /\s--(?:accept-data-loss|force-reset|force|create-only)\b/g;

/**
 * Converts a migration to what a start may run: with the program of the image, without flags that let it delete data, and
 * `deploy` for what is only for developers.
 */
export function normalizeMigration(command: string): string {
  return command
    .trim()
    .replace(new RegExp(`^${wrapper}${caller}`), '')
    .replace(/^prisma\s+migrate\s+dev\b.*$/, 'prisma migrate deploy')
    .replace(destructive, '');
}

const migrationScript =
  /^(?:(?:db|database|prisma|drizzle|knex|typeorm|sequelize|orm)[:-])?(?:migrate|migrations?:(?:run|up)|migrate:(?:deploy|latest|up|run|prod|production))$/;
/** Programs that run the author's own file, and no more. */
const ownFile = /^(?:node|tsx|ts-node|bun(?: run)?)\s+(?:--?\S+\s+)*[\w./-]{0,100}migrat\w{0,20}\.(?:[cm]?[jt]s)$/;
const other = /\b(?:dev|reset|fresh|drop|seed|revert|rollback|undo|down)\b/;

/** Finds the script with which the author migrates a database, as a command; undefined if none is certain. */
export function findMigrationScript(scripts: Scripts): string | undefined {
  const names = Object.keys(scripts).filter((name) => migrationScript.test(name));
  for (const name of names) {
    const text = resolveCommand(scripts, scripts[name]?.trim() ?? '');
    if (migration.test(text)) return normalizeMigration(text);
    if (ownFile.test(text) && !other.test(text)) return text;
    // `npm run typeorm -- migration:run`: the script of the tool has its options.
    if (/^npm run (?:typeorm|knex|sequelize|mikro-orm)\b[^&;|]{0,200}\bmigrat/.test(text) && !other.test(text))
      return text;
  }
  return undefined;
}

/** Renders the step that changes the scripts in the image. Their hooks stay. */
export function renderChangedScripts({ changed }: BuildScripts, folder: string): string[] {
  const words = Object.entries(changed).map(([name, text]) => quoteShellWord(`scripts.${name}=${text}`));
  return words.length === 0
    ? []
    : renderStep(
        'package.json',
        'taking what needs a database out of the build',
        `RUN ${folder === '.' ? '' : `cd ${quoteShellWord(folder)} && `}npm pkg set ${words.join(' ')}`,
      );
}

/** Warns about sample data: what fills a database may not be safe to repeat. */
export function warnAboutSeeds({ seeds }: BuildScripts): Finding[] {
  const [first] = seeds;
  return first === undefined
    ? []
    : [
        {
          rule: 'plan/seed',
          severity: 'warning',
          file: 'package.json',
          message: `The build runs ${first.slice(0, 100)}, which needs a database. It is left out, since it may not be safe to repeat.`,
          fix: 'If the app needs these rows, add a line "release: COMMAND" to a Procfile: it runs before each start, so it has to leave existing rows as they are.',
        },
      ];
}
