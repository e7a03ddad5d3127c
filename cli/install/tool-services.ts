// Starts the services behind tools once Moorage answers: builds their images, installs the chart with them, and reports the
// resources of each.
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { parse } from 'yaml';
import { z } from 'zod';
import { UsageError } from '../../lib/command-line.ts';
import { paths } from '../../localnode/paths.ts';
import { buildPart, fetchModules } from '../../localnode/binaries/build.ts';
import { waitForRollout, type Kubectl } from '../../localnode/kubectl.ts';
import type { Report, Step } from '../../localnode/steps.ts';
import { release } from './release.ts';

interface Definition {
  /** Name in the catalog of images; absent if no package registry has the program. */
  readonly image?: string;
  /** The tools that do not work without it. */
  readonly tools: string;
  /** Its Deployments. */
  readonly workloads: readonly string[];
}

/** By their names in the chart, in build order. */
export const toolServices = {
  speech: { image: 'speech', tools: 'transcribe_audio', workloads: ['moorage-speech'] },
  languagetool: { image: 'languagetool', tools: 'check_grammar beyond English', workloads: ['moorage-languagetool'] },
  pdftranslator: { image: 'pdf-translator', tools: 'translate_pdf', workloads: ['moorage-pdftranslator'] },
  gotenberg: {
    image: 'gotenberg',
    tools: 'convert_to_pdf, screenshot',
    workloads: ['moorage-gotenberg', 'moorage-gotenberg-proxy'],
  },
  searxng: { tools: 'web_search, deep_research', workloads: ['moorage-searxng'] },
} as const satisfies Record<string, Definition>;

export type ToolServiceName = keyof typeof toolServices;

export const toolServiceNames = Object.keys(toolServices) as ToolServiceName[];

/** Deployments of all of them. */
export const toolWorkloads: readonly string[] = Object.values(toolServices).flatMap(({ workloads }) => workloads);

export const getDefinition = (name: ToolServiceName): Definition => toolServices[name];

/** The services in a list: all, none, or some of them. @throws UsageError for an unknown name */
export function selectTools(list: string): readonly ToolServiceName[] {
  const names = list.split(',').map((each) => each.trim());
  if (list === 'none') return [];
  if (list === 'all') return toolServiceNames;
  for (const name of names)
    if (!(toolServiceNames as readonly string[]).includes(name))
      throw new UsageError(`--tools: there is no "${name}"; give all, none, or some of ${toolServiceNames.join(', ')}`);
  return toolServiceNames.filter((name) => names.includes(name));
}

/** CPU in millicores, memory in MiB. */
export interface Share {
  readonly cpuMilli: number;
  readonly memoryMebibytes: number;
}

export interface ToolShares {
  readonly requests: Share;
  readonly limits: Share;
}

const share = z.object({ cpu: z.string(), memory: z.string() }).transform(({ cpu, memory }) => ({
  cpuMilli: cpu.endsWith('m') ? Number.parseInt(cpu, 10) : Number(cpu) * 1000,
  memoryMebibytes: Number.parseInt(memory, 10) * (memory.endsWith('Gi') ? 1024 : 1),
}));
const workload = z.object({ resources: z.object({ requests: share, limits: share }) });
const localValues = z.object({
  tools: z.record(z.string(), workload.extend({ proxy: workload.optional() })),
});

const addShares = (shares: readonly Share[]): Share => ({
  cpuMilli: shares.reduce((all, each) => all + each.cpuMilli, 0),
  memoryMebibytes: shares.reduce((all, each) => all + each.memoryMebibytes, 0),
});

/** The total requests and limits of services, from the values of local clusters. */
export async function readShares(names: readonly ToolServiceName[]): Promise<ToolShares> {
  const file = join(paths.root, 'cli', 'values.local.yaml');
  const { tools } = localValues.parse(parse(await readFile(file, 'utf8')));
  const parts = names.flatMap((name) => {
    const service = tools[name];
    if (service === undefined) throw new Error(`cli/values.local.yaml has no tools.${name}.resources`);
    return [service.resources, ...(service.proxy === undefined ? [] : [service.proxy.resources])];
  });
  return {
    requests: addShares(parts.map(({ requests }) => requests)),
    limits: addShares(parts.map(({ limits }) => limits)),
  };
}

/** The image that a service runs, or why it does not run. */
export type ToolState = { readonly image: string } | { readonly offBecause: string };

/** Chart settings for services. Commas are escaped, because Helm would read the rest of the value as the next setting. */
export function formatToolSettings(states: ReadonlyMap<ToolServiceName, ToolState>): string[] {
  return [...states].flatMap(([name, state]) =>
    'image' in state
      ? [`tools.${name}.enabled=true`, `tools.${name}.image=${state.image}`]
      : [`tools.${name}.offBecause=${state.offBecause.replaceAll(',', String.raw`\,`)}`],
  );
}

const values = z.object({ tools: z.object({ searxng: z.object({ image: z.string() }) }) });

export interface NamedImage {
  /** Such as docker.io/searxng/searxng:1. */
  readonly reference: string;
  readonly repository: string;
  readonly tag: string;
}

/** The image of SearXNG that the chart names. It is the one service that no package registry has. */
export async function readSearxngImage(): Promise<NamedImage> {
  const file = join(paths.root, 'charts', 'moorage', 'values.yaml');
  const reference = values.parse(parse(await readFile(file, 'utf8'))).tools.searxng.image;
  const [, repository = '', tag = ''] = /^docker\.io\/(.+):([^:]+)$/.exec(reference) ?? [];
  return { reference, repository, tag };
}

/** An image as pods pull it, and its size in the registry. */
export interface ToolImage {
  readonly reference: string;
  readonly bytes: number;
}

/** The operations that differ between kinds of cluster. */
export interface ToolHost {
  readonly kubectl: Kubectl;
  /** Values that the release was installed with, as YAML or JSON; empty if there is no release. */
  readonly readValues: () => Promise<unknown>;
  /** Builds and publishes the image of the catalog. */
  readonly build: (image: string, report: Report) => Promise<ToolImage>;
  /** Downloads the image of SearXNG, which no package registry has. Throws without internet access. */
  readonly bringSearxng: (report: Report) => Promise<ToolImage>;
  /** Installs the chart with these settings and the cluster's own. */
  readonly install: (settings: readonly string[]) => Promise<void>;
}

const notWanted = 'npm run up was started without it (--tools)';
const notYet = 'it is being started';
const patienceSeconds = 300;

const installed = z.object({
  tools: z
    .record(
      z.string(),
      z.object({
        enabled: z.boolean().default(false),
        image: z.string().default(''),
        offBecause: z.string().default(''),
      }),
    )
    .default({}),
});

/**
 * The services as the release has them. The chart is installed with these while new images are built, so that an upgrade
 * removes none of them.
 */
export function readToolStates(values: unknown, names: readonly ToolServiceName[]): Map<ToolServiceName, ToolState> {
  const { tools } = installed.parse(values ?? {});
  const readState = (name: ToolServiceName): ToolState => {
    if (!names.includes(name)) return { offBecause: notWanted };
    const { enabled = false, image = '', offBecause = '' } = tools[name] ?? {};
    if (enabled && image !== '') return { image };
    return { offBecause: ['', notWanted].includes(offBecause) ? notYet : offBecause };
  };
  return new Map(toolServiceNames.map((name) => [name, readState(name)]));
}

const formatMegabytes = (bytes: number): string => `${Math.round(bytes / 1e6)} MB`;

export interface ToolPhase {
  /** The images, two at a time and parallel to the compiler and SearXNG; then the chart; then each service. */
  readonly steps: readonly Step[];
  /** One line about all services, once the steps have run. */
  readonly summarize: () => Promise<string>;
}

export function createToolPhase(host: ToolHost, names: readonly ToolServiceName[]): ToolPhase {
  const images = new Map<ToolServiceName, ToolImage>();
  const states = new Map<ToolServiceName, ToolState>(
    toolServiceNames.filter((name) => !names.includes(name)).map((name) => [name, { offBecause: notWanted }]),
  );
  const keep = (name: ToolServiceName, image: ToolImage): string => {
    images.set(name, image);
    states.set(name, { image: image.reference });
    return formatMegabytes(image.bytes);
  };
  const builtServices = names.filter((name) => getDefinition(name).image !== undefined);
  const steps: Step[] = [
    ...(names.includes('gotenberg') ? compileSteps : []),
    ...builtServices.map((name, index): Step => ({
      name: `tool image ${name}`,
      // Two at a time: while one downloads, another is written.
      lane: `images ${index % 2}`,
      needs: name === 'gotenberg' ? ['compile gotenberg'] : [],
      run: async (report) => keep(name, await host.build(getDefinition(name).image ?? '', report)),
    })),
    ...(names.includes('searxng') ? [createSearxngStep(host, states, keep)] : []),
    {
      name: 'chart with tools',
      needs: names.map((name) => `tool image ${name}`),
      run: async () => {
        const previousStates = readToolStates(await host.readValues(), names);
        if (isDeepStrictEqual(previousStates, states)) return 'unchanged';
        await host.install(formatToolSettings(states));
        return undefined;
      },
    },
    ...names.map((name): Step => ({
      name: `tool ${name}`,
      needs: ['chart with tools'],
      run: async () => {
        const state = states.get(name);
        if (state === undefined || 'offBecause' in state) return `off: ${state?.offBecause ?? notWanted}`;
        for (const workload of getDefinition(name).workloads)
          await waitForRollout(host.kubectl, release.namespace, workload, patienceSeconds);
        return formatCost(name, images.get(name));
      },
    })),
  ];
  return { steps, summarize: () => formatSummary([...images.keys()]) };
}

const compileSteps: readonly Step[] = [
  { name: 'modules of gotenberg', run: (report) => fetchModules('gotenberg', report) },
  { name: 'compile gotenberg', needs: ['modules of gotenberg'], run: (report) => buildPart('gotenberg', report) },
];

/** Messages of a registry that was reached, or of a full disk: the internet is not the cause. */
const refusal = /.*(?:toomanyrequests|unauthorized|denied|manifest unknown|no space left).*/i;

/** Explains why the image of SearXNG could not be downloaded. */
function explainFailure(error: unknown): string {
  const [refused] = refusal.exec(error instanceof Error ? error.message : String(error)) ?? [];
  return refused === undefined
    ? 'this machine has no internet access: the image of SearXNG could not be downloaded, and no package registry has it'
    : `the image of SearXNG could not be downloaded: ${refused.trim().slice(0, 200)}`;
}

/** Without SearXNG there is no search, but everything else works, so that `up` continues. */
function createSearxngStep(
  host: ToolHost,
  states: Map<ToolServiceName, ToolState>,
  keep: (name: ToolServiceName, image: ToolImage) => string,
): Step {
  return {
    name: 'tool image searxng',
    lane: 'downloads',
    run: async (report) => {
      try {
        return keep('searxng', await host.bringSearxng(report));
      } catch (error) {
        const offBecause = explainFailure(error);
        states.set('searxng', { offBecause });
        return `off: ${offBecause}`;
      }
    },
  };
}

async function formatCost(name: ToolServiceName, image: ToolImage | undefined): Promise<string> {
  const { requests, limits } = await readShares([name]);
  const size = image === undefined ? '' : `image ${formatMegabytes(image.bytes)}, `;
  return `${size}memory ${requests.memoryMebibytes} MiB requested, ${limits.memoryMebibytes} MiB at most: ${getDefinition(name).tools}`;
}

async function formatSummary(running: readonly ToolServiceName[]): Promise<string> {
  if (running.length === 0) return 'Tool services: none (--tools all starts them).';
  const { requests, limits } = await readShares(running);
  return `Tool services: ${running.join(', ')}; together ${requests.memoryMebibytes} MiB of memory requested, ${limits.memoryMebibytes} MiB at most (--tools none starts none).`;
}
