// Reads the gems that an app asks for, and installs them.
import type { Tree } from '../../tree.ts';
import { formatReport } from '../build-warnings.ts';
import { renderStep } from '../recipe.ts';
import { findSampleSettings } from './database.ts';

export interface Bundle {
  /** Text of the Gemfile; empty where there is none. */
  readonly gemfile: string;
  readonly isLocked: boolean;
  /**
   * Version of a gem that the app has when it runs: that of the lock, else the one that the Gemfile names, "" where
   * nobody says it; undefined where the app has no such gem.
   */
  findVersion(gem: string): string | undefined;
  /** Is one of them among the gems of the running app? */
  has(...gems: readonly string[]): boolean;
  /** Gems that the Gemfile itself names for the running app. */
  readonly declared: ReadonlySet<string>;
  /** All gems of the lock, or of the Gemfile where there is none. */
  readonly names: ReadonlySet<string>;
  /** Version of Bundler that wrote the lock. */
  readonly bundler: string | undefined;
  /** The lock has gems for Linux, or for any platform. */
  readonly isForLinux: boolean;
}

interface Gem {
  readonly name: string;
  /** The one that it names exactly or by ~>; "" for any other wish. */
  readonly version: string;
  /** All its groups are left out. */
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
  return (tree.text(file) ?? '').replaceAll('\r', '');
}

function isForLinux(lock: string): boolean {
  const platforms = /^PLATFORMS\n((?: {2}\S{1,60}\n){1,40})/m.exec(lock)?.[1];
  return platforms === undefined || /^ {2}(?:ruby|(?:x86_64|aarch64)-linux(?:-gnu)?)$/m.test(platforms);
}

/** Follows the blocks of the Gemfile: what a group of development or test encloses is left out of the app. */
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

/** Variables of both stages: what is left out when gems are installed is not asked for when the app starts. */
export const bundleEnvironment =
  'BUNDLE_WITHOUT=development:test BUNDLE_APP_CONFIG=/app/.bundle BUNDLE_GEMFILE=/app/Gemfile BUNDLE_SILENCE_ROOT_WARNING=1';

/** Lines with the repository in /app. `adds`: gems that the Gemfile lacks. */
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
 * Bundler refuses any other patch level of Ruby than the one that the Gemfile names, and takes a lock that names one
 * for stale then.
 */
function renderRubyRelaxation({ gemfile, isLocked }: Bundle): string[] {
  if (!/^\s{0,40}ruby[\s(]/m.test(gemfile)) return [];
  const lock = isLocked ? " && sed -i '/^RUBY VERSION/,/^[[:space:]]*$/d' Gemfile.lock" : '';
  return [String.raw`RUN sed -i -E 's/^([[:space:]]*)ruby([[:space:](])/\1# ruby\2/' Gemfile` + lock];
}

/** The Bundler that wrote the lock, as far as this Ruby runs it. Bundler 1 does not, and 2 reads what it wrote. */
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
