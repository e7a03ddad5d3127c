// Gives git to builds that ask it for their commit, such as a version in the footer. The context of a build has no .git.
import type { Finding } from '../../../../crds/hosted-app.ts';
import type { Tree } from '../../tree.ts';
import { renderStep } from '../recipe.ts';
import { parseScript, readLiteralText, type ScriptCall } from '../syntax/javascript.ts';

export interface GitUse {
  /** File that calls git. */
  readonly file: string;
  /** More than the hash of the commit: its message, its tags, other commits. */
  readonly readsHistory: boolean;
}

/** Variables in which other platforms and CI systems give the commit to a build. */
const commitVariable =
  /\b(?:process\.env|import\.meta\.env|env)(?:\.|\[["'])((?:NEXT_PUBLIC_|VITE_|PUBLIC_|REACT_APP_|NUXT_PUBLIC_)?(?:SOURCE_COMMIT|SOURCE_VERSION|GIT_(?:COMMIT|SHA|HASH|COMMIT_SHA|COMMIT_HASH|REVISION)|COMMIT_(?:SHA|HASH|REF)|GITHUB_SHA|CI_COMMIT_SHA|VERCEL_GIT_COMMIT_SHA|CF_PAGES_COMMIT_SHA|RAILWAY_GIT_COMMIT_SHA|RENDER_GIT_COMMIT|HEROKU_SLUG_COMMIT))\b/g;

/** Lists the variables of the commit that the configuration of a build, or one of its scripts, reads. */
export function listCommitVariables(tree: Tree): string[] {
  const files = tree.entries.filter(({ kind, path }) => kind === 'file' && configs.test(path)).slice(0, maximumFiles);
  const found = files.flatMap(({ path }) => [...(tree.readFile(path, 256 * 1024) ?? '').matchAll(commitVariable)]);
  return [...new Set(found.map(([, name = '']) => name))];
}

const configs =
  /^(?:(?:vite|next|nuxt|astro|svelte|webpack|rollup|gatsby|vue|craco|esbuild|tsup|rsbuild|rspack|remix|quasar|build|gulpfile|config\/webpack[\w.-]{0,40})(?:\.config|\.prod)?(?:\.\w{1,20})?\.[cm]?[jt]s|(?:scripts?|build|tools)\/[\w.-]{1,60}\.[cm]?[jt]s)$/;
/** Packages that call git, or read its folder, when they are loaded. */
const packages = ['git-rev-sync', 'git-revision-webpack-plugin', 'next-build-id'];
const running =
  /(?:^|\.)(?:exec|execSync|spawn|spawnSync|execFile|execFileSync|execa|execaSync|execaCommand|execaCommandSync|\$)$/;
const gitCommand =
  /(?:^|[\s"'`$(=&|;])git (?:-\S+ )*(rev-parse|log|describe|show|rev-list|branch|status|tag|config|ls-files|diff)\b/;
const maximumFiles = 40;

/** Finds what asks git for the commit while the project is built; undefined if nothing does. */
export function findGitUse(
  tree: Tree,
  scripts: Readonly<Record<string, string>>,
  dependencies: ReadonlySet<string>,
): GitUse | undefined {
  const uses: GitUse[] = Object.entries(scripts).flatMap(([name, script]) =>
    /^(?:pre|post)?(?:build|install|prepare|generate)/.test(name)
      ? toUse('package.json', gitCommand.exec(script)?.[1])
      : [],
  );
  const files = tree.entries.filter(({ kind, path }) => kind === 'file' && configs.test(path)).slice(0, maximumFiles);
  for (const { path } of files) {
    const text = tree.readFile(path, 256 * 1024) ?? '';
    if (!/\bgit\b/.test(text)) continue;
    for (const call of parseScript(text).calls) uses.push(...toUse(path, readGitCommand(call)));
  }
  const packageName = packages.find((name) => dependencies.has(name));
  if (packageName !== undefined) uses.push({ file: 'package.json', readsHistory: true });
  return uses.find(({ readsHistory }) => readsHistory) ?? uses[0];
}

function toUse(file: string, command: string | undefined): GitUse[] {
  return command === undefined ? [] : [{ file, readsHistory: command !== 'rev-parse' && command !== 'branch' }];
}

/** Reads `rev-parse` of `execSync('git rev-parse HEAD')` and `spawnSync('git', ['rev-parse', 'HEAD'])`. */
function readGitCommand({ callee, args }: ScriptCall): string | undefined {
  const [first, second] = args;
  const program = readLiteralText(first);
  if (!running.test(callee) || program === undefined) return undefined;
  if (program !== 'git') return gitCommand.exec(program)?.[1];
  return second?.kind === 'list' ? (readLiteralText(second.items[0]) ?? 'log') : 'log';
}

/** Makes the repository before packages are installed: their scripts may set hooks. The same for every commit. */
export function renderGitInit({ file }: GitUse): string[] {
  return renderStep(file, 'making a repository for git', 'RUN git init --quiet /app');
}

/** Renders what git answers from during the build. With a hash in HEAD, git names a commit without having it. */
export function renderGitRepository({ file, readsHistory }: GitUse, commit: string, date: Date | undefined): string[] {
  const day = (date ?? new Date(0)).toISOString();
  const make = readsHistory
    ? `GIT_AUTHOR_DATE=${day} GIT_COMMITTER_DATE=${day} git -c user.name=app -c user.email=app@localhost commit --quiet --allow-empty --message build`
    : `echo ${commit} > .git/HEAD`;
  return renderStep(file, 'naming the commit for git', `RUN ${make}`);
}

/** Tools of Java and Rust that fail outside of a repository. */
const tools: readonly (readonly [files: RegExp, pattern: RegExp])[] = [
  [
    /^(?:[\w-]{1,60}\/){0,2}pom\.xml$/,
    /<artifactId>(?:git-commit-id(?:-maven)?-plugin|buildnumber-maven-plugin|jgitver-maven-plugin)<|<artifactId>maven-git-versioning-extension</,
  ],
  [
    /^(?:[\w-]{1,60}\/){0,2}build\.gradle(?:\.kts)?$/,
    /com\.gorylenko\.gradle-git-properties|com\.palantir\.git-version|org\.ajoberstar\.(?:grgit|reckon)|pl\.allegro\.tech\.build\.axion-release|fr\.brouillard\.oss\.gradle\.jgitver|nebula\.release/,
  ],
  [/^(?:[\w-]{1,60}\/){0,2}Cargo\.toml$/, /^\s{0,9}(?:vergen[\w-]{0,20}|git-version|git-describe)\b/m],
  [/^(?:[\w-]{1,60}\/){0,2}build\.rs$/, /\bCommand::new\(\s{0,9}"git"/],
];

/** Finds the tool of a compiled app that asks git for the version; undefined if there is none. */
export function findGitTool(tree: Tree): GitUse | undefined {
  const found = tree.entries.find(
    ({ kind, path }) =>
      kind === 'file' && tools.some(([files, pattern]) => files.test(path) && pattern.test(tree.readFile(path) ?? '')),
  );
  return found === undefined ? undefined : { file: found.path, readsHistory: true };
}

/** Renders a repository around the files of the build stage, for the tool that was found. */
export function renderToolRepository(use: GitUse | undefined, date: Date | undefined): string[] {
  if (use === undefined) return [];
  const [step = '', run = ''] = renderGitRepository(use, '', date);
  return [step, run.replace(/^RUN /, 'RUN git init --quiet . && ')];
}

/** Warns that the build does not see the commits. */
export function warnAboutHistory({ file, readsHistory }: GitUse): Finding[] {
  if (!readsHistory) return [];
  return [
    {
      rule: 'plan/git-history',
      severity: 'warning',
      file,
      message:
        'The build asks git for more than the hash of its commit. Here git has one empty commit of the same day, without tags or messages.',
      fix: 'Read the version from package.json or from a variable instead, if the app shows it.',
    },
  ];
}
