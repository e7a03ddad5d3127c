// Plans the components of an app: the image of each, the ports of all, and what the status shows about them together.
import { authorLimits, type ReportedSettings } from '../../../crds/app-manifest.ts';
import type { Finding, Plan } from '../../../crds/hosted-app.ts';
import { languages } from '../../../crds/languages.ts';
import { isRunning } from '../../../crds/components.ts';
import { type ImageInput, nameComponent, rewriteFields } from '../components.ts';
import { type PipelineComponent, Rejected } from '../contract.ts';
import { assignPorts, findFreePort, type ImagePort } from '../ports.ts';
import { isReportable } from '../settings-report.ts';
import { keepHead } from '../text.ts';
import type { Tree } from '../tree.ts';
import { describeDevelopment, parseInstructions } from './dockerfile/text.ts';
import { planLastingData, type LastingData } from './lasting.ts';
import { limitOtherwise } from './plan.ts';
import { addPrefix } from './platforms/compose/volumes.ts';
import { defaultPort, type Recipe } from './recipe.ts';

/** An image with its plan. */
export interface PlannedImage extends ImageInput {
  readonly recipe: Recipe;
}

/** An image of an app that has several components. */
interface ComponentImage extends PlannedImage {
  readonly component: PipelineComponent;
}

/**
 * Plans the images of all components. All problems are reported together, each with the name of its component.
 *
 * @throws Rejected if any component cannot be planned or started, or two listen on the same port
 */
export function planComponents<Image extends ImageInput>(
  tree: Tree,
  components: readonly PipelineComponent[],
  located: readonly Image[],
  planImage: (image: Image) => Recipe,
): Recipe & { readonly images: readonly PlannedImage[] } {
  const errors = checkSharedCommands(components);
  const images = located.flatMap((image): ComponentImage[] => {
    const { component } = image;
    if (component === undefined) return [];
    try {
      const planned = { ...image, component, recipe: planImage(image) };
      errors.push(...checkCommand(tree, planned));
      return [planned];
    } catch (error) {
      if (!(error instanceof Rejected)) throw error;
      errors.push(...error.findings.map((each) => nameComponent(suggestCommand(each, component), component.name)));
      return [];
    }
  });
  rejectIfAny(errors);
  const moved = movePorts(tree, images, (image) => planImage(image as ComponentImage & Image));
  const known = new Map(moved.map((image) => [image.component.name, readImagePort(image)]));
  const { conflict } = assignPorts(
    components.filter(({ imageOf, port }) => port !== undefined || known.get(imageOf)?.port !== undefined),
    known,
  );
  rejectIfAny(conflict === undefined ? [] : [conflict]);
  return {
    plan: combinePlans(components, moved),
    findings: moved.flatMap(({ component, recipe }) =>
      recipe.findings.map((each) => nameComponent(each, component.name)),
    ),
    images: moved,
  };
}

function rejectIfAny(errors: readonly Finding[]): void {
  const [first, ...more] = errors;
  if (first !== undefined) throw new Rejected([first, ...more]);
}

// Commands: what each component starts is known, or the component is refused by name.

/** Two components that run the same image with its own command would be the same process twice. */
function checkSharedCommands(components: readonly PipelineComponent[]): Finding[] {
  const groups = Map.groupBy(
    components.filter(({ hasCommand }) => !hasCommand),
    ({ imageOf }) => imageOf,
  );
  return [...groups.values()].flatMap((same) => {
    const first = same.find(({ name, imageOf }) => name === imageOf) ?? same[0];
    return same
      .filter((each) => each !== first)
      .map(({ name, imageOf }) =>
        createCommandFinding(name, `It runs the image of ${imageOf} with the same command as ${first?.name ?? ''}.`),
      );
  });
}

/** Without a command, an image of a Dockerfile must name one, and a task must not start a server that never ends. */
function checkCommand(tree: Tree, { component, input, recipe }: ComponentImage): Finding[] {
  const { name, kind, hasCommand, build } = component;
  if (hasCommand) return [];
  if (recipe.dockerfile !== undefined)
    return isRunning(component)
      ? []
      : [createCommandFinding(name, `It is a ${kind}, and its planned image starts a server, which never ends.`)];
  const source = tree.getSubtree(input.path);
  const text = source.readFile(input.build.dockerfile) ?? '';
  const sign = build.target === undefined ? describeDevelopment(source, text) : undefined;
  if (sign?.isIdle !== true) return [];
  return [createCommandFinding(name, `Its ${input.build.dockerfile} ${sign.what}.`)];
}

function createCommandFinding(name: string, message: string): Finding {
  return nameComponent(
    {
      rule: 'components/no-command',
      severity: 'error',
      message,
      fix: 'Set run.command in moorage.yaml to what it runs, such as ["python", "worker.py"].',
    },
    name,
  );
}

/** Planners look for a server. Of a worker or a task, only its author knows what it runs. */
function suggestCommand(finding: Finding, { kind, hasCommand }: PipelineComponent): Finding {
  if (kind === 'web' || hasCommand || finding.rule === 'plan/unknown') return finding;
  const fix = `It is a ${kind}: set run.command in moorage.yaml to what it runs, such as ["python", "worker.py"].`;
  return { ...finding, fix: keepHead(`${fix} Or: ${finding.fix}`, 590) };
}

// Ports: planned images that listen on $PORT get ports that no other component has.

function movePorts(
  tree: Tree,
  images: readonly ComponentImage[],
  planAgain: (image: ComponentImage) => Recipe,
): ComponentImage[] {
  const taken = new Set<number>();
  const running = images.filter(({ component }) => isRunning(component));
  for (const image of running) for (const port of listFixedPorts(tree, image)) taken.add(port);
  const main = running.toSorted((one, other) => Number(other.component.isMain) - Number(one.component.isMain));
  const moved = new Map<string, ComponentImage>();
  for (const image of main) {
    const { component, input, recipe } = image;
    if (recipe.dockerfile === undefined || recipe.hasFixedPort === true || component.port !== undefined) continue;
    const wanted = recipe.plan.port ?? defaultPort;
    const port = findFreePort(taken, wanted);
    taken.add(port);
    if (port === wanted) continue;
    const again = { ...image, input: { ...input, port }, hasMoved: true as const };
    moved.set(component.name, { ...again, recipe: planAgain(again) });
  }
  return images.map((image) => moved.get(image.component.name) ?? image);
}

/** Ports that an image listens on, or may, and that cannot be moved. That of a web component may be the usual one. */
function listFixedPorts(tree: Tree, { component, input, recipe }: ComponentImage): readonly number[] {
  if (component.port !== undefined) return [component.port];
  if (recipe.dockerfile !== undefined)
    return recipe.hasFixedPort === true && recipe.plan.port !== undefined ? [recipe.plan.port] : [];
  const exposed = parseInstructions(tree.getSubtree(input.path).readFile(input.build.dockerfile) ?? '').flatMap(
    ([word, rest]) => (word === 'EXPOSE' ? [...rest.matchAll(/\b\d{1,5}\b/g)].map(([port]) => Number(port)) : []),
  );
  return exposed.length === 0 && component.kind === 'web' ? [defaultPort] : exposed;
}

/** The port of an image as far as its plan shows it. What a Dockerfile exposes is known once it is built. */
function readImagePort({ recipe }: ComponentImage): ImagePort {
  const { port } = recipe.plan;
  return recipe.dockerfile === undefined ? { isMovable: false } : { port, isMovable: recipe.hasFixedPort !== true };
}

/** Whether $PORT alone decides where a planned app listens, and not a variable that the image derives from it. */
export function isPortMovable({ plan: { port }, dockerfile, hasFixedPort }: Recipe): boolean {
  if (port === undefined || dockerfile === undefined || hasFixedPort === true) return false;
  const otherwise = dockerfile.replaceAll(new RegExp(`\\bPORT=${port}\\b|^EXPOSE ${port}$|^#.*$`, 'gm'), '');
  return !new RegExp(`\\b${port}\\b`).test(otherwise);
}

// The plan of the app as a whole.

const certainties = ['guessed', 'likely', 'certain'] as const;

/** The plan of the component at /, with a reason that lists all of them and the least certainty of any. */
function combinePlans(components: readonly PipelineComponent[], images: readonly ComponentImage[]): Plan {
  const main = components.find(({ isMain }) => isMain);
  const plan = (images.find(({ component }) => component.name === main?.imageOf) ?? images[0])?.recipe.plan;
  if (plan === undefined) throw new Error('no component builds an image');
  const { certainty: _, otherwise: __, ...shared } = plan;
  const mcp = plan.mcp ?? images.find(({ recipe }) => recipe.plan.mcp !== undefined)?.recipe.plan.mcp;
  const certainty = certainties.find((each) => images.some(({ recipe }) => recipe.plan.certainty === each));
  const doubt = images.find(({ recipe }) => recipe.plan.otherwise !== undefined);
  const otherwise =
    doubt === undefined
      ? undefined
      : `Component ${doubt.component.name}: ${rewriteFields(doubt.recipe.plan.otherwise ?? '', doubt.component.name)}`;
  return {
    ...shared,
    reason: keepHead(components.map((each) => `${describeComponent(each, images)}.`).join(' '), 390),
    ...(certainty === undefined ? {} : { certainty }),
    ...(mcp === undefined ? {} : { mcp }),
    ...limitOtherwise(otherwise),
  };
}

/** Describes a component in a few words, such as "web: Node, Next.js, in web". */
export function describeComponent({ name, kind, imageOf }: PipelineComponent, images: readonly PlannedImage[]): string {
  const found = images.find(({ component }) => component?.name === imageOf);
  const role = kind === 'web' ? '' : `, ${kind}`;
  if (found === undefined || imageOf !== name) return `${name}: image of ${imageOf}${role}`;
  const { strategy, framework } = found.recipe.plan;
  const what = strategy === 'dockerfile' ? found.input.build.dockerfile : languages[strategy].title;
  const { path } = found.input;
  return `${name}: ${[what, ...(framework === undefined ? [] : [framework])].join(', ')}${path === '.' ? '' : `, in ${path}`}${role}`;
}

// Data: a planned component gets a volume for the paths in which its code keeps data, as an app of one process does.

interface ComponentData<Image> {
  readonly settings: ReportedSettings | undefined;
  readonly images: readonly Image[];
  readonly findings: readonly Finding[];
}

/** Plans volumes for the data of running components, and adds them to the components of the settings. */
export function planComponentData<Image extends ImageInput & { readonly package?: string }>(
  tree: Tree,
  images: readonly Image[],
  settings: ReportedSettings | undefined,
): ComponentData<Image & { readonly data?: Pick<LastingData, 'links' | 'note'> }> {
  let current = settings;
  const findings: Finding[] = [];
  const located = images.map((image) => {
    if (image.component === undefined || current === undefined || !isRunning(image.component)) return image;
    // Paths in the code of a package are relative to its folder, which the plan of a workspace starts it in.
    if (image.package !== undefined) return image;
    const { name } = image.component;
    const view = toProcessSettings(current, name);
    const subtree = tree.getSubtree(image.input.path);
    const planned = planLastingData({ tree: subtree, input: image.input, settings: view });
    const extended = addVolumes(current, name, planned.settings?.run?.volumes ?? []);
    const pinned = [...image.input.pinned, 'run.volumes'];
    const {
      links,
      note,
      findings: lost,
    } = extended === undefined
      ? planLastingData({ tree: subtree, input: { ...image.input, pinned }, settings: view })
      : planned;
    current = extended ?? current;
    findings.push(...lost.map((each) => nameComponent(each, name)));
    return { ...image, data: { links: extended === undefined ? [] : links, note } };
  });
  return { settings: current, images: located, findings };
}

/** The settings as those of an app of one process that is this component. */
function toProcessSettings({ components: list = [], ...settings }: ReportedSettings, name: string): ReportedSettings {
  const { env = [], volumes = [] } = list.find((each) => each.name === name) ?? {};
  const shared = (settings.run?.env ?? []).filter((each) => !env.some((own) => own.name === each.name));
  return { ...settings, run: { ...settings.run, env: [...shared, ...env], volumes } };
}

type Volumes = NonNullable<NonNullable<ReportedSettings['run']>['volumes']>;

/**
 * The settings with these volumes of a component. A volume of the same name would be shared with another component, so one
 * that is added gets the name of its own. Undefined if an author may not have that many.
 */
function addVolumes(settings: ReportedSettings, name: string, volumes: Volumes): ReportedSettings | undefined {
  const list = settings.components ?? [];
  const before = list.find((each) => each.name === name)?.volumes ?? [];
  if (volumes.length === before.length) return settings;
  const others = new Set(list.flatMap((each) => (each.volumes ?? []).map((volume) => volume.name)));
  const named = volumes.map((volume) => ({
    ...volume,
    name: others.has(volume.name) ? addPrefix(name, volume.name) : volume.name,
  }));
  if (new Set([...others, ...named.map((volume) => volume.name)]).size > authorLimits.volumes.count) return undefined;
  const components = list.map((each) => (each.name === name ? { ...each, volumes: named } : each));
  const extended = { ...settings, components };
  return isReportable(extended) ? extended : undefined;
}
