// The endpoints with which an author deletes an app: with a grace period in which it can be restored, and an export of what
// belongs to the author.
import { z } from 'zod';
import { listPublicSettings } from '../../../crds/effective-settings.ts';
import { ledgerUnavailable, ledgerUnconfigured } from '../../billing/index.ts';
import { defineEndpoint, type Endpoint, JsonAnswer } from '../../http/index.ts';
import { readingProblems } from '../problems.ts';
import { pastRun, toPastRunView } from '../status-view.ts';
import {
  actionView,
  auditEntryView,
  changeControl,
  changeProblems,
  releaseView,
  slugParams,
  toAppView,
  toAuditEntryView,
  type AuthorServices,
} from './endpoints.ts';

export interface DeletionOptions {
  /** Milliseconds from the request until the app is deleted. */
  readonly graceMs: number;
}

/** Audit entries in an export. */
const exportedEntries = 200;

export function createDeletionEndpoints(services: AuthorServices, options: DeletionOptions): Endpoint[] {
  return [createDeleteEndpoint(services, options), createRestoreEndpoint(services), createExportEndpoint(services)];
}

function createDeleteEndpoint(
  { access, writeControl, now = () => new Date() }: AuthorServices,
  { graceMs }: DeletionOptions,
): Endpoint {
  return defineEndpoint({
    method: 'DELETE',
    path: '/api/apps/{slug}',
    operation: 'deleteApp',
    tag: 'apps',
    summary: 'Delete an app',
    description:
      'Suspends the app now, and deletes it after a grace period, in which it can be restored. It is offered to nobody meanwhile. Its volumes are kept for a while after that, as the installation keeps those of every deleted app. Deleting it again does not change the time.',
    params: slugParams,
    output: actionView.extend({ delete_after: z.string().describe('When it is deleted, RFC 3339.') }),
    outputDescription: 'The app is suspended, and deleted at that time.',
    problems: changeProblems,
    handler: async ({ params: { slug } }, context) => {
      const app = await access.act(slug, context, { operation: 'deleteApp', action: 'delete' }, (authorized) =>
        writeControl(authorized.app, ({ deleteAfter }) =>
          deleteAfter === undefined ? { deleteAfter: new Date(now().getTime() + graceMs).toISOString() } : {},
        ),
      );
      const deleteAfter = app.spec.control?.deleteAfter ?? new Date(now().getTime() + graceMs).toISOString();
      return {
        slug,
        delete_after: deleteAfter,
        message: `The app is suspended, and is deleted after ${deleteAfter}. Until then, POST /api/apps/${slug}/restore brings it back, and GET /api/apps/${slug}/export has its record.`,
      };
    },
  });
}

function createRestoreEndpoint(services: AuthorServices): Endpoint {
  return defineEndpoint({
    method: 'POST',
    path: '/api/apps/{slug}/restore',
    operation: 'restoreApp',
    tag: 'apps',
    summary: 'Restore a deleted app',
    description: 'Takes a deletion back within its grace period. An app that was suspended before stays suspended.',
    params: slugParams,
    output: actionView,
    outputDescription: 'The deletion is cancelled.',
    problems: changeProblems,
    handler: async ({ params: { slug } }, context) => {
      const app = await changeControl(services, slug, context, { operation: 'restoreApp', action: 'restore' }, () => ({
        deleteAfter: undefined,
      }));
      const rest =
        app.spec.control?.suspended === true ? ` It is suspended; POST /api/apps/${slug}/resume starts it.` : '';
      return { slug, message: `The app is not deleted.${rest}` };
    },
  });
}

const exportView = z.object({
  exported_at: z.string().describe('RFC 3339.'),
  slug: z.string(),
  repository: z.string(),
  created_at: z.string().describe('RFC 3339.'),
  control: z.record(z.string(), z.unknown()).describe('What the author set through the API, without secret values.'),
  settings: z
    .array(z.object({ field: z.string(), value: z.string(), from: z.string() }))
    .describe('Effective value of each field that moorage.yaml sets, and its origin.'),
  secrets: z.array(z.string()).describe('Names of the variables whose values the author has set.'),
  releases: z.array(releaseView).describe('Kept releases, newest first.'),
  history: z.array(pastRun).describe('Past pipeline runs, newest first.'),
  audit: z.array(auditEntryView).describe(`The newest ${exportedEntries} actions of authors, newest first.`),
});

function createExportEndpoint({ access, audit, site, now = () => new Date() }: AuthorServices): Endpoint {
  return defineEndpoint({
    method: 'GET',
    path: '/api/apps/{slug}/export',
    operation: 'exportApp',
    tag: 'apps',
    summary: 'Export the record of an app',
    description:
      'A JSON document with what belongs to the author: repository, control, effective settings, names of secrets, releases, history and audit log. It has no secret values and no files of volumes.',
    params: slugParams,
    output: exportView,
    outputDescription: 'The record, to be saved as a file.',
    responseHeaders: { 'content-disposition': 'attachment, with the name of a file.' },
    returnsCallerData: true,
    problems: [...readingProblems, ledgerUnconfigured, ledgerUnavailable],
    head: 'as GET',
    handler: async ({ params: { slug } }, context) => {
      const { app } = await access.identify(slug, context, 'exportApp');
      const entries = await audit.list(app.metadata.uid, exportedEntries);
      const { repository, control, releases } = toAppView(app, site);
      const record = {
        exported_at: now().toISOString(),
        slug,
        repository,
        created_at: app.metadata.creationTimestamp,
        control,
        settings: listPublicSettings(app) ?? [],
        secrets: (app.spec.control?.secrets ?? []).map(({ name }) => name),
        releases,
        history: (app.status?.history ?? []).map(toPastRunView),
        audit: entries.map(toAuditEntryView),
      };
      return new JsonAnswer(record, { 'content-disposition': `attachment; filename="${slug}.json"` });
    },
  });
}
