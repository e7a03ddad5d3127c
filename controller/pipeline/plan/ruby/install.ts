// Installs the gems of an app: by its lock, and where that fails without it.
import type { Tree } from '../../tree.ts';
import { formatReport } from '../build-warnings.ts';
import { step } from '../dockerfile-text.ts';
import type { Bundle } from './bundle.ts';
import { sampleSettings } from './database.ts';

const cache = '--mount=type=cache,target=/usr/local/bundle/cache';

/** Variables of both stages: what is left out when gems are installed is not asked for when the app starts. */
export const bundleEnvironment =
  'BUNDLE_WITHOUT=development:test BUNDLE_APP_CONFIG=/app/.bundle BUNDLE_GEMFILE=/app/Gemfile BUNDLE_SILENCE_ROOT_WARNING=1';

/** Lines with the repository in /app. `adds`: gems that the Gemfile lacks. */
export function installGems(tree: Tree, bundle: Bundle, adds: readonly string[]): string[] {
  const sample = sampleSettings(tree);
  return [
    ...(sample === undefined ? [] : [`RUN cp ${sample} config/database.yml`]),
    ...anyRuby(bundle),
    ...(adds.length === 0
      ? []
      : step(
          'Gemfile',
          `adding ${adds.join(' and ')}`,
          `RUN ${adds.map((gem) => `echo 'gem "${gem}"' >> Gemfile`).join(' && ')}`,
        )),
    ...bundler(bundle),
    ...step(
      bundle.isLocked ? 'Gemfile.lock' : 'Gemfile',
      'installing the gems',
      `RUN ${cache} ${installCommand(tree, bundle, adds)}`,
    ),
  ];
}

/**
 * Bundler refuses any other patch level of Ruby than the one that the Gemfile names, and takes a lock that names one
 * for stale then.
 */
function anyRuby({ gemfile, isLocked }: Bundle): string[] {
  if (!/^\s{0,40}ruby[\s(]/m.test(gemfile)) return [];
  const lock = isLocked ? " && sed -i '/^RUBY VERSION/,/^[[:space:]]*$/d' Gemfile.lock" : '';
  return [String.raw`RUN sed -i -E 's/^([[:space:]]*)ruby([[:space:](])/\1# ruby\2/' Gemfile` + lock];
}

/** The Bundler that wrote the lock, as far as this Ruby runs it. Bundler 1 does not, and 2 reads what it wrote. */
function bundler({ bundler: version }: Bundle): string[] {
  if (version === undefined || version.startsWith('1.')) return [];
  return step(
    'Gemfile.lock',
    `installing Bundler ${version}, which wrote the lock`,
    `RUN bundle --version | grep -qF ' ${version}' || gem install --no-document bundler:${version} 2>/dev/null || echo "The image's own $(bundle --version) is used."`,
  );
}

function installCommand(tree: Tree, { isLocked, isForLinux }: Bundle, adds: readonly string[]): string {
  const vendored = tree.entries.some((each) => /^vendor\/cache\/[^/]+\.gem$/.test(each.path));
  const free = vendored ? '{ bundle install --local || bundle install; }' : 'bundle install';
  if (!isLocked || !isForLinux || adds.length > 0) return free;
  const exact = vendored
    ? '{ BUNDLE_FROZEN=true bundle install --local || BUNDLE_FROZEN=true bundle install; }'
    : 'BUNDLE_FROZEN=true bundle install';
  return `${exact} || { ${formatReport('gems', 'Gemfile.lock')}; ${free}; }`;
}
