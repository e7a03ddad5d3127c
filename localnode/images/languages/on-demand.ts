// Base images built when an app first needs them: those that plans for further languages use, and those that authors name
// in FROM.
import {
  createBuildpackDepsImage,
  createDebianImage,
  createNodeImage,
  createPackagedImage,
  createPythonImage,
  createUbuntuImage,
  createUbuntuPythonImage,
  fillGo,
  fillMaven,
  fillNpmProgram,
  fillRust,
  fillUv,
  mavenVersion,
  rustVersion,
} from './makers.ts';
import type { ImageRecipe } from '../catalog.ts';

/** The newest patch releases of Go, one per minor version; plans use the first. */
const goVersions = ['1.26.11', '1.25.14', '1.24.13', '1.23.12', '1.22.12'] as const;

function createGolangImage(version: string, newest: boolean): ImageRecipe {
  const minor = version.split('.').slice(0, 2).join('.');
  // Tagged with the next Debian release too, because this node has no other.
  const names = [version, minor, ...(newest ? ['1'] : [])];
  return createPackagedImage({
    name: `golang-${minor}`,
    repository: 'library/golang',
    tags: [
      ...names.flatMap((name) => [`${name}-bookworm`, `${name}-trixie`, name]),
      ...(newest ? ['bookworm', 'latest'] : []),
    ],
    folder: 'golang',
    suite: 'bookworm',
    key: [version],
    fill: fillGo(version),
  });
}

function createTemurinImages(major: string, suite: string): ImageRecipe[] {
  const createImage = (kind: 'jdk' | 'jre', packages: readonly string[]): ImageRecipe =>
    createPackagedImage({
      name: `java-${major}-${kind}`,
      repository: 'library/eclipse-temurin',
      tags: [`${major}-${kind}`, ...packages],
      folder: 'temurin',
      suite,
      arguments: { PACKAGE: `openjdk-${major}-${kind}-headless`, JAVA: `java-${major}-openjdk` },
    });
  return [createImage('jdk', [major]), createImage('jre', [])];
}

function createMavenImage(java: string): ImageRecipe {
  return {
    name: `maven-${java}`,
    repository: 'library/maven',
    tags: [`${mavenVersion}-eclipse-temurin-${java}`, `3.9-eclipse-temurin-${java}`, `3-eclipse-temurin-${java}`],
    folder: 'maven',
    arguments: { BASE: `eclipse-temurin:${java}-jdk` },
    bases: [`java-${java}-jdk`],
    parts: [],
    computeKey: () => Promise.resolve(mavenVersion),
    fill: fillMaven,
  };
}

function createPhpImages(version: string, suite: string): ImageRecipe[] {
  const createImage = (name: 'cli' | 'apache', tags: readonly string[]): ImageRecipe =>
    createPackagedImage({
      name: `php-${version}-${name}`,
      repository: 'library/php',
      tags,
      folder: 'php',
      suite,
      arguments: { VERSION: version, KIND: name },
    });
  return [
    createImage('cli', [`${version}-cli`, version, `${version}-cli-${suite}`]),
    createImage('apache', [`${version}-apache`, `${version}-apache-${suite}`]),
  ];
}

function createBunImage(version: string, ...tags: string[]): ImageRecipe {
  return createPackagedImage({
    name: `bun-${version}`,
    repository: 'oven/bun',
    tags: [version, `${version}-slim`, `${version}-debian`, ...tags],
    folder: 'bun',
    suite: 'bookworm',
    key: [version],
    fill: fillNpmProgram('@oven/bun-linux', version, 'bun'),
  });
}

/** The newest uv, which is also added to Python images. */
const uvVersion = '0.13.8';

/** Its registry is ghcr.io, which the node's registry mirrors too. */
function createUvImage(version: string, ...tags: string[]): ImageRecipe {
  return createPackagedImage({
    name: `uv-${version}`,
    repository: 'astral-sh/uv',
    tags: [version, ...tags],
    folder: 'uv',
    suite: 'bookworm',
    key: [version],
    fill: fillUv(version),
  });
}

function createUvPythonImage(version: string): ImageRecipe {
  const tag = `python${version}`;
  return {
    name: `uv-${tag}`,
    repository: 'astral-sh/uv',
    tags: [tag, ...['bookworm', 'bookworm-slim', 'trixie', 'trixie-slim'].map((release) => `${tag}-${release}`)],
    folder: 'uv-python',
    arguments: { BASE: `python:${version}-slim` },
    bases: [`python-${version}`],
    parts: [],
    computeKey: () => Promise.resolve(uvVersion),
    fill: fillUv(uvVersion),
  };
}

/** Ubuntu's .NET under the names of Microsoft's registry, which the node's registry mirrors too. */
function createDotnetImages(version: string): ImageRecipe[] {
  const createImage = (kind: 'sdk' | 'aspnet', part: string): ImageRecipe => ({
    name: `dotnet-${version}-${kind}`,
    host: 'mcr.microsoft.com',
    repository: `dotnet/${kind}`,
    tags: [version, `${version}-noble`],
    folder: 'dotnet',
    arguments: { BASE: 'ubuntu:noble', PACKAGE: `${part}-${version}` },
    bases: ['ubuntu-noble'],
    parts: [],
    fill: () => Promise.resolve(),
  });
  return [createImage('sdk', 'dotnet-sdk'), createImage('aspnet', 'aspnetcore-runtime')];
}

function createElixirImage(version: string, otp: string, suite: string): ImageRecipe {
  const names = [version, `${version}-otp-${otp}`];
  return createPackagedImage({
    name: `elixir-${version}`,
    repository: 'library/elixir',
    tags: names.flatMap((name) => [name, `${name}-slim`]),
    folder: 'elixir',
    suite,
  });
}

/** Each comes after its base images. */
export const onDemand: readonly ImageRecipe[] = [
  createDebianImage('bullseye', '11', '11-slim', 'oldoldstable', 'oldoldstable-slim'),
  createUbuntuImage('focal', '20.04'),
  createUbuntuImage('jammy', '22.04'),
  createUbuntuImage('noble', '24.04', 'latest'),
  createUbuntuImage('resolute', '26.04'),
  createBuildpackDepsImage('debian', 'bookworm'),
  createBuildpackDepsImage('debian', 'trixie'),
  createBuildpackDepsImage('ubuntu', 'noble'),
  createUbuntuPythonImage('any', '3.8', 'focal'),
  createPythonImage('any', '3.9', 'bullseye'),
  createUbuntuPythonImage('any', '3.10', 'jammy'),
  createPythonImage('full', '3.11', 'bookworm'),
  createUbuntuPythonImage('slim', '3.12', 'noble'),
  createUbuntuPythonImage('full', '3.12', 'noble'),
  createPythonImage('full', '3.13', 'trixie', '3', '3-trixie', 'latest', 'trixie'),
  createUbuntuPythonImage('any', '3.14', 'resolute'),
  createNodeImage('any', '16.20.2', '8.19.4'),
  createNodeImage('any', '18.20.8', '10.9.4'),
  createNodeImage('slim', '20.20.2', '10.9.4'),
  createNodeImage('full', '20.20.2', '10.9.4'),
  createNodeImage('full', '22.23.3', '10.9.4'),
  createNodeImage('full', '24.21.0', '11.6.4', 'lts', 'latest'),
  ...goVersions.map((version, index) => createGolangImage(version, index === 0)),
  createPackagedImage({
    name: 'rust',
    repository: 'library/rust',
    tags: ['1', '1-bookworm', '1-slim', '1-slim-bookworm', rustVersion, 'bookworm', 'slim-bookworm', 'latest', 'slim'],
    folder: 'rust',
    suite: 'bookworm',
    key: [rustVersion],
    fill: fillRust,
  }),
  ...createTemurinImages('17', 'bookworm'),
  ...createTemurinImages('21', 'trixie'),
  ...createTemurinImages('25', 'trixie'),
  ...['17', '21', '25'].map(createMavenImage),
  ...createPhpImages('8.2', 'bookworm'),
  ...createPhpImages('8.4', 'trixie'),
  ...(
    [
      ['3.1', 'bookworm'],
      ['3.3', 'trixie'],
    ] as const
  ).map(([version, suite]) =>
    createPackagedImage({
      name: `ruby-${version}`,
      repository: 'library/ruby',
      tags: [version, `${version}-slim`, `${version}-${suite}`, `${version}-slim-${suite}`],
      folder: 'ruby',
      suite,
    }),
  ),
  ...['8.0', '10.0'].flatMap(createDotnetImages),
  createElixirImage('1.14', '25', 'bookworm'),
  createElixirImage('1.18', '27', 'trixie'),
  createBunImage('1.4.5', '1', '1.4', 'latest', '1-slim', '1-debian', 'slim', 'debian'),
  createBunImage('1.1.29'),
  createPackagedImage({
    name: 'deno',
    repository: 'denoland/deno',
    tags: ['2.9.6', '2', 'latest', 'debian', 'debian-2.9.6'],
    folder: 'deno',
    suite: 'bookworm',
    key: ['2.9.6'],
    fill: fillNpmProgram('@deno/linux', '2.9.6', 'deno'),
  }),
  createUvImage(uvVersion, 'latest', '0.13'),
  createUvImage('0.11.16', '0.11'),
  createUvImage('0.9.26', '0.9'),
  createUvImage('0.9.24'),
  ...['3.12', '3.13', '3.14'].map(createUvPythonImage),
].map((image): ImageRecipe => ({ ...image, on: 'demand' }));
