// Starts the services behind tools once Moorage answers: their images, the chart with them, and what each costs.
import { isDeepStrictEqual } from 'node:util';
import { z } from 'zod';
import { buildPart, fetchModules } from '../../localnode/binaries/build.ts';
import { waitForRollout, type Kubectl } from '../../localnode/kubectl.ts';
import type { Report, Step } from '../../localnode/steps.ts';
import { release } from './helm.ts';
import {
  definitionOf,
  sharesOf,
  toolServiceNames,
  toolSettings,
  type ToolServiceName,
  type ToolState,
} from './tool-services.ts';

/** An image as pods pull it, and its size in the registry. */
export interface ToolImage {
  readonly reference: string;
  readonly bytes: number;
}

/** What a kind of cluster does its own way. */
export interface ToolHost {
  readonly kubectl: Kubectl;
  /** Values that the release was installed with, as YAML or JSON; empty where there is no release. */
  readonly values: () => Promise<unknown>;
  /** Builds and publishes the image of the catalog. */
  readonly build: (image: string, report: Report) => Promise<ToolImage>;
  /** Brings the image of SearXNG, which no package registry has. Throws where there is no internet. */
  readonly searxng: (report: Report) => Promise<ToolImage>;
  /** Installs the chart with these settings beside the cluster's own. */
  readonly install: (settings: readonly string[]) => Promise<void>;
}

const notWanted = 'npm run up was asked to start without it (--tools)';
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
 * The services as the release has them, which the chart is given again while their new images are made: so an upgrade
 * takes none of them away.
 */
export function presentTools(values: unknown, wanted: readonly ToolServiceName[]): Map<ToolServiceName, ToolState> {
  const { tools } = installed.parse(values ?? {});
  const stateOf = (name: ToolServiceName): ToolState => {
    if (!wanted.includes(name)) return { offBecause: notWanted };
    const { enabled = false, image = '', offBecause = '' } = tools[name] ?? {};
    if (enabled && image !== '') return { image };
    return { offBecause: ['', notWanted].includes(offBecause) ? notYet : offBecause };
  };
  return new Map(toolServiceNames.map((name) => [name, stateOf(name)]));
}

const megabytes = (bytes: number): string => `${Math.round(bytes / 1e6)} MB`;

export interface ToolPhase {
  /** The images, two at a time, beside the compiler and SearXNG; then the chart; then each service. */
  readonly steps: readonly Step[];
  /** The line on all of them once the steps have run. */
  readonly summary: () => Promise<string>;
}

export function toolPhase(host: ToolHost, wanted: readonly ToolServiceName[]): ToolPhase {
  const images = new Map<ToolServiceName, ToolImage>();
  const states = new Map<ToolServiceName, ToolState>(
    toolServiceNames.filter((name) => !wanted.includes(name)).map((name) => [name, { offBecause: notWanted }]),
  );
  const keep = (name: ToolServiceName, image: ToolImage): string => {
    images.set(name, image);
    states.set(name, { image: image.reference });
    return megabytes(image.bytes);
  };
  const made = wanted.filter((name) => definitionOf(name).image !== undefined);
  const steps: Step[] = [
    ...(wanted.includes('gotenberg') ? compileSteps : []),
    ...made.map((name, index): Step => ({
      name: `tool image ${name}`,
      // Two at a time: while one downloads, another is written.
      lane: `images ${index % 2}`,
      needs: name === 'gotenberg' ? ['compile gotenberg'] : [],
      run: async (report) => keep(name, await host.build(definitionOf(name).image ?? '', report)),
    })),
    ...(wanted.includes('searxng') ? [searxngStep(host, states, keep)] : []),
    {
      name: 'chart with tools',
      needs: wanted.map((name) => `tool image ${name}`),
      run: async () => {
        const before = presentTools(await host.values(), wanted);
        if (isDeepStrictEqual(before, states)) return 'unchanged';
        await host.install(toolSettings(states));
        return undefined;
      },
    },
    ...wanted.map((name): Step => ({
      name: `tool ${name}`,
      needs: ['chart with tools'],
      run: async () => {
        const state = states.get(name);
        if (state === undefined || 'offBecause' in state) return `off: ${state?.offBecause ?? notWanted}`;
        for (const workload of definitionOf(name).workloads)
          await waitForRollout(host.kubectl, release.namespace, workload, patienceSeconds);
        return costOf(name, images.get(name));
      },
    })),
  ];
  return { steps, summary: () => summaryOf([...images.keys()]) };
}

const compileSteps: readonly Step[] = [
  { name: 'modules of gotenberg', run: (report) => fetchModules('gotenberg', report) },
  { name: 'compile gotenberg', needs: ['modules of gotenberg'], run: (report) => buildPart('gotenberg', report) },
];

/** What a registry says that was reached, or the disk: not for want of an internet. */
const refusal = /.*(?:toomanyrequests|unauthorized|denied|manifest unknown|no space left).*/i;

/** Why the image of SearXNG, which no package registry has, could not be brought. */
function whyNoSearxng(error: unknown): string {
  const [refused] = refusal.exec(error instanceof Error ? error.message : String(error)) ?? [];
  return refused === undefined
    ? 'this machine has no internet to search: the image of SearXNG could not be downloaded, which is in no package registry'
    : `the image of SearXNG could not be downloaded: ${refused.trim().slice(0, 200)}`;
}

/** Without it there is no search, and all else works: up goes on. */
function searxngStep(
  host: ToolHost,
  states: Map<ToolServiceName, ToolState>,
  keep: (name: ToolServiceName, image: ToolImage) => string,
): Step {
  return {
    name: 'tool image searxng',
    lane: 'downloads',
    run: async (report) => {
      try {
        return keep('searxng', await host.searxng(report));
      } catch (error) {
        const offBecause = whyNoSearxng(error);
        states.set('searxng', { offBecause });
        return `off: ${offBecause}`;
      }
    },
  };
}

async function costOf(name: ToolServiceName, image: ToolImage | undefined): Promise<string> {
  const { requests, limits } = await sharesOf([name]);
  const size = image === undefined ? '' : `image ${megabytes(image.bytes)}, `;
  return `${size}memory ${requests.memoryMebibytes} MiB requested, ${limits.memoryMebibytes} MiB at most: ${definitionOf(name).tools}`;
}

async function summaryOf(running: readonly ToolServiceName[]): Promise<string> {
  if (running.length === 0) return 'Services of tools: none (--tools all starts them).';
  const { requests, limits } = await sharesOf(running);
  return `Services of tools: ${running.join(', ')}; together ${requests.memoryMebibytes} MiB of memory requested, ${limits.memoryMebibytes} MiB at most (--tools none goes without).`;
}
