// Makes gems for tests without a registry: of what Debian packages, and of files of a test. No Ruby is needed here.
import { execFileSync } from 'node:child_process';
import { mkdir, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { gzipSync } from 'node:zlib';

export interface GemOptions {
  readonly name: string;
  readonly version: string;
  /** Programs of the folder bin. */
  readonly executables?: readonly string[];
  /** Each an extconf.rb by which C is compiled when the gem is installed. */
  readonly extensions?: readonly string[];
}

/** Writes the gem of the files of a folder into another one. */
async function packGem(files: string, options: GemOptions, target: string): Promise<void> {
  const scratch = await mkdtemp(join(tmpdir(), 'moorage-gem-'));
  const list = (await readdir(files, { recursive: true, withFileTypes: true }))
    .filter((each) => each.isFile())
    .map((each) => join(each.parentPath, each.name).slice(files.length + 1));
  execFileSync('tar', ['-czf', join(scratch, 'data.tar.gz'), '-C', files, ...list]);
  await writeFile(join(scratch, 'metadata.gz'), gzipSync(metadata(options, list)));
  await mkdir(target, { recursive: true });
  const gem = join(target, `${options.name}-${options.version}.gem`);
  execFileSync('tar', ['-cf', gem, '--format=ustar', '-C', scratch, 'metadata.gz', 'data.tar.gz']);
  await rm(scratch, { recursive: true });
}

function metadata({ name, version, executables = [], extensions = [] }: GemOptions, files: readonly string[]): string {
  const list = (values: readonly string[]): string => JSON.stringify(values);
  const any =
    '!ruby/object:Gem::Requirement\n  requirements:\n  - - ">="\n    - !ruby/object:Gem::Version\n      version: "0"';
  return [
    '--- !ruby/object:Gem::Specification',
    `name: ${name}`,
    `version: !ruby/object:Gem::Version\n  version: ${version}`,
    'platform: ruby',
    'authors: [Test]',
    'bindir: bin',
    'date: 2026-01-02 00:00:00.000000000 Z',
    'dependencies: []',
    `executables: ${list(executables)}`,
    `extensions: ${list(extensions)}`,
    `files: ${list(files)}`,
    'require_paths: [lib]',
    `required_ruby_version: ${any}`,
    `required_rubygems_version: ${any}`,
    'rubygems_version: 3.3.15',
    'specification_version: 4',
    `summary: ${name}`,
    '',
  ].join('\n');
}

/** A gem of these files. */
export async function addGem(
  target: string,
  options: GemOptions,
  files: Readonly<Record<string, string>>,
): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), 'moorage-gem-files-'));
  for (const [path, text] of Object.entries(files)) {
    await mkdir(dirname(join(folder, path)), { recursive: true });
    await writeFile(join(folder, path), text);
  }
  await packGem(folder, options, target);
  await rm(folder, { recursive: true });
}

/** Rack and WEBrick as this release of Debian has them. Gives their versions. */
export async function addDebianGems(target: string): Promise<{ readonly rack: string; readonly webrick: string }> {
  const folder = await mkdtemp(join(tmpdir(), 'moorage-gem-debian-'));
  execFileSync('apt-get', ['download', '-qq', 'ruby-rack', 'ruby-webrick'], { cwd: folder, stdio: 'pipe' });
  const debs = (await readdir(folder)).filter((each) => each.endsWith('.deb'));
  for (const deb of debs) execFileSync('dpkg-deb', ['-x', deb, 'root'], { cwd: folder });
  const [rack = '', webrick = ''] = ['rack', 'webrick'].map((name) =>
    execFileSync('dpkg-deb', ['-f', debs.find((deb) => deb.startsWith(`ruby-${name}_`)) ?? '', 'Version'], {
      cwd: folder,
      encoding: 'utf8',
    })
      .trim()
      .replace(/^\d+:/, '')
      .replace(/-.*$/, ''),
  );
  const gems = join(folder, 'root', 'usr', 'share', 'rubygems-integration', 'all', 'gems');
  await packGem(join(gems, `rack-${rack}`), { name: 'rack', version: rack, executables: ['rackup'] }, target);
  await packGem(join(gems, `webrick-${webrick}`), { name: 'webrick', version: webrick }, target);
  await rm(folder, { recursive: true });
  return { rack, webrick };
}
