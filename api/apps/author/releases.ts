// The endpoints with which an author chooses what runs: roll back to a kept release, deploy the newest commit, build it again.
import { readSlug } from '../../../crds/slugs.ts';
import { z } from 'zod';
import { isSuspended } from '../../../crds/control.ts';
import { annotations, formatRebuildRequest, parseRebuildRequest } from '../../../crds/names.ts';
import { keptReleases } from '../../../crds/status.ts';
import { Problem } from '../../../lib/problem.ts';
import { defineEndpoint, type Endpoint } from '../../http/index.ts';
import type { App } from '../hosted-apps.ts';
import { rebuildRefused, releaseNotKept, tooManyRebuilds } from '../problems.ts';
import type { RequestAnnotations } from './control.ts';
import { actionView, changeControl, changeProblems, slugParams, type AuthorServices } from './endpoints.ts';

/** Time between two rebuilds of an app. */
const rebuildMs = 60_000;

export function createReleaseEndpoints(services: AuthorServices): Endpoint[] {
  return [createRollbackEndpoint(services), createDeployEndpoint(services), createRebuildEndpoint(services)];
}

function createRollbackEndpoint({ access, writeControl }: AuthorServices): Endpoint {
  return defineEndpoint({
    method: 'POST',
    path: '/api/apps/{slug}/rollback',
    operation: 'rollBackApp',
    tag: 'apps',
    summary: 'Roll back to a kept release',
    description: `Runs the image and the settings of a kept release, without a build, and pins it: until the next deploy, no other commit is built or deployed. The last ${keptReleases} releases that have served are kept, and a pinned one for as long as it is pinned. The release that serves can be pinned too.`,
    params: slugParams,
    body: z.strictObject({
      commit: z
        .string()
        .regex(/^[0-9a-f]{7,64}$/, 'must be the ID of a commit, or its first digits, at least 7')
        .describe('Commit of a release of getApp: the full ID, or at least its first 7 digits.'),
    }),
    output: actionView.extend({ commit: z.string().describe('Full ID of the pinned commit.') }),
    outputDescription: 'The release is pinned. Follow its rollout with the status of the app.',
    problems: [...changeProblems, releaseNotKept],
    handler: async ({ params: { slug }, body }, context) => {
      const name = { operation: 'rollBackApp', action: 'rollback', detail: { commit: body.commit } } as const;
      const commit = await access.act(slug, context, name, async ({ app }) => {
        const release = findKeptCommit(app, body.commit);
        await writeControl(app, () => ({ release }));
        return release;
      });
      const message = `Commit ${commit.slice(0, 7)} is pinned. It replaces what runs as soon as it is ready, and nothing newer is deployed until POST /api/apps/${slug}/deploy.`;
      return { slug, commit, message };
    },
  });
}

/** @throws Problem (release-not-kept) */
function findKeptCommit(app: App, prefix: string): string {
  const { releases = [] } = app.status ?? {};
  const [commit, other] = new Set(releases.map((each) => each.commit).filter((each) => each.startsWith(prefix)));
  if (commit !== undefined && other === undefined) return commit;
  const kept = releases.map((each) => each.commit).join(', ');
  const listed = kept === '' ? 'No release of it has served yet.' : `Kept are: ${kept}.`;
  throw new Problem(
    releaseNotKept,
    `${other === undefined ? 'No kept release' : 'More than one kept release'} of ${readSlug(app)} has a commit that starts with ${prefix}. ${listed}`,
    { members: { releases: releases.map((each) => ({ commit: each.commit, ready_at: each.readyAt })) } },
  );
}

function createDeployEndpoint(services: AuthorServices): Endpoint {
  return defineEndpoint({
    method: 'POST',
    path: '/api/apps/{slug}/deploy',
    operation: 'deployApp',
    tag: 'apps',
    summary: 'Deploy the newest commit',
    description:
      'Removes the pin of a release, if there is one, and looks for a new commit now. What serves stays until the newest commit is ready.',
    params: slugParams,
    output: actionView,
    outputDescription: 'The deploy was accepted. Follow it with the status of the app.',
    problems: changeProblems,
    handler: async ({ params: { slug } }, context) => {
      await changeControl(
        services,
        slug,
        context,
        { operation: 'deployApp', action: 'deploy' },
        () => ({ release: undefined }),
        (_stored, now) => ({ [annotations.poll]: now.toISOString() }),
      );
      return { slug, message: 'The newest commit is built and deployed. /api/submit-status shows when it is done.' };
    },
  });
}

function createRebuildEndpoint(services: AuthorServices): Endpoint {
  return defineEndpoint({
    method: 'POST',
    path: '/api/apps/{slug}/rebuild',
    operation: 'rebuildApp',
    tag: 'apps',
    summary: 'Build the newest commit again',
    description:
      'Builds the newest commit again, for example with a newer base image, and deploys it. What serves stays until the new image is ready. At most once a minute.',
    params: slugParams,
    body: z.strictObject({
      cache: z
        .boolean()
        .default(true)
        .describe('false: no layer is taken from the cache, so that every step of the build runs again.'),
    }),
    output: actionView,
    outputDescription: 'The rebuild was accepted. Follow it with the status of the app.',
    problems: [...changeProblems, rebuildRefused, tooManyRebuilds],
    handler: async ({ params: { slug }, body }, context) => {
      await changeControl(
        services,
        slug,
        context,
        { operation: 'rebuildApp', action: 'rebuild', detail: { cache: body.cache } },
        () => ({}),
        (stored, now) => requestRebuild(stored, now, !body.cache),
      );
      const cache = body.cache ? '' : ' without the cache';
      return { slug, message: `The newest commit is built again${cache}. /api/submit-status shows when it is done.` };
    },
  });
}

/**
 * The annotations of a rebuild. A poll with the same value makes the operator build the commit that the poll finds.
 *
 * @throws Problem (rebuild-refused, too-many-rebuilds)
 */
function requestRebuild(app: App, now: Date, noCache: boolean): RequestAnnotations {
  const { metadata, spec } = app;
  const name = readSlug(app);
  if (isSuspended(spec))
    throw new Problem(rebuildRefused, `${name} is suspended. Resume it first, with POST /api/apps/${name}/resume.`);
  const pinned = spec.control?.release;
  if (pinned !== undefined)
    throw new Problem(
      rebuildRefused,
      `Commit ${pinned.slice(0, 7)} of ${name} is pinned. Deploy the newest commit first, with POST /api/apps/${name}/deploy.`,
    );
  const last = parseRebuildRequest(metadata.annotations?.[annotations.rebuild])?.at;
  const waitMs = last === undefined ? 0 : last.getTime() + rebuildMs - now.getTime();
  if (waitMs > 0) {
    const seconds = Math.ceil(waitMs / 1000);
    throw new Problem(tooManyRebuilds, `${name} was rebuilt within the last minute. Try again in ${seconds} seconds.`, {
      headers: { 'retry-after': String(seconds) },
    });
  }
  const value = formatRebuildRequest(now, noCache);
  return { [annotations.poll]: value, [annotations.rebuild]: value };
}
