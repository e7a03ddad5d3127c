// The settings of an app that files for other platforms give, beneath those of moorage.yaml and of the HostedApp.
import { posix } from 'node:path';
import type { AppManifest, ReportedSettings } from '../../../../crds/app-manifest.ts';
import { resolveSpec } from '../../../../crds/effective-settings.ts';
import type { Finding } from '../../../../crds/hosted-app.ts';
import { type PipelineInput, toConfigured } from '../../contract.ts';
import type { Tree } from '../../tree.ts';
import { appJsonDeclaration } from './app-json.ts';
import { composeDeclaration } from './compose/compose.ts';
import { dotnetDatabase } from '../dotnet/database.ts';
import { elixirDeclaration } from '../elixir/declaration.ts';
import { combine, disks } from './combine.ts';
import type { Declaration, DeclaredBuild } from './declaration.ts';
import { findDockerfile } from '../dockerfile/find.ts';
import { forwardedPort } from './devcontainer.ts';
import { dockerfileVolumes } from './dockerfile-volumes.ts';
import { flyDeclaration } from './fly.ts';
import { gemfileDeclaration } from './gemfile.ts';
import { huggingFaceDeclaration } from './hugging-face.ts';
import { lastingFindings } from './lasting.ts';
import { ownSecretsDeclaration } from './own-secrets.ts';
import { procfileDeclaration } from './procfile.ts';
import { railwayDeclaration } from './railway.ts';
import { renderDeclaration } from './render.ts';
import { bounded, settle } from './settle.ts';
import { netlifyDeclaration, vercelDeclaration } from './sites.ts';

export interface PlatformSettings {
  /** Those of moorage.yaml with what the other files add; undefined when nobody says anything. */
  readonly settings: ReportedSettings | undefined;
  readonly findings: readonly Finding[];
}

/** The tree is that of the repository; `own` is what moorage.yaml says. */
export function withPlatforms(tree: Tree, own: AppManifest | undefined, asked: PipelineInput): PlatformSettings {
  const chosen = findChoice(own, asked);
  const said = declarationsOf(tree, { path: chosen?.path, repository: nameOf(asked.repo) });
  const merged = combine(said);
  const { build, dockerfile } = builtFrom(tree, chosen, merged.build);
  const volumes = disks(merged.volumes, dockerfileVolumes(tree.text(dockerfile)));
  const hint = merged.port === undefined ? hintedPort(tree, dockerfile) : undefined;
  const given = bounded({ ...merged, build, volumes: volumes.kept, port: hint?.port ?? merged.port }, own);
  const ofImage = merged.volumes.length === 0 && volumes.kept.length > 0 ? [dockerfile] : [];
  const files = sources(said, [...ofImage, ...(hint === undefined ? [] : [hint.file])]);
  const settings = settle(own, given.settings, files);
  return {
    settings,
    findings: [
      ...said.flatMap(({ findings = [] }) => findings),
      ...volumes.findings,
      ...given.findings,
      ...notLasting(settings),
    ],
  };
}

function notLasting(settings: ReportedSettings | undefined): Finding[] {
  const { env = [], volumes = [] } = settings?.run ?? {};
  return lastingFindings(env, volumes);
}

/** What the files give of the build, and the Dockerfile that is built in the end. */
function builtFrom(
  tree: Tree,
  chosen: { readonly path: string; readonly dockerfile: string } | undefined,
  declared: DeclaredBuild | undefined,
): { build: DeclaredBuild | undefined; dockerfile: string } {
  const build = chosen === undefined ? declared : undefined;
  const { path, dockerfile } = chosen ?? build ?? { path: '.', dockerfile: 'Dockerfile' };
  const named = posix.join(path, dockerfile);
  const found = named === 'Dockerfile' && !tree.has(named) ? findDockerfile(tree) : undefined;
  return { build, dockerfile: found?.certain === true ? found.path : named };
}

/** A devcontainer says on which port its developer looks at the app, which matters where no Dockerfile does. */
function hintedPort(tree: Tree, dockerfile: string): ReturnType<typeof forwardedPort> {
  return tree.has(dockerfile) ? undefined : forwardedPort(tree);
}

/** The files that gave something, as the status names them. */
function sources(said: readonly Declaration[], more: readonly string[]): string {
  const files = said
    .filter(({ env = [], volumes = [], services = [], ...rest }) => {
      const { build, port, command, healthPath } = rest;
      return (
        env.length + volumes.length + services.length > 0 ||
        [build, port, command, healthPath].some((value) => value !== undefined)
      );
    })
    .map(({ file }) => file);
  return [...files, ...more].join(', ').slice(0, 200);
}

/** What is built, if moorage.yaml or the HostedApp says so. */
function findChoice(
  own: AppManifest | undefined,
  asked: PipelineInput,
): { path: string; dockerfile: string } | undefined {
  const { source, build } = resolveSpec(toConfigured(asked), own);
  const { dockerfile, strategy, target } = build;
  const folder = posix.normalize(source.path);
  const isUsual =
    folder === '.' &&
    dockerfile === 'Dockerfile' &&
    strategy === 'auto' &&
    target === undefined &&
    !asked.pinned.some((field) => ['source.path', 'build.dockerfile', 'build.strategy'].includes(field));
  return isUsual ? undefined : { path: folder, dockerfile };
}

function nameOf(repo: string): string {
  return posix.basename(repo).replace(/\.git$/, '');
}

/** In the order in which they are believed. */
function declarationsOf(tree: Tree, options: { path: string | undefined; repository: string }): Declaration[] {
  return [
    composeDeclaration(tree, options),
    ...[
      procfileDeclaration,
      railwayDeclaration,
      renderDeclaration,
      flyDeclaration,
      huggingFaceDeclaration,
      appJsonDeclaration,
      vercelDeclaration,
      netlifyDeclaration,
      ownSecretsDeclaration,
      gemfileDeclaration,
    ].map((read) => read(tree)),
    // What its packages say counts where no file says more.
    ...[dotnetDatabase, elixirDeclaration].map((read) => read(tree.below(options.path ?? '.'))),
  ].filter((each) => each !== undefined);
}
