// The settings of an app that files for other platforms give, beneath those of moorage.yaml and of the HostedApp.
import { posix } from 'node:path';
import type { AppManifest, ReportedSettings } from '../../../../crds/app-manifest.ts';
import type { Finding } from '../../../../crds/hosted-app.ts';
import type { PipelineInput } from '../../contract.ts';
import type { Tree } from '../../tree.ts';
import { appJsonDeclaration } from './app-json.ts';
import { composeDeclaration } from './compose/compose.ts';
import { combine, disks, type Combined } from './combine.ts';
import type { Declaration } from './declaration.ts';
import { forwardedPort } from './devcontainer.ts';
import { dockerfileVolumes } from './dockerfile-volumes.ts';
import { flyDeclaration } from './fly.ts';
import { huggingFaceDeclaration } from './hugging-face.ts';
import { lastingFindings } from './lasting.ts';
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
  const isChosen = hasChosen(own, asked);
  const path = posix.normalize(own?.source?.path ?? asked.path);
  const said = declarationsOf(tree, { path: isChosen ? path : undefined, repository: nameOf(asked.repo) });
  const merged = combine(said);
  const build = isChosen ? undefined : merged.build;
  const usual = { path, dockerfile: own?.build?.dockerfile ?? asked.build.dockerfile };
  const dockerfile = dockerfileOf(build ?? usual);
  const volumes = disks(merged.volumes, dockerfileVolumes(tree.text(dockerfile)));
  const port = merged.port ?? hintedPort(tree, dockerfile);
  const given = bounded({ ...merged, build, volumes: volumes.kept, port }, own);
  const files = sources(said, merged, volumes.kept.length > 0 ? dockerfile : undefined);
  const settings = settle(own, given.settings, files);
  return {
    settings,
    findings: [
      ...said.flatMap(({ findings = [] }) => findings),
      ...volumes.findings,
      ...given.findings,
      ...lastingFindings(settings?.run?.env ?? [], settings?.run?.volumes ?? []),
    ],
  };
}

function dockerfileOf({ path, dockerfile }: { readonly path: string; readonly dockerfile: string }): string {
  return posix.join(path, dockerfile);
}

/** A devcontainer says on which port its developer looks at the app, which matters where no Dockerfile does. */
function hintedPort(tree: Tree, dockerfile: string): number | undefined {
  return tree.has(dockerfile) ? undefined : forwardedPort(tree)?.port;
}

/** The files that gave something, as the status names them. */
function sources(said: readonly Declaration[], merged: Combined, dockerfile: string | undefined): string {
  const files = said
    .filter(
      ({ env = [], build, port, command, volumes, services, healthPath }) =>
        env.length > 0 || [build, port, command, volumes, services, healthPath].some((value) => value !== undefined),
    )
    .map(({ file }) => file);
  const isOfDockerfile = merged.volumes.length === 0 && dockerfile !== undefined;
  return [...files, ...(isOfDockerfile ? [dockerfile] : [])].join(', ').slice(0, 200);
}

/** The author, or the operator of the installation, has said himself what is built. */
function hasChosen(own: AppManifest | undefined, { path, build }: PipelineInput): boolean {
  const { dockerfile, strategy, target } = own?.build ?? {};
  return (
    path !== '.' ||
    build.dockerfile !== 'Dockerfile' ||
    build.strategy !== 'auto' ||
    [own?.source?.path, dockerfile, strategy, target].some((value) => value !== undefined)
  );
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
    ].map((read) => read(tree)),
  ].filter((each) => each !== undefined);
}
