// The services behind tools that `up` starts: which there are, what each is made of and turns on, and what it may take.
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { parse } from 'yaml';
import { z } from 'zod';
import { UsageError } from '../../lib/command-line.ts';
import { paths } from '../../localnode/paths.ts';

interface Definition {
  /** Of the catalog of images, or none where no package registry has the program. */
  readonly image?: string;
  /** What callers cannot do without it. */
  readonly tools: string;
  /** Its Deployments. */
  readonly workloads: readonly string[];
}

/** By their names in the chart, in the order in which they are made. */
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

export const definitionOf = (name: ToolServiceName): Definition => toolServices[name];

/** The services that a list names: all, none, or some of them. @throws UsageError for a name that there is not */
export function selectTools(list: string): readonly ToolServiceName[] {
  const wanted = list.split(',').map((each) => each.trim());
  if (list === 'none') return [];
  if (list === 'all') return toolServiceNames;
  for (const name of wanted)
    if (!(toolServiceNames as readonly string[]).includes(name))
      throw new UsageError(`--tools: there is no "${name}"; give all, none, or some of ${toolServiceNames.join(', ')}`);
  return toolServiceNames.filter((name) => wanted.includes(name));
}

/** CPU in thousandths, memory in MiB. */
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

const sum = (shares: readonly Share[]): Share => ({
  cpuMilli: shares.reduce((all, each) => all + each.cpuMilli, 0),
  memoryMebibytes: shares.reduce((all, each) => all + each.memoryMebibytes, 0),
});

/** What services request and may take together, as the values of local clusters say. */
export async function sharesOf(names: readonly ToolServiceName[]): Promise<ToolShares> {
  const file = join(paths.root, 'cli', 'values.local.yaml');
  const { tools } = localValues.parse(parse(await readFile(file, 'utf8')));
  const parts = names.flatMap((name) => {
    const service = tools[name];
    if (service === undefined) throw new Error(`cli/values.local.yaml has no tools.${name}.resources`);
    return [service.resources, ...(service.proxy === undefined ? [] : [service.proxy.resources])];
  });
  return { requests: sum(parts.map(({ requests }) => requests)), limits: sum(parts.map(({ limits }) => limits)) };
}

/** One that runs, by the image that it runs from, or why it does not. */
export type ToolState = { readonly image: string } | { readonly offBecause: string };

/** Chart settings for services; Helm reads commas of a value as the next setting. */
export function toolSettings(states: ReadonlyMap<ToolServiceName, ToolState>): string[] {
  return [...states].flatMap(([name, state]) =>
    'image' in state
      ? [`tools.${name}.enabled=true`, `tools.${name}.image=${state.image}`]
      : [`tools.${name}.offBecause=${state.offBecause.replaceAll(',', String.raw`\,`)}`],
  );
}
