// The tool deep_research: researches a question on the live web and answers with citations of pages it read.
import { z } from 'zod';
import { readPart } from '../../../http/index.ts';
import { parseMoney } from '../../../billing/index.ts';
import { modelField } from '../../../models/index.ts';
import { requireServiceUrl } from '../../services/backing-services.ts';
import { Research, type ResearchDepth, type ResearchWeb } from './research.ts';
import { createFetchPageTool } from '../fetch-page/fetch-page.ts';
import type { ToolDependencies } from '../../tool.ts';
import { defineTool, type Tool, type ToolContext } from '../../tool.ts';
import { createWebSearchTool } from '../web-search/web-search.ts';

const depths: Readonly<Record<'quick' | 'standard' | 'deep', ResearchDepth>> = {
  quick: { rounds: 1, queries: 2, pages: 4 },
  standard: { rounds: 2, queries: 3, pages: 9 },
  deep: { rounds: 3, queries: 4, pages: 18 },
};

const source = z.object({ title: z.string(), url: z.string() });

export function createDeepResearchTool(services: ToolDependencies): Tool {
  const { catalog } = services;
  return defineTool({
    name: 'deep_research',
    title: 'Research a question',
    description:
      'Researches a question on the live web: plans searches, reads pages, looks for gaps, and returns an answer in Markdown with numbered citations. Every cited page was actually read. Runs as a job of one to several minutes: poll the returned handle, or set wait. ' +
      'Its model calls cost at most max_usd; at the limit, it writes the answer from what it has. For a single fact, use web_search and fetch_page: they are faster and cheaper.',
    input: z.strictObject({
      question: z.string().trim().min(5).max(4_000).describe('Question to research.'),
      depth: z
        .enum(['quick', 'standard', 'deep'])
        .default('standard')
        .describe(
          'Depth of the research: quick (up to 4 pages in one round), standard (default, up to 9 pages in two rounds) or deep (up to 18 pages in three rounds).',
        ),
      max_usd: z
        .number()
        .min(0.001)
        .max(5)
        .default(0.04)
        .describe(
          'Maximum total cost of model calls in USD, 0.001 to 5. Default: 0.04. Near the limit, the answer is written from what has been found.',
        ),
      model: modelField(catalog)
        .optional()
        .describe(`Model id from GET /api/models. Default: ${catalog.preferred.id}.`),
    }),
    aliases: { q: 'question', query: 'question', prompt: 'question', topic: 'question', budget: 'max_usd' },
    output: z.object({
      answer: z.string().describe('Answer in Markdown; [n] cites the source with that number.'),
      sources: z.array(source.extend({ number: z.int() })).describe('Sources that the answer cites.'),
      also_read: z.array(source).describe('Useful pages that are not cited.'),
      searches: z.array(z.string()).describe('Search queries that were used.'),
      unread: z
        .array(z.object({ url: z.string(), reason: z.string() }))
        .describe('Pages and searches that failed, at most 50.'),
      model: z.string().describe('Model that planned, read and wrote.'),
      model_calls: z.int().describe('Number of model calls.'),
      budget_reached: z.boolean().describe('Whether max_usd ended the research before its depth was reached.'),
    }),
    example: {
      question: 'How much of world trade goes by container ship today, and how has that changed since 1990?',
      depth: 'quick',
    },
    price: '0',
    needs: 'searxng',
    asksModels: true,
    openWorld: true,
    long: true,
    async run({ question, depth, max_usd, model = catalog.preferred.id }, context) {
      // Check for the service before any money is spent.
      requireServiceUrl(services.urls, 'searxng');
      const research = new Research({
        question,
        model,
        depth: depths[depth],
        models: context.models,
        web: createWeb(services, context),
        report: context.report,
        limit: parseMoney(max_usd.toFixed(12)),
      });
      const { answer, sources, read, searches, unread, calls, budgetReached: cut } = await research.run();
      const cited = new Set(sources.map(({ url }) => url));
      return {
        result: {
          answer,
          model,
          searches: [...searches],
          sources: [...sources],
          also_read: read.filter(({ url }) => !cited.has(url)),
          unread: unread.slice(0, 50),
          model_calls: calls,
          budget_reached: cut,
        },
      };
    },
  });
}

const searchOutput = z.object({ results: z.array(z.object({ title: z.string(), url: z.string().optional() })) });
const pageContent = z.object({ url: z.string(), title: z.string().default(''), markdown: z.string() });

/** Reaches the web through web_search and fetch_page, with all their guards. */
function createWeb(services: ToolDependencies, context: ToolContext): ResearchWeb {
  const [searching, reading] = [createWebSearchTool(services), createFetchPageTool(services)];
  const use = async (tool: Tool, input: Record<string, unknown>): Promise<unknown> =>
    (await tool.run(readPart('argument', tool.input, input), { ...context, report: () => undefined })).result;
  return {
    // A result without a URL cannot be cited.
    search: async (query) =>
      searchOutput
        .parse(await use(searching, { query, count: 10 }))
        .results.flatMap(({ title, url }) => (url === undefined ? [] : [{ title, url }])),
    read: async (url) => {
      const { url: address, title, markdown } = pageContent.parse(await use(reading, { url, max_characters: 60_000 }));
      return { url: address, title, text: markdown };
    },
  };
}
