// Lists the Debian packages that gems need, to compile and to run.
import type { Tree } from '../../tree.ts';
import { renderStep } from '../recipe.ts';
import type { Bundle } from './bundle.ts';
import { isBefore } from './version.ts';

interface PackageNeeds {
  readonly build?: readonly string[];
  readonly run?: readonly string[];
}

const mysql: PackageNeeds = { build: ['default-libmysqlclient-dev'], run: ['libmariadb3'] };
const curl: PackageNeeds = { build: ['libcurl4-openssl-dev'], run: ['libcurl4'] };
const ssl: PackageNeeds = { build: ['libssl-dev'] };
const ffmpeg: PackageNeeds = { run: ['ffmpeg'] };
const magick: PackageNeeds = { run: ['imagemagick'] };

/** By gem name. The library names exist in every Debian release used here. */
const needs: Readonly<Record<string, PackageNeeds>> = {
  pg: { build: ['libpq-dev'], run: ['libpq5'] },
  mysql2: mysql,
  trilogy: ssl,
  sqlite3: { build: ['libsqlite3-dev'], run: ['libsqlite3-0'] },
  tiny_tds: { build: ['freetds-dev'], run: ['libsybdb5'] },
  psych: { build: ['libyaml-dev'], run: ['libyaml-0-2'] },
  nokogiri: { build: ['libxml2-dev', 'libxslt1-dev', 'zlib1g-dev', 'pkg-config'] },
  ffi: { build: ['libffi-dev'], run: ['libffi8'] },
  eventmachine: ssl,
  openssl: ssl,
  'ruby-vips': { run: ['libvips42'] },
  mini_magick: {},
  rmagick: { build: ['libmagickwand-dev', 'pkg-config'], run: ['imagemagick'] },
  curb: curl,
  ethon: curl,
  typhoeus: curl,
  charlock_holmes: { build: ['libicu-dev', 'zlib1g-dev'], run: ['libicu-dev'] },
  rugged: { build: ['cmake', 'pkg-config', 'libssl-dev', 'libssh2-1-dev'], run: ['libssh2-1'] },
  'ruby-filemagic': { build: ['libmagic-dev'], run: ['libmagic1'] },
  'idn-ruby': { build: ['libidn-dev'], run: ['libidn12'] },
  rbnacl: { run: ['libsodium23'] },
  snappy: { build: ['libsnappy-dev', 'cmake'], run: ['libsnappy1v5'] },
  mimemagic: { build: ['shared-mime-info'], run: ['shared-mime-info'] },
  'streamio-ffmpeg': ffmpeg,
  rtesseract: { run: ['tesseract-ocr'] },
  'gollum-lib': { run: ['git'] },
  git: { run: ['git'] },
  tzinfo: { run: ['tzdata'] },
};

/** Renders the step that installs them in the build image or the final image. */
export function renderSystemPackages(tree: Tree, bundle: Bundle, stage: 'build' | 'run'): string[] {
  const because = [...bundle.names].filter((name) => needs[name]?.[stage] !== undefined && Object.hasOwn(needs, name));
  const names = [
    ...because.flatMap((name) => needs[name]?.[stage] ?? []),
    ...(stage === 'run'
      ? [
          ...(hasImageMagick(bundle) ? (magick.run ?? []) : []),
          ...(hasGitFileList(tree, bundle) || hasGitCall(tree) ? ['git'] : []),
        ]
      : []),
    ...(stage === 'run' && bundle.has('rails') ? ['tzdata'] : []),
  ];
  if (names.length === 0) return [];
  return renderStep(
    because.length === 0 ? 'Gemfile' : because.slice(0, 5).join(', '),
    'installing the Debian packages that gems need',
    `RUN apt-get update && DEBIAN_FRONTEND=noninteractive apt-get install --yes --no-install-recommends ${[...new Set(names)].join(' ')} && rm -rf /var/lib/apt/lists/*`,
  );
}

/** ImageMagick scales images before Rails 7, and if the app requests it. */
function hasImageMagick(bundle: Bundle): boolean {
  return (
    bundle.declared.has('mini_magick') ||
    (bundle.has('image_processing', 'mini_magick') && isBefore(bundle.findVersion('rails'), [7, 0]))
  );
}

/** A gemspec in the repository that lists its files with git is evaluated at every start. */
function hasGitFileList(tree: Tree, { gemfile }: Bundle): boolean {
  return (
    /^\s{0,40}gemspec\b|\bpath:/m.test(gemfile) &&
    tree.entries
      .filter((each) => each.kind === 'file' && /^(?:[^/]+\/){0,2}[^/]+\.gemspec$/.test(each.path))
      .slice(0, 10)
      .some((each) => /git ls-files/.test(tree.readFile(each.path, 64 * 1024) ?? ''))
  );
}

const startedFiles =
  /^(?:config\/(?:initializers\/)?[\w-]{1,60}\.rb|config\.ru|app\.rb|lib\/(?:[\w-]{1,60}\/)?version\.rb)$/;

/** Code that runs at every start asks git for the version. Without the program, Ruby raises an error. */
function hasGitCall(tree: Tree): boolean {
  return tree.entries
    .filter(({ kind, path }) => kind === 'file' && startedFiles.test(path))
    .some(({ path }) =>
      /^[^#\n]{0,200}(?:`|%x[[({]\s?|\b(?:capture2e?|capture3|system)\(?\s?["'])git /m.test(
        tree.readFile(path, 64 * 1024) ?? '',
      ),
    );
}
