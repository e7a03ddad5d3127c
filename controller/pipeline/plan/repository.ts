// Plans a repository: reads moorage.yaml, finds the app's folder or those of its components, plans the builds, and writes the
// files for the build stage.
import { mkdir, readFile, realpath, writeFile } from 'node:fs/promises';
import { join, posix } from 'node:path';
import type { ReportedSettings } from '../../../crds/app-manifest.ts';
import type { Finding, Plan } from '../../../crds/hosted-app.ts';
import { type WorkspacePaths, type PipelineComponent, type PipelineInput, Rejected } from '../contract.ts';
import { type PlanNotes, writeNotes } from '../handover.ts';
import { type MergedInput, mergeManifest } from '../app-manifest.ts';
import { type ImageInput, listImages, nameImage } from '../components.ts';
import { isReportable } from '../settings-report.ts';
import { keepHead } from '../text.ts';
import type { Tree } from '../tree.ts';
import { isPortMovable, planComponentData, planComponents, type PlannedImage } from './components.ts';
import { findDockerfile, type FoundDockerfile } from './dockerfile/find.ts';
import { findAppFolder } from './folder.ts';
import { addLinks, planLastingData, type LastingData } from './lasting.ts';
import { findNamedPaths } from './named-paths.ts';
import { isWorkspacePackage } from './node/workspace.ts';
import { limitOtherwise, makePlan } from './plan.ts';
import type { Recipe } from './recipe.ts';

/** Where an image of the app is built from. */
export interface LocatedImage extends ImageInput {
  /** Names the app's folder if it is not the expected one. */
  readonly note?: string;
  /** How sure the choice of a Dockerfile is, if there are several, or its name says little. */
  readonly dockerfileChoice?: Pick<Plan, 'certainty' | 'otherwise'>;
  /** Reason why it cannot be planned, regardless of the folder's files. */
  readonly problem?: Finding;
  readonly warnings: readonly Finding[];
  /** Folder of the package of a workspace that it is. */
  readonly package?: string;
  /** Data that a planned image links to a volume, and the sentence about it. */
  readonly data?: Pick<LastingData, 'links' | 'note'>;
}

export interface LocatedApp {
  /** The stages' input, with the folder and the Dockerfiles that were found. */
  readonly input: PipelineInput;
  /** Settings from moorage.yaml and, below them, from files for other platforms. */
  readonly settings: ReportedSettings | undefined;
  /** Findings about files for other platforms. */
  readonly platform: readonly Finding[];
  /** One for an app of one process, otherwise one for each component that builds its own. */
  readonly images: readonly LocatedImage[];
}

/** Finds the app in a repository's tree, and what keeps its data. */
export function locateApp(baseInput: PipelineInput, tree: Tree): LocatedApp {
  const merged = mergeManifest(baseInput, tree);
  if ((merged.input.components ?? []).length > 0) return locateComponents(baseInput, merged, tree);
  const { settings, findings: platform } = merged;
  const image = locateFolder(merged, tree, isPathChosen(baseInput, settings));
  if (image.problem !== undefined) return { input: image.input, settings, platform, images: [image] };
  const lasting = planLastingData({ tree: tree.getSubtree(image.input.path), input: image.input, settings });
  return {
    input: image.input,
    settings: lasting.settings,
    platform: [...platform, ...lasting.findings],
    images: [{ ...image, data: { links: lasting.links, note: lasting.note } }],
  };
}

function locateFolder({ input }: MergedInput, tree: Tree, isChosen: boolean): LocatedImage {
  if (tree.registry !== undefined) return { input, warnings: [] };
  const authoredBuild = findAuthoredBuild(tree, input, 'certain');
  if (authoredBuild !== undefined) return { ...authoredBuild, warnings: [] };
  const { path, problem, warnings } = findAppFolder(tree, input, isChosen);
  const last = problem === undefined && path === input.path ? findUncertainBuild(tree, input) : undefined;
  if (last !== undefined) return { ...last, warnings };
  return {
    input: { ...input, path },
    warnings,
    ...(problem === undefined ? {} : { problem }),
    ...(path === input.path ? {} : { note: `The app is in the folder ${path}, the only one that contains an app.` }),
  };
}

/** Locates the image of each component. Its folder is the one that its path names, so none is searched. */
function locateComponents(baseInput: PipelineInput, merged: MergedInput, tree: Tree): LocatedApp {
  const images = listImages(merged.input).map((image): LocatedImage => {
    const packaged = toPackageImage(tree, image);
    if (packaged !== undefined) return packaged;
    const found = findAuthoredBuild(tree, image.input, 'certain') ?? findUncertainBuild(tree, image.input);
    return { ...image, ...found, warnings: [] };
  });
  // An operator of the installation who lists components also says what they keep.
  const isOwn = baseInput.components !== undefined;
  const lasting = isOwn
    ? { settings: merged.settings, images, findings: [] }
    : planComponentData(tree, images, merged.settings);
  const components = (merged.input.components ?? []).map((component) => {
    const located = images.find((image) => image.component?.name === component.name);
    const { dockerfile } = (located?.input ?? component).build;
    return { ...component, build: { ...component.build, dockerfile } };
  });
  return {
    input: { ...merged.input, components },
    settings: lasting.settings,
    platform: [...merged.findings, ...lasting.findings],
    images: lasting.images,
  };
}

/** A package of a workspace is planned from the root, which has the lock file and the packages that it depends on. */
function toPackageImage(tree: Tree, image: ImageInput): LocatedImage | undefined {
  const { path, build } = image.input;
  const isPlanned = ['auto', 'node'].includes(build.strategy) && build.dockerfile === 'Dockerfile';
  if (!isPlanned || !isWorkspacePackage(tree, path)) return undefined;
  return { ...image, input: { ...image.input, path: '.' }, package: path, warnings: [] };
}

/** Returns whether the author chose a folder, if only the root itself. Files of other platforms choose none there. */
function isPathChosen({ pinned }: PipelineInput, settings: ReportedSettings | undefined): boolean {
  return pinned.includes('source.path') || settings?.source?.path !== undefined;
}

/** The plan of an app, with the images to build. */
export interface AppPlan extends Recipe {
  readonly images: readonly PlannedImage[];
}

/** @throws Rejected if no plan matches, or something is missing */
export function planApp(tree: Tree, { input, images }: LocatedApp): AppPlan {
  const [first] = images;
  if (first !== undefined && first.component === undefined) {
    const recipe = planImage(tree, first);
    return { ...recipe, images: [{ input: first.input, recipe }] };
  }
  return planComponents(tree, input.components ?? [], images, (image) => planImage(tree, image));
}

function planImage(tree: Tree, image: LocatedImage): Recipe {
  const { input, note, problem, warnings, data, dockerfileChoice, hasMoved } = image;
  if (problem !== undefined) throw new Rejected([problem]);
  const below = tree.getSubtree(input.path);
  const recipe = addLinks(makePlan(below, { ...input, package: image.package, hasMoved }), data?.links ?? []);
  const paths = findNamedPaths(below);
  const sentences = [note, recipe.plan.reason, data?.note].filter((each) => each !== undefined);
  const reason = keepHead(sentences.join(' '), 390);
  const choice = recipe.plan.strategy === 'dockerfile' && recipe.plan.certainty === 'certain' ? dockerfileChoice : {};
  const plan = { ...recipe.plan, reason, ...choice, ...(paths.length === 0 ? {} : { paths }) };
  return { ...recipe, plan, findings: [...warnings, ...recipe.findings] };
}

/**
 * An MCP server is for agents, so they can use its tools unless someone has said otherwise. Of several components, the one
 * at / comes first.
 */
export function offerTools(
  settings: ReportedSettings | undefined,
  { images }: Pick<AppPlan, 'images'>,
): ReportedSettings | undefined {
  const { platform, ...own }: Partial<ReportedSettings> = settings ?? {};
  if (own.agents?.enabled !== undefined) return settings;
  const offers = images
    .toSorted((one, other) => Number(other.component?.isMain ?? false) - Number(one.component?.isMain ?? false))
    .flatMap(({ component, recipe: { plan } }) => {
      if (plan.mcp === undefined) return [];
      const path = findPublicPath(settings, component, plan.mcp.bridged ? '/mcp' : plan.mcp.path);
      return path === undefined ? [] : [{ file: plan.mcp.file, path }];
    });
  const [offer] = offers;
  if (offer === undefined) return settings;
  const path = offer.path === '/mcp' ? {} : { mcp: offer.path };
  const added = { ...own, agents: { enabled: true, ...path, ...own.agents } };
  const file = [platform?.file, offer.file].filter((each) => each !== undefined).join(', ');
  const fields = [...(platform?.fields ?? []), 'agents.enabled', ...(path.mcp === undefined ? [] : ['agents.mcp'])];
  const offered = { ...added, platform: { file: file.slice(0, 200), fields: fields.slice(-32) } };
  return isReportable(offered) ? offered : settings;
}

/** Path at the app's host name at which a path of a component is reached; undefined if it is not. */
function findPublicPath(
  settings: ReportedSettings | undefined,
  component: PipelineComponent | undefined,
  path: string,
): string | undefined {
  if (component === undefined || component.isMain) return path;
  // Those that the HostedApp lists are not among the settings, and its operator decides about agents, too.
  const route = settings?.components?.find(({ name }) => name === component.name)?.route;
  if (route?.path === undefined || route.subdomain !== undefined) return undefined;
  if (route.stripPath) return `${route.path}${path}`;
  const isReached = [route.path, ...(route.morePaths ?? [])].some((own) => path === own || path.startsWith(`${own}/`));
  return isReached ? path : undefined;
}

type AuthoredBuild = Pick<LocatedImage, 'input' | 'note' | 'dockerfileChoice'>;

/** Finds an author's Dockerfile that is not at the root of source.path. */
function findAuthoredBuild(tree: Tree, input: PipelineInput, certainty: 'certain' | 'any'): AuthoredBuild | undefined {
  const { strategy, dockerfile } = input.build;
  const below = tree.getSubtree(input.path);
  if (dockerfile !== 'Dockerfile' || (strategy !== 'auto' && strategy !== 'dockerfile')) return undefined;
  const found = below.getEntry(dockerfile) === undefined ? findDockerfile(below) : undefined;
  return found === undefined || (certainty === 'certain' && !found.certain) ? undefined : toAuthoredBuild(input, found);
}

function toAuthoredBuild(input: PipelineInput, { path, others, certain }: FoundDockerfile): AuthoredBuild {
  const note =
    others.length === 0 ? undefined : `Of ${[path, ...others].slice(0, 4).join(', ')} the first names the app best.`;
  return {
    input: { ...input, build: { ...input.build, dockerfile: path } },
    ...(note === undefined ? {} : { note }),
    ...(certain && others.length === 0 ? {} : { dockerfileChoice: describeChoice(others, certain) }),
  };
}

function describeChoice(others: readonly string[], isCertain: boolean): Pick<Plan, 'certainty' | 'otherwise'> {
  const [other] = others;
  const otherwise =
    other === undefined
      ? undefined
      : `Another Dockerfile is ${other}: set build.dockerfile in moorage.yaml to build it.`;
  return { certainty: isCertain ? 'likely' : 'guessed', ...limitOtherwise(otherwise) };
}

/** A Dockerfile with an unusual name counts only if nothing else can be planned. */
function findUncertainBuild(tree: Tree, input: PipelineInput): AuthoredBuild | undefined {
  try {
    makePlan(tree.getSubtree(input.path), input);
    return undefined;
  } catch (error) {
    if (!(error instanceof Rejected)) throw error;
    return findAuthoredBuild(tree, input, 'any');
  }
}

/** Writes plan.json and, for planned and extended images, a Dockerfile and its Dockerfile.dockerignore to the notes folder. */
export async function writePlan(images: readonly PlannedImage[], paths: WorkspacePaths): Promise<void> {
  await mkdir(paths.notes, { recursive: true });
  await writeNotes(paths.notes, 'plan', { images: await Promise.all(images.map((image) => writeImage(image, paths))) });
}

async function writeImage({ component, input, recipe }: PlannedImage, paths: WorkspacePaths): Promise<PlanNotes> {
  const shared = { name: nameImage(component), plan: recipe.plan, context: join(paths.source, input.path) };
  // May be a link to a file in the repository, which the review has checked.
  const locateAuthored = (): Promise<string> =>
    realpath(join(paths.source, posix.join(input.path, input.build.dockerfile)));
  if (recipe.dockerfile === undefined)
    return {
      ...shared,
      authored: true,
      isPortMovable: false,
      dockerfile: await locateAuthored(),
    };
  const { extendsAuthored: authored = false, usesBridge: bridge = false } = recipe;
  const folder = component === undefined ? paths.notes : join(paths.notes, component.name);
  const dockerfile = join(folder, 'Dockerfile');
  await mkdir(folder, { recursive: true });
  await writeFile(dockerfile, recipe.dockerfile);
  const extended = authored ? await locateAuthored() : undefined;
  const ignored = extended === undefined ? renderIgnoreFile(recipe) : await readIgnoreFile(extended);
  if (ignored !== undefined) await writeFile(`${dockerfile}.dockerignore`, ignored);
  return {
    ...shared,
    authored,
    isPortMovable: isPortMovable(recipe),
    dockerfile,
    bridge,
    ...(extended === undefined ? {} : { extended }),
  };
}

/** Reads the patterns that belong to an author's Dockerfile alone; undefined if there are none, so that those of the context count. */
async function readIgnoreFile(dockerfile: string): Promise<string | undefined> {
  return readFile(`${dockerfile}.dockerignore`, 'utf8').catch(() => undefined);
}

/**
 * An author's .dockerignore belongs to a Dockerfile, often one that only copies what was built before, and may exclude
 * sources, manifests and pages that the plan builds. So a plan excludes only its own patterns. NOTE: the file is never
 * empty, because BuildKit would then read the author's.
 */
function renderIgnoreFile({ ignore = [] }: Recipe): string {
  return ['# Planned by Moorage.', ...ignore, ''].join('\n');
}
