// GET /api/projects and /api/projects/{slug}: the apps of this installation, with their state, stars and use.
import { z } from 'zod';
import { catalogSlugs, slugPattern } from '../../../crds/names.ts';
import { defineEndpoint, type Endpoint, JsonAnswer } from '../../http/index.ts';
import { createNextLink, pageFields } from '../paging.ts';
import { orders, type Projects } from './projects.ts';
import { categories, projectDetail, projectList, unknownProject } from './views.ts';
import { projectStates } from './records.ts';

const listPath = '/api/projects';
/** Short: an app becomes live at any time. */
const maxAgeSeconds = 15;

const query = z.strictObject({
  ...pageFields,
  category: categories.optional().describe(`Only apps in this category: ${categories.options.join(', ')}.`),
  state: z
    .enum([...projectStates, 'all'])
    .default('live')
    .describe(`Only apps in this state: ${projectStates.join(', ')}; all: in any.`),
  q: z
    .string()
    .max(200)
    .optional()
    .describe('Words that must all occur in slug, title, description or address, in any case and either language.'),
  sort: z
    .enum(orders)
    .default('name')
    .describe('name (by title), stars (most first) or since (newest first); unknown values come last.'),
});

const params = z.strictObject({
  slug: z
    .string()
    .min(1)
    .max(100)
    // In OpenAPI only: any other slug is answered with 404 and the nearest ones.
    .meta({
      anyOf: [
        { type: 'string', enum: [...catalogSlugs] },
        { type: 'string', pattern: slugPattern },
      ],
    })
    .describe(`Slug of the app: one of the catalog (${catalogSlugs.join(', ')}), or that of a submitted app.`),
});

export function createProjectEndpoints(projects: Projects, baseUrl: string): Endpoint[] {
  return [
    defineEndpoint({
      method: 'GET',
      head: 'as GET',
      path: '/api/projects',
      operation: 'listProjects',
      tag: 'catalog',
      summary: 'List the hosted apps',
      description:
        'Live apps with upstream repository, stars, category, licence, state and URL. With `state`, catalog and submitted apps in another state; `state=all` lists every app. The Link header contains the next page too.',
      query,
      output: projectList,
      maxAgeSeconds,
      outputDescription: 'One page of apps.',
      handler({ query }) {
        const { items, total, next: cursor } = projects.list(query);
        const next = createNextLink(`${baseUrl}${listPath}`, query, cursor);
        return Promise.resolve(new JsonAnswer({ projects: [...items], total, next: next.url }, next.headers));
      },
    }),
    defineEndpoint({
      method: 'GET',
      head: 'as GET',
      path: '/api/projects/{slug}',
      operation: 'getProject',
      tag: 'catalog',
      summary: 'Get one hosted app',
      description:
        "The list entry, with the served commit, the app's use in the last 24 hours, 7 and 30 days as recorded in the ledger, and its measured benchmark. Values that are not measured are null, with the reason in `unmeasured`.",
      params,
      output: projectDetail,
      maxAgeSeconds,
      outputDescription: 'The app.',
      problems: [unknownProject],
      handler: ({ params }) => projects.getDetail(params.slug),
    }),
  ];
}
