// Decides which service of a compose file is the app; the others are backing services, or are not run here.
import type { Finding } from '../../../../../crds/hosted-app.ts';
import { createWarning } from '../declaration.ts';
import { type ComposeFile, type ComposeService, findKnownImage, isAside, isLanguage, isProxy } from './read.ts';

export interface ComposeChoice {
  /** Undefined where the file has backing services only, or does not say which service is the app. */
  readonly app?: ComposeService;
  /** Those of a known image: databases and stores. */
  readonly beside: readonly ComposeService[];
  readonly findings: readonly Finding[];
}

export interface ChoiceOptions {
  /** Folder that the author has chosen, if any. */
  readonly path?: string | undefined;
  /** Name of the repository. */
  readonly repository: string;
}

export function chooseServices({ file, services }: ComposeFile, options: ChoiceOptions): ComposeChoice {
  const beside = services.filter(
    ({ build, image }) => build === undefined && findKnownImage(image ?? '') !== undefined,
  );
  const others = services.filter((each) => !beside.includes(each));
  const built = others.filter(({ build }) => build !== undefined);
  const main = others.filter((each) => !isProxy(each) && !isAside(each) && !isLanguage(each.image ?? ''));
  const candidates =
    built.length > 0 ? main.filter(({ build }) => build !== undefined) : selectPublished(main, options);
  const chosen = chooseOne(candidates, options) ?? (candidates.length === 0 ? chooseOne(built, options) : undefined);
  if (chosen === undefined)
    return {
      beside,
      findings:
        candidates.length > 1 && options.path === undefined ? [rejectSeveral(file, candidates, built.length > 0)] : [],
    };
  return { app: chosen, beside, findings: reportIgnored(file, others, chosen) };
}

/** Of images that are only published, the one that is called like the repository, or the only one. */
function selectPublished(main: readonly ComposeService[], { repository }: ChoiceOptions): readonly ComposeService[] {
  const own = main.filter(({ image = '' }) => image.toLowerCase().includes(`/${repository.toLowerCase()}`));
  return own.length > 0 ? own : main.length === 1 ? main : [];
}

function chooseOne(candidates: readonly ComposeService[], { path }: ChoiceOptions): ComposeService | undefined {
  if (path !== undefined)
    return findReachable(candidates.filter(({ build }) => build === undefined || toFolder(build.context) === path));
  if (candidates.length === 1) return candidates[0];
  // The Dockerfile at the top is the repository's own word about its image; what is built below is part of it, or aside.
  const top = candidates.filter(({ build }) => build !== undefined && toFolder(build.context) === '.');
  if (top.length === 1 && isUsual(top[0]?.build?.dockerfile)) return top[0];
  const open = candidates.filter(({ ports = [] }) => ports.length > 0);
  // One that is reached, of the same image as the rest: they are jobs and workers of it, which the findings name.
  return open.length === 1 && isOneImage(candidates) && candidates.every((each) => each === open[0] || isJob(each))
    ? open[0]
    : undefined;
}

function isUsual(dockerfile: string | undefined): boolean {
  return dockerfile === undefined || /^(?:\.\/)?Dockerfile$/.test(dockerfile);
}

function findReachable(services: readonly ComposeService[]): ComposeService | undefined {
  return services.find(({ ports = [] }) => ports.length > 0) ?? services[0];
}

function isOneImage(services: readonly ComposeService[]): boolean {
  return (
    new Set(services.map(({ build, image }) => JSON.stringify([build?.context, build?.dockerfile, build ? '' : image])))
      .size === 1
  );
}

/** Runs once and ends: migrations, seeds. */
function isJob({ name, restart }: ComposeService): boolean {
  return restart === 'no' || /migrat|^init|-init$|setup|seed/i.test(name);
}

/** "./web/" is "web". */
export function toFolder(context: string): string {
  const folder = context.replace(/^(?:\.\/)+/, '').replace(/\/+$/, '');
  return folder === '' ? '.' : folder;
}

function rejectSeveral(file: string, candidates: readonly ComposeService[], isBuilt: boolean): Finding {
  const each = candidates.slice(0, 6).map(({ name, build, image }) => {
    const of = build === undefined ? (image ?? '') : `built in ${toFolder(build.context)}`;
    return `${name} (${of})`.slice(0, 100);
  });
  const more = candidates.length > 6 ? `, and ${candidates.length - 6} more` : '';
  return {
    rule: 'compose/several-services',
    severity: isBuilt ? 'error' : 'warning',
    file,
    message: `This file starts ${candidates.length} services of the app itself: ${each.join(', ')}${more}. One app here is one image with one process that is reached from outside.`,
    fix: 'Choose one in moorage.yaml: set source.path to its folder (and build.dockerfile), or make one image that starts them all. Another one can be submitted as an app of its own, and both can know each other by URL.',
  };
}

function reportIgnored(file: string, others: readonly ComposeService[], app: ComposeService): Finding[] {
  const left = others.filter((each) => each !== app && !isAside(each)).map(({ name }) => name);
  if (left.length === 0) return [];
  const shown = left.slice(0, 8).join(', ');
  return [
    createWarning(
      'compose/not-run',
      file,
      `The service ${app.name} is the app. Not run here: ${shown}${left.length > 8 ? ', …' : ''}.`,
      'A proxy is not needed: the platform has one. If the app needs another service, reach it by its public URL, or start it in the same image.',
    ),
  ];
}
