// Reads the guides at startup. An invalid guide, or a call that its tool rejects, stops the process with an error that names it.
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'yaml';
import { Problem } from '../../../lib/problem.ts';
import { formatUsd, type Money } from '../../billing/index.ts';
import type { Models } from '../../models/index.ts';
import { ToolReader, type Tools } from '../../tools/index.ts';
import { type Call, guideSlugs, isVariable, sourceGuide, type SourceGuide } from './source.ts';

const folder = join(import.meta.dirname, '..', '..', '..', 'manifests', 'guides');

/** Every guide, in the order of the interface. @throws Error that names each file and field that is wrong */
export function readGuides(from: string = folder): SourceGuide[] {
  const files = readdirSync(from).filter((file) => file.endsWith('.yaml'));
  const faults: string[] = [];
  const bySlug = new Map(
    files.flatMap((file) => readGuide(from, file, faults)).map((guide) => [guide.slug, guide] as const),
  );
  const guides = guideSlugs.flatMap((slug) => bySlug.get(slug) ?? []);
  for (const slug of guideSlugs) if (!files.includes(`${slug}.yaml`)) faults.push(`${slug}.yaml is missing`);
  if (faults.length > 0) throw new Error(`the guides in ${from} are not valid:\n  ${faults.join('\n  ')}`);
  return guides;
}

function readGuide(from: string, file: string, faults: string[]): SourceGuide[] {
  const parsed = sourceGuide.safeParse(parseYaml(join(from, file), faults));
  if (!parsed.success) {
    faults.push(...parsed.error.issues.map(({ path, message }) => `${file}: ${path.join('.')}: ${message}`));
    return [];
  }
  if (file === `${parsed.data.slug}.yaml`) return [parsed.data];
  faults.push(`${file}: slug: is ${parsed.data.slug}, but the file has another name`);
  return [];
}

function parseYaml(path: string, faults: string[]): unknown {
  try {
    return parse(readFileSync(path, 'utf8'));
  } catch (error) {
    faults.push(`${path}: ${error instanceof Error ? error.message : String(error)}`);
    return undefined;
  }
}

type Registry = Tools['toolRegistry'];

/** The guide as it is of this installation. @throws Error where a call names no tool, or what the tool refuses */
export function resolveGuide(guide: SourceGuide, facts: Facts, toolRegistry: Registry): SourceGuide {
  try {
    const settled = {
      ...guide,
      answer: fillText(guide.answer, facts),
      answer_zh: fillText(guide.answer_zh, facts),
      tool: fillAll(guide.tool, facts),
      steps: fillAll(guide.steps, facts),
    };
    checkCall({ mcp: settled.tool.name, arguments: settled.tool.arguments_example }, 'tool', toolRegistry);
    for (const [index, { call }] of settled.steps.entries()) checkCall(call, `steps.${index}`, toolRegistry);
    return settled;
  } catch (error) {
    throw new Error(
      `manifests/guides/${guide.slug}.yaml is not valid: ${error instanceof Error ? error.message : String(error)}`,
      {
        cause: error,
      },
    );
  }
}

const toolPath = /^\/t\/([a-z_]+)$/;

function checkCall(call: Call, at: string, toolRegistry: Registry): void {
  if ('mcp' in call) {
    checkArguments(call.mcp, call.arguments, 'argument', at, toolRegistry);
    return;
  }
  const [, tool] = toolPath.exec('get' in call ? call.get : call.post) ?? [];
  if (tool === undefined) return;
  if ('post' in call) checkArguments(tool, call.json, 'body', at, toolRegistry);
  else checkArguments(tool, toQuery(call.query), 'query', at, toolRegistry);
}

/** Stands for a variable, where any job may be named. */
const anyId = 'AAAAAAAAAAAAAAAAAAAAAA';

function toQuery(query: Readonly<Record<string, string | number | boolean>> = {}): Record<string, string> {
  return Object.fromEntries(
    Object.entries(query).map(([name, value]) => [name, isVariable(value) ? anyId : String(value)]),
  );
}

function checkArguments(
  name: string,
  args: Record<string, unknown>,
  part: 'argument' | 'body' | 'query',
  at: string,
  toolRegistry: Registry,
): void {
  try {
    new ToolReader(toolRegistry.get(name)).read(part, args);
  } catch (error) {
    if (!(error instanceof Problem)) throw error;
    throw new Error(`${at}: ${name}: ${error.message}`, { cause: error });
  }
}

export type Facts = ReadonlyMap<string, string>;

export interface FactsOptions {
  readonly baseUrl: string;
  readonly freeQuota: Money;
  readonly catalog: Models['catalog'];
  readonly toolRegistry: Tools['toolRegistry'];
}

export function collectFacts({ baseUrl, freeQuota, catalog, toolRegistry }: FactsOptions): Facts {
  const byPrice = catalog.models.toSorted((one, other) => Number(weighPrice(one) - weighPrice(other)));
  const free = byPrice.filter(({ tier }) => tier === 'free');
  const prices = toolRegistry.tools.map(({ name, price }) => [`price_${name}`, `$${price}`] as const);
  return new Map([
    ['base_url', baseUrl],
    ['free_quota', formatUsd(freeQuota)],
    ['tools', String(toolRegistry.tools.length)],
    ['default_model', catalog.preferred.id],
    ['cheapest_free_model', (free[0] ?? catalog.preferred).id],
    ['dearest_free_model', (free.at(-1) ?? catalog.preferred).id],
    ['dearest_model', (byPrice.at(-1) ?? catalog.preferred).id],
    ...prices,
  ]);
}

/** What an answer of usual shape, three tokens in for one out, costs relative to others; only to order by. */
function weighPrice({ in_per_m, out_per_m }: Models['catalog']['models'][number]): bigint {
  return in_per_m * 3n + out_per_m;
}

/** JSON begins with `{"`, so it is never taken for a fact. */
const factPattern = /\{([a-z][a-z_]{0,60})\}/g;

/** The text with its facts. @throws Error for one that is not known */
export function fillText(text: string, facts: Facts): string {
  return text.replaceAll(factPattern, (_, name: string) => {
    const fact = facts.get(name);
    if (fact === undefined) throw new Error(`{${name}} is not a known fact; known are ${[...facts.keys()].join(', ')}`);
    return fact;
  });
}

/** A value of JSON with the facts in all of its texts. */
export function fillAll<Value>(value: Value, facts: Facts): Value {
  return fillValue(value, facts) as Value;
}

function fillValue(value: unknown, facts: Facts): unknown {
  if (typeof value === 'string') return fillText(value, facts);
  if (Array.isArray(value)) return value.map((item: unknown) => fillValue(item, facts));
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([name, item]) => [name, fillValue(item, facts)]));
}
