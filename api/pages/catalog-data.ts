// The catalog as pages ask for it. What is not built into an installation is undefined, and has no page.
import { z } from 'zod';
import type { RequestContext } from '../http/index.ts';
import type { Calls } from './calls.ts';
import * as data from './data.ts';

type Source<Input, Output> = ((input: Input, context: RequestContext) => Promise<Output>) | undefined;

export interface CatalogData {
  readonly projects: Source<data.ProjectQuery, data.ProjectPage>;
  readonly project: Source<string, data.ProjectDetail>;
  readonly benches: Source<undefined, readonly data.BenchEntry[]>;
  readonly bench: Source<string, data.Bench>;
  readonly guides: Source<undefined, readonly data.GuideEntry[]>;
  readonly guide: Source<string, data.Guide>;
  readonly rank: Source<data.RankQuery, data.Rank>;
}

const projects = z.object({ projects: z.array(data.project), total: z.int(), next: z.string().nullish() });
const benches = z.array(data.benchEntry);
const guides = z.array(data.guideEntry);

export function catalogData(calls: Calls): CatalogData {
  const when = <Input, Output>(
    path: string,
    read: (input: Input, context: RequestContext) => Promise<Output>,
  ): Source<Input, Output> => (calls.has('GET', path) ? read : undefined);
  return {
    projects: when('/api/projects', async ({ search, category, cursor, size }, context) => {
      const given = { q: search, category, cursor };
      const query = Object.fromEntries(Object.entries(given).filter(([, value]) => value !== ''));
      const list = await calls.json('GET', '/api/projects', projects, context, {
        query: { ...query, limit: String(size), sort: 'stars' },
      });
      return { ...list, next: cursorOf(list.next) };
    }),
    project: when('/api/projects/{slug}', (slug, context) =>
      calls.json('GET', '/api/projects/{slug}', data.projectDetail, context, { params: { slug } }),
    ),
    benches: when('/api/bench', (_none, context) => calls.json('GET', '/api/bench', benches, context)),
    bench: when('/api/bench/{slug}', (slug, context) =>
      calls.json('GET', '/api/bench/{slug}', data.bench, context, { params: { slug } }),
    ),
    guides: when('/api/agent-guides', (_none, context) => calls.json('GET', '/api/agent-guides', guides, context)),
    guide: when('/api/agent-guides/{slug}', (slug, context) =>
      calls.json('GET', '/api/agent-guides/{slug}', data.guide, context, { params: { slug } }),
    ),
    rank: when('/api/rank', ({ weights, cursor }, context) => {
      const given = Object.entries(weights).map(([name, weight]) => `${name}:${weight}`);
      const isWeighted = Object.values(weights).some((weight) => weight > 0);
      return calls.json('GET', '/api/rank', data.rank, context, {
        query: { ...(isWeighted ? { weights: given.join(',') } : {}), ...(cursor === '' ? {} : { cursor }) },
      });
    }),
  };
}

/** The list names its next page by a URL. */
export function cursorOf(next: string | null | undefined): string | undefined {
  return typeof next === 'string' && URL.canParse(next)
    ? (new URL(next).searchParams.get('cursor') ?? undefined)
    : undefined;
}
