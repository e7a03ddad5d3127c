// The guides of this installation: read once, and answered with the evidence as it stands.
import type { Money } from '../../billing/index.ts';
import type { Endpoint } from '../../http/index.ts';
import type { Models } from '../../models/index.ts';
import type { Tools } from '../../tools/index.ts';
import { createAnswer, type CheckedClaim } from './answer.ts';
import { type BenchmarkReader, Benchmarks, toEvidence, type Reading } from './evidence.ts';
import {
  createGuideEndpoints,
  type GuideEntry,
  type GuideRecord,
  guidesPath,
  license,
  method,
  methodZh,
} from './endpoints.ts';
import { collectFacts, readGuides, resolveGuide } from './load.ts';
import { formatStep, type SourceGuide, type Step, toStep } from './source.ts';

export interface GuidesOptions {
  /** Like https://moorage.localhost, without a slash at the end. */
  readonly baseUrl: string;
  readonly freeQuota: Money;
  readonly catalog: Models['catalog'];
  readonly toolRegistry: Tools['toolRegistry'];
  readonly readBenchmark: BenchmarkReader;
  /** Default: those in manifests/guides. */
  readonly guides?: readonly SourceGuide[] | undefined;
}

/** What a guide is without its evidence. */
export type GuideLink = Omit<GuideEntry, 'updated' | 'license'>;

/** A guide as a page shows it: its record, the Chinese text, and the evidence for its claims. */
export interface GuideDetail {
  readonly record: GuideRecord;
  readonly method_zh: string;
  readonly steps: readonly Step[];
  readonly claims: readonly CheckedClaim[];
}

export interface Guides {
  readonly endpoints: readonly Endpoint[];
  readonly slugs: readonly string[];
  /** Every guide, for documents; nothing is asked of the benchmarks. */
  readonly links: readonly GuideLink[];
  /** As GET /api/agent-guides answers. */
  listEntries(): Promise<GuideEntry[]>;
  /** As GET /api/agent-guides/{slug} answers; undefined where there is none. */
  getRecord(slug: string): Promise<GuideRecord | undefined>;
  getDetail(slug: string): Promise<GuideDetail | undefined>;
}

/** @throws Error that names the guide and the field, when one is not valid here */
export function startGuides(options: GuidesOptions): Guides {
  const facts = collectFacts(options);
  const sources = (options.guides ?? readGuides()).map((guide) => resolveGuide(guide, facts, options.toolRegistry));
  const shelf = new GuideCatalog(options, sources);
  const guides = {
    slugs: sources.map(({ slug }) => slug),
    links: sources.map((source) => shelf.link(source)),
    listEntries: () => shelf.listEntries(),
    getRecord: async (slug: string) => (await shelf.getDetail(slug))?.record,
    getDetail: (slug: string) => shelf.getDetail(slug),
  };
  return { ...guides, endpoints: createGuideEndpoints(guides) };
}

class GuideCatalog {
  readonly #options: GuidesOptions;
  readonly #sources: ReadonlyMap<string, SourceGuide>;
  readonly #benchmarks: Benchmarks;

  constructor(options: GuidesOptions, sources: readonly SourceGuide[]) {
    this.#options = options;
    this.#sources = new Map(sources.map((source) => [source.slug, source]));
    this.#benchmarks = new Benchmarks(options.readBenchmark);
  }

  link({ slug, question, title_zh }: SourceGuide): GuideLink {
    const { baseUrl } = this.#options;
    return {
      slug,
      question,
      title_zh,
      page: `${baseUrl}/guides/${slug}`,
      machine_readable: `${baseUrl}${guidesPath}/${slug}`,
    };
  }

  async listEntries(): Promise<GuideEntry[]> {
    return Promise.all(
      [...this.#sources.values()].map(async (source) => {
        const readings = await this.#readEvidence(source);
        return { ...this.link(source), updated: findLatest(source, readings), license };
      }),
    );
  }

  async getDetail(slug: string): Promise<GuideDetail | undefined> {
    const source = this.#sources.get(slug);
    if (source === undefined) return undefined;
    const { baseUrl, catalog } = this.#options;
    const readings = await this.#readEvidence(source);
    const { answer, answer_zh, claims } = createAnswer(source, readings);
    const steps = source.steps.map((step) => toStep(step, baseUrl));
    const { question, title_zh, page, machine_readable } = this.link(source);
    const record: GuideRecord = {
      slug,
      question,
      title_zh,
      answer,
      answer_zh,
      updated: findLatest(source, readings),
      method,
      tool: this.#describeTool(source.tool),
      steps: steps.map(formatStep),
      evidence: [...readings].map(([app, reading]) => toEvidence(app, reading, catalog.ids)),
      page,
      machine_readable,
      license,
    };
    return { record, method_zh: methodZh, steps, claims };
  }

  /** Described as the registry does now, and whether it is available. */
  #describeTool({ name, arguments_example }: SourceGuide['tool']): GuideRecord['tool'] {
    const { baseUrl, toolRegistry } = this.#options;
    const tool = toolRegistry.get(name);
    const off = toolRegistry.explainOff(tool);
    return {
      name,
      description: `${tool.description}${off === undefined ? '' : ` Not available here. ${off}`}`,
      arguments_example,
      mcp_endpoint: `${baseUrl}/mcp`,
      openapi: `${baseUrl}/openapi.json`,
    };
  }

  async #readEvidence({ evidence }: SourceGuide): Promise<ReadonlyMap<string, Reading>> {
    return new Map(await Promise.all(evidence.map(async (app) => [app, await this.#benchmarks.read(app)] as const)));
  }
}

/** The later of the text and of its evidence. */
function findLatest({ updated }: SourceGuide, readings: ReadonlyMap<string, Reading>): string {
  const times = [...readings.values()].flatMap((reading) => (typeof reading === 'string' ? [] : [reading.updated]));
  return new Date(Math.max(...[updated, ...times].map((time) => Date.parse(time)))).toISOString();
}
