// Resolves the components of an app as far as a pipeline builds them, and words findings so that they name the component and
// its fields.
import { posix } from 'node:path';
import { manifestFile, type ReportedSettings } from '../../crds/app-manifest.ts';
import { isMain, isRunning, listProcessFields, onlyComponent } from '../../crds/components.ts';
import type { Finding, HostedAppSpec } from '../../crds/hosted-app.ts';
import { formatComponentTag } from '../../crds/names.ts';
import { omitUndefined } from '../../lib/values.ts';
import type { PipelineComponent, PipelineInput } from './contract.ts';
import { keepHead } from './text.ts';

/** A component as a HostedApp or moorage.yaml lists it. */
type ListedComponent = HostedAppSpec['components'][number] | NonNullable<ReportedSettings['components']>[number];

/** Reduces components to what a pipeline builds them from. */
export function toPipelineComponents(list: readonly ListedComponent[]): PipelineComponent[] {
  return list.map(({ name, kind, path, build = {}, image, command = [], port, route, mcp }) => {
    const { strategy = 'auto', dockerfile = 'Dockerfile', target, args = [], env = [] } = build;
    return omitUndefined({
      ...{ name, kind, path, port },
      build: omitUndefined({ strategy, dockerfile, target, args, env }),
      imageOf: image ?? name,
      hasCommand: command.length > 0,
      isMain: isMain({ kind, route }),
      mcp: mcp && toMcp(mcp),
    });
  });
}

function toMcp({
  transport,
  command = [],
}: NonNullable<ListedComponent['mcp']>): NonNullable<PipelineComponent['mcp']> {
  return omitUndefined({ transport, command: [...command] });
}

/** The components that the HostedApp lists, otherwise those of the repository; none for an app of one process. */
export function resolveComponents(
  { components, pinned }: Pick<PipelineInput, 'components' | 'pinned'>,
  settings: ReportedSettings | undefined,
): readonly PipelineComponent[] {
  if (components !== undefined || pinned.includes('components')) return components ?? [];
  return toPipelineComponents(settings?.components ?? []);
}

/**
 * Rejects a HostedApp that describes one process, if the repository lists several: one of the two must give way. If the
 * HostedApp lists several, it wins, and what moorage.yaml says about one process is reported.
 */
export function checkOneProcess(input: PipelineInput, settings: ReportedSettings | undefined): Finding[] {
  if (input.components !== undefined) return warnAboutOneProcess(settings);
  const isFromFile = !input.pinned.includes('components');
  if (!isFromFile || (settings?.components ?? []).length === 0) return [];
  const fields = listOwnProcessFields(input);
  if (fields.length === 0) return [];
  const names = fields.map((field) => field.replace('run.', ''));
  // A change of the others starts a new pipeline by itself.
  const isRepeated = (input.processFields ?? []).length > 0;
  return [
    {
      rule: 'components/one-process',
      severity: 'error',
      message: `The repository lists components, but the HostedApp sets fields that describe one process: ${fields.join(', ')}.`,
      fix: `Remove ${fields.join(', ')} from the HostedApp (or from the submission) and set ${names.join(', ')} of each component that needs it; or set components of the HostedApp to [] to run one process.${isRepeated ? ' Then submit the app again.' : ''}`,
    },
  ];
}

function warnAboutOneProcess(settings: ReportedSettings | undefined): Finding[] {
  const { platform, ...own } = settings ?? {};
  const fields = listProcessFields(own).filter((field) => platform?.fields.includes(field) !== true);
  if (fields.length === 0) return [];
  return [
    {
      rule: 'components/one-process',
      severity: 'warning',
      file: manifestFile,
      message: `The HostedApp lists components, so ${fields.join(', ')} of this file ${fields.length === 1 ? 'has' : 'have'} no effect.`,
      fix: 'Remove them from the file, or ask the operator of the installation to set them in each component.',
    },
  ];
}

/**
 * Reports tasks and cron components that call others: each runs in its own pod, a task even before the others have started.
 * A command that does so cannot work. A variable may be there for the others alone.
 */
export function checkTaskCalls(settings: ReportedSettings | undefined): Finding[] {
  const { components = [], run: { env: shared = [] } = {} } = settings ?? {};
  const names = components.filter(isRunning).map(({ name }) => name);
  return components
    .filter((each) => !isRunning(each))
    .flatMap((each) => {
      const call = findCall(each, shared, names);
      return call === undefined ? [] : [{ ...reportTaskCall(each, call), file: nameComponentsFile(settings) }];
    });
}

/** Refuses the address of a subdomain that no component has, such as \${{app.api.url}}: it would stay as written. */
export function checkSubdomains(settings: ReportedSettings | undefined): Finding[] {
  const { components = [] } = settings ?? {};
  const known = new Set(components.map(({ route }) => route?.subdomain));
  const named = [
    ...JSON.stringify(settings ?? {}).matchAll(/\$\{\{ {0,3}app\.([a-z][-a-z0-9]{0,14})\.(?:url|host) {0,3}\}\}/g),
  ];
  const missing = named.find(([, subdomain = '']) => !known.has(subdomain));
  if (missing === undefined) return [];
  const [reference, subdomain = ''] = missing;
  return [
    {
      rule: 'components/no-subdomain',
      severity: 'error',
      file: nameComponentsFile(settings),
      message: `A value has ${reference}, and no component has the subdomain ${subdomain}.`,
      fix: `Set route: {subdomain: ${subdomain}} of a component, or use \${{app.url}} with the path of the component.`,
    },
  ];
}

/** The first of the files that list the components. */
function nameComponentsFile({ platform }: ReportedSettings = {}): string {
  return (platform?.fields.includes('components') === true ? platform.file.split(', ')[0] : undefined) ?? manifestFile;
}

/** A place at which a component names another one that it cannot reach. */
interface TaskCall {
  /** As a clause, such as "its command calls". */
  readonly what: string;
  readonly other: string;
  readonly severity: Finding['severity'];
}

type ReportedComponent = NonNullable<ReportedSettings['components']>[number];

function findCall(
  { command = [], env = [], dependsOn = [] }: ReportedComponent,
  shared: readonly { readonly name: string; readonly value: string }[],
  names: readonly string[],
): TaskCall | undefined {
  const variables = [...env, ...shared.filter(({ name }) => !env.some((own) => own.name === name))];
  const texts = [
    ...command.map((value) => ({ what: 'its command calls', value, severity: 'error' as const })),
    ...variables.map(({ name, value }) => ({
      what: `its variable ${name} names`,
      value,
      severity: 'warning' as const,
    })),
  ];
  const [call] = texts.flatMap(({ value, ...rest }) =>
    names.filter((other) => isCalled(other, value)).map((other) => ({ ...rest, other })),
  );
  const [waited] = dependsOn;
  if (call !== undefined || waited === undefined) return call;
  return { what: 'its dependsOn has no effect and names', other: waited, severity: 'warning' };
}

function reportTaskCall({ name, kind }: ReportedComponent, { what, other, severity }: TaskCall): Finding {
  const when =
    kind === 'task'
      ? 'A task runs in its own pod, before the others of its release start'
      : 'A cron component runs in its own pod, also while the app sleeps';
  return {
    rule: 'components/task-alone',
    severity,
    message: `Component ${name}: ${what} ${other}. ${when}, and cannot reach them.`,
    fix: `Let ${name} do the work itself, with the code of ${other} (image: ${other}) and the services of the app; or do it in a worker, which reaches the others by name.`,
  };
}

/** Whether a text has the address of a component: a URL, or its name with a port. */
function isCalled(name: string, text: string): boolean {
  return new RegExp(
    `(?:^|[\\s"'=,])(?:[a-z][a-z0-9+.-]{0,20}://(?:[^\\s/@]{0,200}@)?)${name}(?![\\w.-])|(?:^|[\\s"'=,@])${name}:\\d`,
    'i',
  ).test(text);
}

/** Lists the fields of the HostedApp that describe one process. */
export function listOwnProcessFields({ build, port, hasCommand, mcp, processFields = [] }: PipelineInput): string[] {
  const fields = listProcessFields({ build, run: { port, command: hasCommand ? ['set'] : [] }, mcp });
  return [...new Set([...fields, ...processFields])].sort().reverse();
}

/** An image to build, with the input that it is planned and built from. */
export interface ImageInput {
  /** Absent for an app of one process. */
  readonly component?: PipelineComponent;
  readonly input: PipelineInput;
  /** The port of the input is none that someone has set: it keeps clear of the other components. */
  readonly hasMoved?: true;
}

/** Lists the images to build: one for an app of one process, otherwise one for each component that runs its own. */
export function listImages(input: PipelineInput): readonly ImageInput[] {
  const { components = [] } = input;
  if (components.length === 0) return [{ input }];
  return listImageOwners(components).map((component) => ({ component, input: toImageInput(input, component) }));
}

export function listImageOwners(components: readonly PipelineComponent[]): readonly PipelineComponent[] {
  return components.filter(({ name, imageOf }) => imageOf === name);
}

function toImageInput(input: PipelineInput, component: PipelineComponent): PipelineInput {
  const { components = [], port: _, ...shared } = input;
  const { name, kind, path, port, build } = component;
  const isOwn = (variable: { readonly name: string }): boolean => build.env.some((own) => own.name === variable.name);
  return {
    ...shared,
    ...(port === undefined ? {} : { port }),
    path: posix.join(input.path, path).replace(/(?!^)\/$/, ''),
    build: { ...build, env: [...build.env, ...input.build.env.filter((variable) => !isOwn(variable))] },
    // An image needs no start command only if everything that runs it brings one.
    hasCommand: components.filter(({ imageOf }) => imageOf === name).every(({ hasCommand }) => hasCommand),
    // Nothing outside reaches a worker or a task, so none is served as an MCP server.
    mcp: kind === 'web' ? (component.mcp ?? { command: [] }) : { transport: 'none', command: [] },
    tag: formatComponentTag(input.tag, name),
    ...(input.cacheBytes === undefined
      ? {}
      : { cacheBytes: Math.ceil(input.cacheBytes / listImageOwners(components).length) }),
  };
}

/** Name of an image in notes: that of its component. */
export function nameImage(component: PipelineComponent | undefined): string {
  return component?.name ?? onlyComponent;
}

/**
 * Words a text about an app of one process for one of its components: run.command becomes components[api].command. A text
 * about an app of one process stays.
 */
export function rewriteFields(text: string, component: string | undefined): string {
  if (component === undefined) return text;
  const owner = `components[${component}]`;
  return text
    .replaceAll(/\brun: \{volumes: (\[[^\]]*\])\}/g, `volumes: $1 in ${owner}`)
    .replaceAll(/(?<![\w.\]])run\.(command|port|healthPath|volumes|env)\b/g, `${owner}.$1`)
    .replaceAll(/(?<![\w.\]])build\.(strategy|dockerfile|target|args|env)\b/g, `${owner}.build.$1`)
    .replaceAll(/(?<![\w.\]])mcp\.(transport|command)\b/g, `${owner}.mcp.$1`)
    .replaceAll(/(?<![\w.\]])source\.path\b/g, `${owner}.path`);
}

/** Makes a finding name its component. */
export function nameComponent(finding: Finding, component: string | undefined): Finding {
  if (component === undefined) return finding;
  return {
    ...finding,
    message: keepHead(`Component ${component}: ${rewriteFields(finding.message, component)}`, 2_000),
    fix: keepHead(rewriteFields(finding.fix, component), 600),
  };
}
