// list_apps: the hosted apps that are live now.
import { z } from 'zod';
import { callPath } from '../../../http/paths.ts';
import type { ToolServices } from '../../engine/tool-dependencies.ts';
import { defineTool, type Tool } from '../../tool.ts';

const app = z.object({
  slug: z.string().describe('Name of the app, the first label of its address'),
  title: z.string().describe('What people call it'),
  description: z.string().describe('What it does, in a line'),
  category: z.string().nullable().describe('Kind of app; null when its author gave none'),
  url: z.string().describe('Where it answers'),
  call_url: z
    .string()
    .describe(
      'Where it is called, metered: POST {"method", "path", "query", "headers", "body"} as JSON, or any request of its own below it',
    ),
  repo: z.string().describe('Address of its source repository'),
});

export function listAppsTool(services: ToolServices): Tool {
  return defineTool({
    name: 'list_apps',
    title: 'List hosted apps',
    description:
      'Lists the open-source apps that are hosted here and live now, each with its address, category and source repository. Take it to find an app for a task; the other tools do not need one.',
    input: z.strictObject({
      category: z.string().min(1).max(100).optional().describe('Only apps of this category'),
      query: z
        .string()
        .min(1)
        .max(200)
        .optional()
        .describe('Only apps with all of these words in slug, title, description, category or repository'),
    }),
    aliases: { q: 'query', search: 'query' },
    output: z.object({
      apps: z.array(app).describe('The apps, by slug'),
      count: z.int().describe('How many are listed'),
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
          call_url: `${services.baseUrl}${callPath.replace('{slug}', slug)}`,
          repo,
        }))
        .sort((one, other) => (one.slug < other.slug ? -1 : 1));
      return Promise.resolve({ result: { apps, count: apps.length } });
    },
  });
}
