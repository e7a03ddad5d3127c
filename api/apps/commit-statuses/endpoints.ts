// The endpoints for an author's forge token: it is written, and never shown. Its state says which statuses were reported,
// and whether the forge rejects the token.
import { z } from 'zod';
import { Problem } from '../../../lib/problem.ts';
import { ledgerUnavailable, ledgerUnconfigured } from '../../billing/index.ts';
import { defineEndpoint, type Endpoint } from '../../http/index.ts';
import type { AuthorAccess } from '../author/access.ts';
import { actionView, changeProblems, slugParams } from '../author/endpoints.ts';
import { type App, formatKeyRepository, readRepository } from '../hosted-apps.ts';
import { forgeUnsupported, noForgeToken, readingProblems } from '../problems.ts';
import { forgeKinds } from '../sign-in/config.ts';
import { findForge, type ForgeProvider, statusName, statusState } from './forges.ts';
import type { CommitStatusStore, ForgeTokens, StatusRow, TokenRow } from './store.ts';

export interface ForgeTokenServices {
  readonly access: Pick<AuthorAccess, 'identify' | 'act'>;
  readonly store: CommitStatusStore;
  readonly tokens: ForgeTokens;
  readonly providers: readonly ForgeProvider[];
}

const path = '/api/apps/{slug}/forge-token';
const listedStatuses = 20;
const maximumCharacters = 500;

export function createForgeTokenEndpoints(services: ForgeTokenServices): Endpoint[] {
  return [createStateEndpoint(services), createSetEndpoint(services), createDeleteEndpoint(services)];
}

export const forgeTokenView = z.object({
  repository: z.string().describe('Host, owner and name of the repository whose forge gets the statuses.'),
  forge: z.enum(forgeKinds).optional().describe('gitea stands for Forgejo, too. Not set if the forge is not known.'),
  reason: z.string().optional().describe('Why no token can be set.'),
  set: z.boolean(),
  set_at: z.string().optional().describe('RFC 3339.'),
  refused: z
    .object({ at: z.string(), status: z.int(), message: z.string() })
    .optional()
    .describe('Set if the forge rejects the token. It is not used again until you set another one.'),
  statuses: z
    .array(
      z.object({
        commit: z.string(),
        state: statusState.describe('ended: the build was given up before it had a result.'),
        description: z.string(),
        target_url: z.string(),
        at: z.string().describe('When the status changed, RFC 3339.'),
        delivery: z.enum(['waiting', 'delivered', 'abandoned']),
        attempts: z.int(),
        next_attempt_at: z.string().optional(),
        error: z.string().optional().describe('What went wrong in the last attempt.'),
      }),
    )
    .describe(`The newest ${listedStatuses}, of the app and its previews.`),
});

function createStateEndpoint({ access, store, providers }: ForgeTokenServices): Endpoint {
  return defineEndpoint({
    method: 'GET',
    path,
    operation: 'getForgeToken',
    tag: 'apps',
    summary: 'Get the state of the forge token',
    description: `Whether a token is set, whether the forge accepts it, and the last statuses that were reported as \`${statusName}\`. The token is never shown.`,
    params: slugParams,
    output: forgeTokenView,
    outputDescription: 'The state, without the token.',
    returnsCallerData: true,
    problems: [...readingProblems, ledgerUnconfigured, ledgerUnavailable],
    head: 'as GET',
    handler: async ({ params }, context) => {
      const { app } = await access.identify(params.slug, context, 'getForgeToken');
      const { uid } = app.metadata;
      const [token, statuses] = await Promise.all([store.findToken(uid), store.list(uid, listedStatuses)]);
      return {
        repository: formatKeyRepository(app),
        ...describeForge(app, providers),
        set: token !== undefined,
        set_at: token?.set_at.toISOString(),
        refused: describeRefusal(token),
        statuses: statuses.map((row) => toStatusView(row, token)),
      };
    },
  });
}

function describeForge(
  app: App,
  providers: readonly ForgeProvider[],
): Pick<z.input<typeof forgeTokenView>, 'forge' | 'reason'> {
  try {
    return { forge: findForge(readRepository(app), providers).kind };
  } catch (error) {
    if (error instanceof Problem) return { reason: error.message };
    throw error;
  }
}

const refusals: Readonly<Record<number, string>> = {
  401: 'The forge does not accept the token. It may have expired or been revoked.',
  403: 'The token may not set commit statuses of the repository. Give it that permission, or make another one.',
  404: 'With this token the forge does not find the repository. Give the token access to it.',
};

function describeRefusal(token: TokenRow | undefined): z.input<typeof forgeTokenView>['refused'] {
  if (token === undefined || token.refused_at === null || token.refused_status === null) return undefined;
  const { refused_at: at, refused_status: status } = token;
  const message = `${refusals[status] ?? 'The forge rejects the token.'} Nothing is reported until you set a token again.`;
  return { at: at.toISOString(), status, message };
}

function toStatusView(
  { due_at: due, changed_at: changed, last_error: error, ...row }: StatusRow,
  token: TokenRow | undefined,
): z.input<typeof forgeTokenView>['statuses'][number] {
  const isDue = row.delivery === 'waiting' && token !== undefined && token.refused_at === null;
  return {
    ...row,
    at: changed.toISOString(),
    next_attempt_at: isDue ? due.toISOString() : undefined,
    error: error ?? undefined,
  };
}

function createSetEndpoint({ access, store, tokens, providers }: ForgeTokenServices): Endpoint {
  return defineEndpoint({
    method: 'PUT',
    path,
    operation: 'setForgeToken',
    tag: 'apps',
    summary: 'Set the forge token of an app',
    description: `With it, Moorage reports a status \`${statusName}\` for each commit that it builds, also those of previews. The token needs the right to set commit statuses of this one repository and no other. It is stored as a Secret that no app can read, no endpoint shows it, and it is sent to the forge of the repository alone. Setting it again replaces it.`,
    params: slugParams,
    body: z.strictObject({
      token: z
        .string()
        .min(1)
        .max(maximumCharacters)
        .regex(/^[\x21-\x7e]*$/, 'must be printable ASCII without spaces')
        .describe('An access token of GitHub, GitLab, Gitea or Forgejo. It is never shown again.'),
    }),
    output: actionView,
    outputDescription: 'The token is stored. The status of the newest commit follows in a few seconds.',
    problems: [...changeProblems, forgeUnsupported],
    handler: async ({ params: { slug }, body }, context) => {
      const repository = await access.act(
        slug,
        context,
        { operation: 'setForgeToken', action: 'set-forge-token' },
        async ({ app }) => {
          findForge(readRepository(app), providers);
          const { uid } = app.metadata;
          // The version first: a token without its row is deleted, and one of another version is not used.
          const { version, repository: stored } = await store.setToken(uid, formatKeyRepository(app));
          await tokens.write(uid, { version, token: body.token });
          return stored;
        },
      );
      return {
        slug,
        message: `Commit statuses go to ${repository}. GET /api/apps/${slug}/forge-token shows whether the forge accepts the token.`,
      };
    },
  });
}

function createDeleteEndpoint({ access, store, tokens }: ForgeTokenServices): Endpoint {
  return defineEndpoint({
    method: 'DELETE',
    path,
    operation: 'deleteForgeToken',
    tag: 'apps',
    summary: 'Delete the forge token of an app',
    description:
      'Nothing more is reported, not even what is waiting. Statuses that the forge has stay there. Revoke the token at the forge, too.',
    params: slugParams,
    output: actionView,
    outputDescription: 'The token is deleted.',
    problems: [...changeProblems, noForgeToken],
    handler: async ({ params: { slug } }, context) => {
      await access.act(
        slug,
        context,
        { operation: 'deleteForgeToken', action: 'delete-forge-token' },
        async ({ app: { metadata } }) => {
          // The row first: without it, nothing is reported.
          const isDeleted = await store.deleteToken(metadata.uid);
          await tokens.write(metadata.uid, undefined);
          if (!isDeleted) throw new Problem(noForgeToken, `${slug} has no forge token, so nothing was deleted.`);
        },
      );
      return { slug, message: 'The token is deleted, and no more statuses are reported.' };
    },
  });
}
