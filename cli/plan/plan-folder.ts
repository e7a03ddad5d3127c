// Plans a folder on this machine as the review of a submitted repository would, and prints the plan with everything that
// the app would get.
import { spawnSync } from 'node:child_process';
import type { ReportedSettings } from '../../crds/app-manifest.ts';
import { askedSecret } from '../../crds/values.ts';
import type { Finding, Plan } from '../../crds/hosted-app.ts';
import {
  pipelineInput,
  type PipelineComponent,
  type PipelineInput,
  Rejected,
} from '../../controller/pipeline/contract.ts';
import { readManifest } from '../../controller/pipeline/app-manifest.ts';
import { rewriteFields } from '../../controller/pipeline/components.ts';
import { assignPorts, type ImagePort } from '../../controller/pipeline/ports.ts';
import { describeComponent, type PlannedImage } from '../../controller/pipeline/plan/components.ts';
import { locateApp, planApp } from '../../controller/pipeline/plan/repository.ts';
import { dockerfile as dockerfileRule, sourcePath } from '../../controller/pipeline/review/rules/files.ts';
import { readDiskTree, type Tree } from '../../controller/pipeline/tree.ts';
import type { PackageRegistry } from '../../lib/repository.ts';
import { formatFinding } from '../../controller/pipeline/message.ts';

export interface FolderPlan {
  readonly refused: boolean;
  /** Folder of the app in the repository. */
  readonly path: string;
  readonly findings: readonly Finding[];
  readonly plan?: Plan;
  /** Text of the Dockerfile that Moorage wrote; absent when the author's own is built. */
  readonly dockerfile?: string;
  /** Path of the author's Dockerfile, when that is built. */
  readonly file?: string;
  /** Components of the app, if it has several. */
  readonly components?: readonly PlannedComponent[];
  /** Settings of moorage.yaml and of files for other platforms, which the app would run with. */
  readonly settings?: ReportedSettings;
}

/** A component, what it is built from, and how it is connected to the others. */
export interface PlannedComponent {
  readonly name: string;
  /** In a few words, such as "web: Node, Next.js, in web". */
  readonly summary: string;
  /** What reaches it, and what it reaches or waits for. */
  readonly wiring: readonly string[];
  /** Absent if it runs the image of another component. */
  readonly plan?: Plan;
  readonly dockerfile?: string;
  readonly file?: string;
}

/** Folders that exist on a machine and never in a commit. */
const untracked: ReadonlySet<string> = new Set(['.git', 'node_modules', '.venv', '__pycache__']);

/** The input for a submission without any settings. */
function createDefaultInput(): PipelineInput {
  return pipelineInput.parse({
    app: 'plan',
    repo: 'https://localhost/plan/plan',
    commit: '0'.repeat(40),
    path: '.',
    build: { strategy: 'auto', dockerfile: 'Dockerfile', args: [], env: [] },
    image: 'localhost/plan',
    push: 'localhost/plan',
    limits: { repositoryBytes: 1, files: 1, fileBytes: 1 },
  });
}

/** Plans a folder. Never throws because of its contents. `registry`: it is the content of a package published there. */
export function planFolder(folder: string, registry?: PackageRegistry): FolderPlan {
  const origin = registry === undefined ? { skipped: untracked, date: readCommitDate(folder) } : { registry };
  const tree = readDiskTree(folder, origin);
  const app = locateApp(createDefaultInput(), tree);
  const { input, settings, platform } = app;
  const findings = [...readManifest(tree).findings, ...runChecks(tree, folder, input), ...platform];
  const shared = { path: input.path, ...(settings === undefined ? {} : { settings }) };
  if (findings.some((each) => each.severity === 'error')) return { refused: true, ...shared, findings };
  try {
    const { images, findings: warnings, plan } = planApp(tree, app);
    const common = { refused: false, ...shared, findings: [...findings, ...warnings], plan };
    const [only] = images;
    return only !== undefined && only.component === undefined
      ? { ...common, ...showImage(only) }
      : { ...common, components: planWiring(input.components ?? [], images, settings) };
  } catch (error) {
    if (!(error instanceof Rejected)) throw error;
    return { refused: true, ...shared, findings: [...findings, ...error.findings] };
  }
}

/** The Dockerfile that is built: the text of a planned one, or the path of the author's. */
function showImage({ input, recipe: { dockerfile } }: PlannedImage): Pick<FolderPlan, 'dockerfile' | 'file'> {
  return dockerfile === undefined ? { file: input.build.dockerfile } : { dockerfile };
}

function planWiring(
  components: readonly PipelineComponent[],
  images: readonly PlannedImage[],
  settings: ReportedSettings | undefined,
): PlannedComponent[] {
  const known = images.map(({ component, recipe }): [string, ImagePort] => {
    const isMovable = recipe.dockerfile !== undefined && recipe.hasFixedPort !== true;
    return [component?.name ?? '', { port: recipe.plan.port, isMovable }];
  });
  // What a Dockerfile exposes is known only once it is built.
  const shown = new Map(known.filter(([, { port }]) => port !== undefined));
  const { ports } = assignPorts(
    components.filter(({ port, imageOf }) => port !== undefined || shown.has(imageOf)),
    shown,
  );
  return components.map((component) => {
    const image = images.find((each) => each.component?.name === component.name);
    return {
      name: component.name,
      summary: describeComponent(component, images),
      wiring: describeWiring(component, ports, settings),
      ...(image === undefined ? {} : { plan: image.recipe.plan, ...showImage(image) }),
    };
  });
}

function describeWiring(
  { name, kind }: PipelineComponent,
  ports: ReadonlyMap<string, number>,
  settings: ReportedSettings | undefined,
): string[] {
  const own = settings?.components?.find((each) => each.name === name);
  const { dependsOn = [], command = [] } = own ?? {};
  const port = ports.get(name);
  const named = [...ports.keys()].filter((other) => other !== name && isHostNamed(settings, name, other));
  return [
    describeRole(kind, own),
    ...(port === undefined ? [] : [`others reach it at http://${name}:${port}`]),
    ...(dependsOn.length === 0 ? [] : [`starts after ${dependsOn.join(', ')}`]),
    ...(named.length === 0 ? [] : [`its variables name ${named.join(', ')}`]),
    ...(command.length === 0 ? [] : [`runs ${command.join(' ')}`]),
  ];
}

type ListedComponent = NonNullable<ReportedSettings['components']>[number];

/** Describes when a component runs, and what it answers. */
function describeRole(kind: PipelineComponent['kind'], own: ListedComponent | undefined): string {
  switch (kind) {
    case 'web':
      return `answers requests below ${describeRoute(own?.route ?? { path: '/', stripPath: false })}`;
    case 'worker':
      return 'runs as long as the app does';
    case 'task':
      return 'runs once per release, before it serves';
    case 'cron':
      return `runs at ${own?.schedule ?? ''} (UTC)`;
  }
}

function describeRoute(route: NonNullable<ListedComponent['route']>): string {
  const { path, subdomain, stripPath, morePaths = [] } = route;
  const place = subdomain === undefined ? '' : ` of <app>--${subdomain}`;
  const more = morePaths.length === 0 ? '' : `, and below ${morePaths.join(', ')}`;
  return `${path}${place}${stripPath ? ', which is removed' : ''}${more}`;
}

/** Whether a variable of a component has the host name of another one in an address. */
function isHostNamed(settings: ReportedSettings | undefined, name: string, other: string): boolean {
  const own = settings?.components?.find((each) => each.name === name)?.env ?? [];
  const address = new RegExp(`(?:^|//|@)${other}(?:[:/]|$)`);
  return own.some(({ value }) => address.test(value));
}

/** Reads the day of the last commit, as a clone would have it: the times of files are those of the checkout. */
function readCommitDate(folder: string): Date | undefined {
  const { status, stdout } = spawnSync('git', ['-C', folder, 'log', '-1', '--format=%ct'], {
    encoding: 'utf8',
    timeout: 5_000,
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  const seconds = Number(stdout.trim());
  return status === 0 && seconds > 0 ? new Date(seconds * 1000) : undefined;
}

/** Runs the review rules that a plan depends on; the others need programs that only a pipeline has. */
function runChecks(tree: Tree, folder: string, input: PipelineInput): Finding[] {
  const context = { tree, source: folder, notes: folder, input, submodules: [] };
  return [sourcePath, dockerfileRule].flatMap((rule) => {
    const result = rule.check(context);
    return result instanceof Promise ? [] : [...result];
  });
}

/** One JSON object, for a program. A rejection has no strategy. */
export function formatJson({ plan, ...planned }: FolderPlan): string {
  const { refused, path, findings, settings, dockerfile, file, components } = planned;
  return `${JSON.stringify({ refused, ...plan, path, findings, settings, components, dockerfile, file }, null, 2)}\n`;
}

/** Plan, reasons and warnings, then the Dockerfile, for a person. */
export function formatText(planned: FolderPlan): string {
  const { plan, path, findings, dockerfile, file, settings, components } = planned;
  const findingLines = findings.map((each: Finding) => formatFinding(each));
  if (components !== undefined)
    return [
      ...components.flatMap(formatComponent),
      ...formatSettings(settings),
      ...findingLines,
      ...components.flatMap((each) => ['', ...formatDockerfile(each)]),
      '',
    ].join('\n');
  if (plan === undefined) return ['This cannot be planned.', ...findingLines, ''].join('\n');
  const strategy = plan.framework === undefined ? plan.strategy : `${plan.strategy}, ${plan.framework}`;
  return [
    `plan: ${strategy}`,
    `why:  ${plan.reason}`,
    ...(plan.certainty === undefined ? [] : [`sure: ${describeCertainty[plan.certainty]}`]),
    ...(plan.otherwise === undefined ? [] : [`else: ${plan.otherwise}`]),
    ...(path === '.' ? [] : [`path: ${path}`]),
    ...(plan.port === undefined ? [] : [`port: ${plan.port}`]),
    ...formatSettings(settings),
    ...findingLines,
    '',
    dockerfile ?? `The Dockerfile of the repository is built: ${file ?? ''}`,
    '',
  ].join('\n');
}

/** What a component is, why it is planned that way, and what it is connected to. */
function formatComponent({ name, summary, wiring, plan }: PlannedComponent): string[] {
  const certainty = plan?.certainty;
  return [
    summary,
    ...wiring.map((each) => `  ${each}`),
    ...(plan === undefined ? [] : [`  why:  ${rewriteFields(plan.reason, name)}`]),
    ...(certainty === undefined ? [] : [`  sure: ${describeCertainty[certainty]}`]),
    ...(plan?.otherwise === undefined ? [] : [`  else: ${rewriteFields(plan.otherwise, name)}`]),
  ];
}

function formatDockerfile({ name, plan, dockerfile, file }: PlannedComponent): string[] {
  if (plan === undefined) return [];
  return [`# ${name}`, dockerfile ?? `The Dockerfile of the repository is built: ${file ?? ''}`];
}

const describeCertainty = {
  certain: 'certain, since a file states how the app starts',
  likely: 'likely, since the code shows it',
  guessed: 'a guess, since nothing contradicts it',
} as const;

/** Lists what the app runs with besides its image; nothing for what it does not have. */
function formatSettings(settings: ReportedSettings | undefined): string[] {
  const { services = [], run = {}, platform } = settings ?? {};
  const { volumes = [], env = [], command = [], healthPath } = run;
  const origin = platform === undefined ? [] : [`from: ${platform.file} (${platform.fields.join(', ')})`];
  return [
    ...services.map(
      ({ name, type, version }) => `service:  ${name} (${type}${version === undefined ? '' : ` ${version}`})`,
    ),
    ...volumes.map(({ name, path, size }) => `volume:   ${path} (${name}, ${size})`),
    ...env.map(({ name, value }) => `variable: ${name}=${value === askedSecret ? '(generated)' : value}`),
    ...(command.length === 0 ? [] : [`command:  ${command.join(' ')}`]),
    ...(healthPath === undefined ? [] : [`health:   ${healthPath}`]),
    ...origin,
  ];
}
