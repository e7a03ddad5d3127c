// The tool list_apps: lists the hosted apps that are live.
import { z } from 'zod';
import { callAppPath } from '../../../http/index.ts';
import { type ToolDependencies, defineTool, type Tool } from '../../tool.ts';

const app = z.object({
  slug: z.string().describe('Name of the app: the first label of its host name.'),
  title: z.string().describe('Title of the app.'),
  description: z.string().describe('What the app does, in one line.'),
  category: z.string().nullable().describe('Category; null if the author set none.'),
  url: z.string().describe('URL of the app.'),
  call_url: z
    .string()
    .describe(
      'URL for metered calls: POST {"method", "path", "query", "headers", "body"} as JSON, or send any request below it.',
    ),
  repo: z.string().describe('URL of the source repository.'),
});

export function createListAppsTool(services: ToolDependencies): Tool {
  return defineTool({
    name: 'list_apps',
    title: 'List hosted apps',
    description:
      'Lists the open-source apps that are hosted here and live, each with its URL, category and source repository. Use it to find an app for a task; the other tools do not require an app.',
    input: z.strictObject({
      category: z.string().min(1).max(100).optional().describe('List only apps of this category.'),
      query: z
        .string()
        .min(1)
        .max(200)
        .optional()
        .describe(
          'List only apps that have all of these words in their slug, title, description, category or repository.',
        ),
    }),
    aliases: { q: 'query', search: 'query' },
    output: z.object({
      apps: z.array(app).describe('Apps, sorted by slug.'),
      count: z.int().describe('Number of apps listed.'),
    }),
    example: {},
    price: '0',
    openWorld: false,
    run({ category, query }) {
      const words = (query ?? '')
        .toLowerCase()
        .split(/\s+/)
        .filter((word) => word !== '');
      const apps = services
        .apps()
        .filter((live) => category === undefined || live.category?.toLowerCase() === category.toLowerCase())
        .filter(({ slug, title, description, category: kind = '', repo }) => {
          const text = [slug, title, description, kind, repo].join('\n').toLowerCase();
          return words.every((word) => text.includes(word));
        })
        .map(({ slug, title, description, category: kind, url, repo }) => ({
          slug,
          title,
          description,
          category: kind ?? null,
          url,
          call_url: `${services.baseUrl}${callAppPath.replace('{slug}', slug)}`,
          repo,
        }))
        .sort((one, other) => (one.slug < other.slug ? -1 : 1));
      return Promise.resolve({ result: { apps, count: apps.length } });
    },
  });
}
