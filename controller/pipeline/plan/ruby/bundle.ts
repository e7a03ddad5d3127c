// Reads the gems that an app requests, and installs them.
import type { Tree } from '../../tree.ts';
import { formatReport } from '../build-warnings.ts';
import { renderStep } from '../recipe.ts';
import { findSampleSettings } from './database.ts';

export interface Bundle {
  /** Text of the Gemfile; empty if there is none. */
  readonly gemfile: string;
  readonly isLocked: boolean;
  /**
   * Returns the version of a gem in the running app: from the lock file, or else from the Gemfile; "" if none is given;
   * undefined if the app does not have the gem.
   */
  findVersion(gem: string): string | undefined;
  /** Returns whether the running app has any of these gems. */
  has(...gems: readonly string[]): boolean;
  /** Gems that the Gemfile itself lists for the running app. */
  readonly declared: ReadonlySet<string>;
  /** All gems in the lock file, or in the Gemfile if there is no lock. */
  readonly names: ReadonlySet<string>;
  /** Version of Bundler that wrote the lock. */
  readonly bundler: string | undefined;
  /** The lock includes gems for Linux, or for any platform. */
  readonly isForLinux: boolean;
}

interface Gem {
  readonly name: string;
  /** Version given exactly or with ~>; "" for any other requirement. */
  readonly version: string;
  /** All its groups are excluded. */
  readonly isDevelopment: boolean;
}

const spec = /^ {4}([\w.-]{1,100}) \(([^()\n]{1,100})\)$/gm;
const declaration = /^\s{0,40}gem[\s(]\s{0,9}["']([\w.-]{1,100})["']([^\n]{0,500})/;
const opens =
  /\bdo\b(?:\s{0,9}\|[^|\n]{0,60}\|)?\s{0,9}$|^\s{0,40}(?:if|unless|case|def|begin)\b|=\s{0,9}(?:if|case|begin)\b/;

export function readBundle(tree: Tree): Bundle {
  const gemfile = readLines(tree, 'Gemfile');
  const lock = readLines(tree, 'Gemfile.lock');
  const locked = new Map([...lock.matchAll(spec)].map(([, name = '', version = '']) => [name, version]));
  const gems = parseGems(gemfile);
  const declared = new Set(gems.filter((each) => !each.isDevelopment).map(({ name }) => name));
  const aside = new Set(gems.filter(({ name }) => !declared.has(name)).map(({ name }) => name));
  const findVersion = (gem: string): string | undefined =>
    aside.has(gem) ? undefined : (locked.get(gem) ?? gems.find(({ name }) => name === gem)?.version);
  return {
    gemfile,
    isLocked: locked.size > 0,
    findVersion,
    has: (...names) => names.some((name) => findVersion(name) !== undefined),
    declared,
    names: new Set(locked.size > 0 ? locked.keys() : declared),
    bundler: /^BUNDLED WITH\n\s{1,9}(\d{1,3}(?:\.\d{1,5}){1,2})$/m.exec(lock)?.[1],
    isForLinux: isForLinux(lock),
  };
}

function readLines(tree: Tree, file: string): string {
  return (tree.readFile(file) ?? '').replaceAll('\r', '');
}

function isForLinux(lock: string): boolean {
  const platforms = /^PLATFORMS\n((?: {2}\S{1,60}\n){1,40})/m.exec(lock)?.[1];
  return platforms === undefined || /^ {2}(?:ruby|(?:x86_64|aarch64)-linux(?:-gnu)?)$/m.test(platforms);
}

/** Follows the Gemfile's blocks: gems in development and test groups are excluded. */
function parseGems(gemfile: string): Gem[] {
  const blocks: boolean[] = [];
  return gemfile.split('\n').flatMap((line): Gem[] => {
    const code = line.replace(/(?:^|\s)#.*$/, '');
    if (/^\s{0,40}end\b/.test(code)) blocks.pop();
    else if (opens.test(code)) blocks.push(isDevelopmentGroup(/^\s{0,40}group\b([^\n]{1,300}?)\bdo\b/.exec(code)?.[1]));
    return parseGem(code, blocks.includes(true));
  });
}

const groupsOption = /(?:\bgroups?:|:groups?\s{0,9}=>)\s{0,9}(\[[^\]\n]{0,200}\]|%i\[[^\]\n]{0,200}\]|[:"']\w{1,60})/;
const exactly = /^,\s{0,9}["'](?:~>|=)?\s{0,9}(\d{1,3}(?:\.\d{1,5}){0,3})["']/;

function parseGem(code: string, isInside: boolean): Gem[] {
  const [, name, options = ''] = declaration.exec(code) ?? [];
  if (name === undefined) return [];
  const groups = groupsOption.exec(options)?.[1];
  return [{ name, version: exactly.exec(options)?.[1] ?? '', isDevelopment: isInside || isDevelopmentGroup(groups) }];
}

function isDevelopmentGroup(groups: string | undefined): boolean {
  const names = groups?.replaceAll('%i', '').match(/\w{1,60}/g) ?? [];
  return names.length > 0 && names.every((name) => name === 'development' || name === 'test');
}

const cache = '--mount=type=cache,target=/usr/local/bundle/cache';

/** Variables of both stages: groups excluded at install are not required at start either. */
export const bundleEnvironment =
  'BUNDLE_WITHOUT=development:test BUNDLE_APP_CONFIG=/app/.bundle BUNDLE_GEMFILE=/app/Gemfile BUNDLE_SILENCE_ROOT_WARNING=1';

/** Renders the lines that install gems, with the repository in /app. `adds`: gems that the Gemfile lacks. */
export function installGems(tree: Tree, bundle: Bundle, adds: readonly string[]): string[] {
  const sample = findSampleSettings(tree);
  return [
    ...(sample === undefined ? [] : [`RUN cp ${sample} config/database.yml`]),
    ...renderRubyRelaxation(bundle),
    ...(adds.length === 0
      ? []
      : renderStep(
          'Gemfile',
          `adding ${adds.join(' and ')}`,
          `RUN ${adds.map((gem) => `echo 'gem "${gem}"' >> Gemfile`).join(' && ')}`,
        )),
    ...renderBundlerInstall(bundle),
    ...renderStep(
      bundle.isLocked ? 'Gemfile.lock' : 'Gemfile',
      'installing the gems',
      `RUN ${cache} ${buildInstallCommand(tree, bundle, adds)}`,
    ),
  ];
}

/**
 * Bundler rejects any patch level of Ruby other than the one in the Gemfile, and then treats a lock file that names one
 * as stale.
 */
function renderRubyRelaxation({ gemfile, isLocked }: Bundle): string[] {
  if (!/^\s{0,40}ruby[\s(]/m.test(gemfile)) return [];
  const lock = isLocked ? " && sed -i '/^RUBY VERSION/,/^[[:space:]]*$/d' Gemfile.lock" : '';
  return [String.raw`RUN sed -i -E 's/^([[:space:]]*)ruby([[:space:](])/\1# ruby\2/' Gemfile` + lock];
}

/**
 * Installs the Bundler that wrote the lock, if this Ruby supports it. Bundler 1 does not run here; Bundler 2 reads its
 * lock files.
 */
function renderBundlerInstall({ bundler: version }: Bundle): string[] {
  if (version === undefined || version.startsWith('1.')) return [];
  return renderStep(
    'Gemfile.lock',
    `installing Bundler ${version}, which wrote the lock`,
    `RUN bundle --version | grep -qF ' ${version}' || gem install --no-document bundler:${version} 2>/dev/null || echo "The image's own $(bundle --version) is used."`,
  );
}

function buildInstallCommand(tree: Tree, { isLocked, isForLinux }: Bundle, adds: readonly string[]): string {
  const vendored = tree.entries.some((each) => /^vendor\/cache\/[^/]+\.gem$/.test(each.path));
  const free = vendored ? '{ bundle install --local || bundle install; }' : 'bundle install';
  if (!isLocked || !isForLinux || adds.length > 0) return free;
  const exact = vendored
    ? '{ BUNDLE_FROZEN=true bundle install --local || BUNDLE_FROZEN=true bundle install; }'
    : 'BUNDLE_FROZEN=true bundle install';
  return `${exact} || { ${formatReport('gems', 'Gemfile.lock')}; ${free}; }`;
}
