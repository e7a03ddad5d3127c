// Shows an author the previews of their app next to what is in production. Only the operator creates previews, from the
// references of the repository.
import { z } from 'zod';
import type { AppsSite } from '../../../crds/names.ts';
import { readPreviews } from '../../../crds/effective-settings.ts';
import { formatReference, shouldHavePreviews } from '../../../crds/previews.ts';
import { toPublicStatus } from '../../../crds/public-status.ts';
import { defineEndpoint, type Endpoint } from '../../http/index.ts';
import type { App, AppIndex } from '../hosted-apps.ts';
import { readingProblems } from '../problems.ts';
import { describeStatus, resolveUrl } from '../status-view.ts';
import type { AuthorAccess } from './access.ts';
import { slugParams } from './endpoints.ts';

const deployView = z.object({
  commit: z.string().optional().describe('Newest commit. Not set until it is known.'),
  status: z.enum(['live', 'in_pipeline', 'rejected']),
  message: z.string().describe('The status in a sentence. Of a rejection, the first line.'),
  url: z.string(),
  serving: z.string().optional().describe('Commit that serves the URL. Not set if none does.'),
  serving_since: z.string().optional().describe('Since when it serves, RFC 3339.'),
  asleep: z.boolean().describe('Whether it sleeps until the next request.'),
  wakes_in_ms: z
    .int()
    .optional()
    .describe(
      'Median of its last wakes in milliseconds, from a request to the first connection. Not set if it has not slept.',
    ),
});

export const previewsView = z.object({
  enabled: z.boolean().describe('Whether moorage.yaml of the default branch asks for previews.'),
  pull_requests: z.boolean(),
  branches: z.array(z.string()).describe('Patterns of branches.'),
  limit: z.int().describe('Maximum number that moorage.yaml asks for. The installation can allow fewer.'),
  production: deployView,
  previews: z.array(
    deployView.extend({
      name: z.string().describe('First label of its domain.'),
      reference: z.string().describe('Git reference that it shows, such as refs/pull/12/head.'),
      label: z.string().describe('The same for people: #12, !12 or the name of the branch.'),
      created_at: z.string().describe('RFC 3339.'),
    }),
  ),
});

interface PreviewServices {
  readonly apps: Pick<AppIndex, 'listPreviews'>;
  readonly site: AppsSite;
  readonly access: AuthorAccess;
}

export function createPreviewEndpoint({ access, apps, site }: PreviewServices): Endpoint {
  return defineEndpoint({
    method: 'GET',
    path: '/api/apps/{slug}/previews',
    operation: 'listPreviews',
    tag: 'apps',
    summary: 'List the previews of an app',
    description:
      'The pull requests and branches that run next to the app, with what is in production. `previews` in moorage.yaml of the default branch switches them on.',
    params: slugParams,
    output: previewsView,
    outputDescription: 'Production and the previews.',
    returnsCallerData: true,
    problems: readingProblems,
    head: 'as GET',
    handler: async ({ params }, context) => {
      const { app } = await access.identify(params.slug, context, 'listPreviews');
      return toPreviewsView(app, apps.listPreviews(app), site);
    },
  });
}

export function toPreviewsView(app: App, previews: readonly App[], site: AppsSite): z.input<typeof previewsView> {
  const { pullRequests, branches, limit } = readPreviews(app);
  return {
    enabled: shouldHavePreviews({ pullRequests, branches }),
    pull_requests: pullRequests,
    ...{ branches, limit, production: toDeployView(app, site) },
    previews: previews.map((preview) => {
      const { reference = '' } = preview.spec.previewOf ?? {};
      const { name, creationTimestamp } = preview.metadata;
      return {
        ...toDeployView(preview, site),
        name,
        reference,
        label: formatReference(reference),
        created_at: creationTimestamp,
      };
    }),
  };
}

function toDeployView(app: App, site: AppsSite): z.input<typeof deployView> {
  const status = toPublicStatus(app);
  const url = resolveUrl(app, site);
  const { source, served, idle, rejection } = app.status ?? {};
  const message = rejection?.message ?? describeStatus(status, url, source?.commit);
  return {
    commit: source?.commit,
    status: status.status,
    message: message.split('\n', 1)[0] ?? '',
    url,
    serving: served?.commit,
    serving_since: served?.since,
    asleep: idle?.state === 'Asleep',
    wakes_in_ms: idle?.wakes?.p50Ms,
  };
}
