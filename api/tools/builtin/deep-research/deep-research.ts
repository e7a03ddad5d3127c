// The tool deep_research: a question followed through the live web, answered with citations of pages that were read.
import { z } from 'zod';
import { parseMoney } from '../../../billing/ledger/money.ts';
import { modelField } from '../../../models/request.ts';
import { serviceUrl } from '../../services/backing-services.ts';
import { Research, type Depth, type Web } from './research.ts';
import { fetchPageTool } from '../fetch-page/fetch-page.ts';
import type { ToolServices } from '../../engine/tool-dependencies.ts';
import { defineTool, type Tool, type ToolContext } from '../../tool.ts';
import { webSearchTool } from '../web-search/web-search.ts';

const depths: Readonly<Record<'quick' | 'standard' | 'deep', Depth>> = {
  quick: { rounds: 1, queries: 2, pages: 4 },
  standard: { rounds: 2, queries: 3, pages: 9 },
  deep: { rounds: 3, queries: 4, pages: 18 },
};

const source = z.object({ title: z.string(), url: z.string() });

export function deepResearchTool(services: ToolServices): Tool {
  const { catalog } = services;
  return defineTool({
    name: 'deep_research',
    title: 'Research a question',
    description:
      'Follows a question through the live web: plans searches, reads pages, looks for gaps, and answers in Markdown with numbered citations, each of a page that was really read. Takes one to some minutes, so it answers with a job to poll, or with the result when wait is given. ' +
      'It keeps to max_usd. For one fact, web_search and fetch_page are quicker and cheaper.',
    input: z.strictObject({
      question: z.string().trim().min(5).max(4_000).describe('The question'),
      depth: z
        .enum(['quick', 'standard', 'deep'])
        .default('standard')
        .describe('How far it is followed: quick (up to 4 pages), standard (9, in two rounds) or deep (18, in three)'),
      max_usd: z
        .number()
        .min(0.001)
        .max(5)
        .default(0.04)
        .describe(
          'Most that its model calls may cost together, 0.001 to 5 USD; when it runs low, the answer is written from what there is',
        ),
      model: modelField(catalog)
        .optional()
        .describe(`Id of a model, of GET /api/models; default ${catalog.preferred.id}`),
    }),
    aliases: { q: 'question', query: 'question', prompt: 'question', topic: 'question', budget: 'max_usd' },
    output: z.object({
      answer: z.string().describe('In Markdown; [n] cites the source with that number'),
      sources: z.array(source.extend({ number: z.int() })).describe('What the answer cites'),
      also_read: z.array(source).describe('Pages that were read and are not cited'),
      searches: z.array(z.string()).describe('What was searched for'),
      unread: z.array(z.object({ url: z.string(), reason: z.string() })).describe('Pages, or searches, that failed'),
      model: z.string().describe('The model that planned, read and wrote'),
      model_calls: z.int().describe('How often it was asked'),
      budget_reached: z.boolean().describe('Whether max_usd ended the search before the depth did'),
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
      // The service is looked for before any money is spent.
      serviceUrl(services.urls, 'searxng');
      const research = new Research({
        question,
        model,
        depth: depths[depth],
        models: context.models,
        web: webOf(services, context),
        report: context.report,
        limit: parseMoney(max_usd.toFixed(12)),
      });
      const { answer, sources, read, searches, unread, calls, cut } = await research.run();
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

const results = z.object({ results: z.array(z.object({ title: z.string(), url: z.string(), snippet: z.string() })) });
const page = z.object({ url: z.string(), title: z.string().default(''), markdown: z.string() });

/** The web as the tools of their own see it, with all their guards. */
function webOf(services: ToolServices, context: ToolContext): Web {
  const [searching, reading] = [webSearchTool(services), fetchPageTool(services)];
  const use = async (tool: Tool, input: Record<string, unknown>): Promise<unknown> =>
    (await tool.run(tool.input.parse(input), { ...context, report: () => undefined })).result;
  return {
    search: async (query) => results.parse(await use(searching, { query, count: 10 })).results,
    read: async (url) => {
      const { url: address, title, markdown } = page.parse(await use(reading, { url, max_characters: 60_000 }));
      return { url: address, title, text: markdown };
    },
  };
}
