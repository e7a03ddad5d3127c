// What an author can do about a build of Ruby that failed, by what Bundler, RubyGems and Rails print.
import { images } from '../plan/recipe.ts';
import type { Pattern } from './fixes.ts';

const versions = images.ruby.map(({ version }) => version).join(' and ');

/** The more specific ones come first. */
export const rubyPatterns: readonly Pattern[] = [
  {
    pattern:
      /Your Ruby version is \S{1,20}, but your Gemfile specified|requires ruby version .{1,80} incompatible with the current version|because current Ruby version is/i,
    isCertain: true,
    rule: 'build/failed',
    fix: `The Gemfile or a gem requires another version of Ruby; ${versions} are available. Ask for one of them in .ruby-version and the Gemfile, run bundle update for the gems that the log names, and commit Gemfile.lock; or add a Dockerfile.`,
  },
  {
    pattern:
      /Could not find gem '|Could not find \S{1,100} in (?:any of the sources|rubygems repository|locally installed gems)|Could not find compatible versions|Your bundle is locked to \S{1,100} .{1,80}, but that version/,
    isCertain: true,
    rule: 'build/failed',
    fix: 'A gem or the version of it that is asked for is not in its source, or is private. Correct it in the Gemfile, run bundle install, and commit Gemfile.lock.',
  },
  {
    pattern: /Could not find a JavaScript runtime|ExecJS::RuntimeUnavailable/,
    isCertain: true,
    rule: 'build/failed',
    fix: 'A gem runs JavaScript, and the image has no Node. Commit Gemfile.lock, by which the plan sees that and adds it, or add the gem mini_racer.',
  },
  {
    pattern: /Missing encryption key to decrypt|EncryptedFile::MissingKeyError|MessageEncryptor::InvalidMessage/,
    isCertain: true,
    rule: 'build/failed',
    fix: 'Rails decrypts config/credentials.yml.enc, and its key (config/master.key) is not in the repository. Remove config.require_master_key, and read what the app needs from variables with a default for the build.',
  },
  {
    pattern:
      /Failed to build gem native extension|mkmf\.rb can't find header files|^An error occurred while installing \S{1,100} \(/,
    rule: 'build/failed',
    fix: 'A gem did not compile: the log names the library or header that it misses. Libraries of well-known gems are installed; for another one use a version of the gem with binaries for x86_64-linux, or add a Dockerfile that installs its Debian package (such as libpq-dev).',
  },
];
