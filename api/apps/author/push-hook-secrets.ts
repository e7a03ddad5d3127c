// The secrets of push hooks: derived for each app and version, so that none is stored, and the endpoints that show and replace
// them. After a replacement the previous secret stays valid for a day, so that the forge can be given the new one in time.
import { createHmac } from 'node:crypto';
import { z } from 'zod';
import { Problem } from '../../../lib/problem.ts';
import { derivePurposeKey } from '../../../lib/sealed-text.ts';
import { ledgerUnconfigured, type OpenLedger, prefixStatements } from '../../billing/index.ts';
import { defineEndpoint, type Endpoint } from '../../http/index.ts';
import { hooksUnconfigured } from '../problems.ts';
import { actionView, type AuthorServices, changeProblems, slugParams } from './endpoints.ts';

/** Hours for which the previous secret stays valid. */
const overlapHours = 24;

export interface HookSecretOptions {
  readonly baseUrl: string;
  /** The secrets of hooks are derived from it; without it, there are none. */
  readonly secret: string | undefined;
  readonly versions: Pick<HookVersions, 'read' | 'replace' | 'endPrevious'>;
}

/** The secrets of an app's hook that are valid now. */
interface HookVersion {
  readonly version: number;
  /** Until when the version before is valid; undefined: it is not. */
  readonly previousUntil: Date | undefined;
}

const firstVersion: HookVersion = { version: 1, previousUntil: undefined };

const defineStatement = prefixStatements('push-hooks');
const row = z.object({ version: z.int(), previous_until: z.date().nullable(), is_previous_valid: z.boolean() });
const columns = 'version, previous_until, coalesce(previous_until > clock_timestamp(), false) as is_previous_valid';
const statements = {
  read: defineStatement('read', `select ${columns} from author.push_hook where app = $1`, row),
  /** $1 app, $2 hours for which the previous secret stays valid. */
  replace: defineStatement(
    'replace',
    `insert into author.push_hook as h (app, version, previous_until)
      values ($1, 2, clock_timestamp() + $2::int * interval '1 hour')
      on conflict (app) do update set version = h.version + 1, replaced_at = clock_timestamp(),
        previous_until = clock_timestamp() + $2::int * interval '1 hour'
      returning ${columns}`,
    row,
  ),
  endPrevious: defineStatement(
    'end-previous',
    `update author.push_hook set previous_until = null
      where app = $1 and previous_until > clock_timestamp() returning version`,
    z.object({ version: z.int() }),
  ),
} as const;

/** Which versions of the secret of an app's hook are valid. */
export class HookVersions {
  readonly #database: () => OpenLedger['database'];

  /** @param database throws Problem (ledger-unconfigured, ledger-unavailable) while there is none */
  constructor(database: () => OpenLedger['database']) {
    this.#database = database;
  }

  async read(app: string): Promise<HookVersion> {
    let database;
    try {
      database = this.#database();
    } catch (error) {
      // Without a database no secret can have been replaced.
      if (error instanceof Problem && error.type === ledgerUnconfigured) return firstVersion;
      throw error;
    }
    const [found] = await database.replay(statements.read, [app]);
    return found === undefined ? firstVersion : toHookVersion(found);
  }

  /** Makes a new version. @param hours for which the previous one stays valid; a version before that one ends */
  async replace(app: string, hours: number): Promise<HookVersion> {
    const [found] = await this.#database().query(statements.replace, [app, hours]);
    if (found === undefined) throw new Error('the version of the hook was not stored');
    return toHookVersion(found);
  }

  /** Ends the previous version. @returns whether it was valid */
  async endPrevious(app: string): Promise<boolean> {
    return (await this.#database().query(statements.endPrevious, [app])).length > 0;
  }
}

function toHookVersion({ version, previous_until, is_previous_valid }: z.output<typeof row>): HookVersion {
  return { version, previousUntil: is_previous_valid ? (previous_until ?? undefined) : undefined };
}

/** Derives a secret of an app's push hook. @param secret of the installation, at least 32 characters */
export function derivePushHookSecret(uid: string, secret: string, version = 1): string {
  return createHmac('sha256', derivePurposeKey(secret, 'moorage push hook 1'))
    .update(`${version}\n${uid}`)
    .digest('hex');
}

/** The secrets with which an event of an app may be signed now. */
export async function listHookSecrets(
  uid: string,
  { secret, versions }: Pick<HookSecretOptions, 'secret' | 'versions'>,
): Promise<string[]> {
  const installation = assertConfigured(secret);
  const { version, previousUntil } = await versions.read(uid);
  const valid = previousUntil === undefined ? [version] : [version, version - 1];
  return valid.map((each) => derivePushHookSecret(uid, installation, each));
}

function assertConfigured(secret: string | undefined): string {
  if (secret !== undefined) return secret;
  throw new Problem(hooksUnconfigured, 'This installation offers no push hooks. New commits are found by polling.');
}

export const hookSecretView = z.object({
  url: z.string(),
  secret: z.string(),
  previous_valid_until: z
    .string()
    .optional()
    .describe('Until when events that are signed with the previous secret are accepted, RFC 3339.'),
  setup: z
    .record(z.string(), z.string())
    .describe('Where to enter them, by forge: github, gitlab, gitea, forgejo and generic.'),
  message: z.string(),
});

export function createHookSecretEndpoints({ access }: AuthorServices, options: HookSecretOptions): Endpoint[] {
  const { baseUrl, secret, versions } = options;
  const buildView = (slug: string, uid: string, hook: HookVersion): z.input<typeof hookSecretView> => {
    const url = `${baseUrl}/api/apps/${slug}/push-hook`;
    const previous = hook.previousUntil?.toISOString();
    return {
      url,
      secret: derivePushHookSecret(uid, assertConfigured(secret), hook.version),
      previous_valid_until: previous,
      setup: describeSetup(url),
      message: `Enter it at your git forge as the secret of the webhook for ${url}.${previous === undefined ? '' : ` The previous secret is valid until ${previous}.`}`,
    };
  };
  const shared = {
    tag: 'apps',
    params: slugParams,
    outputDescription: 'The address, the secret, and where to enter them.',
    problems: [...changeProblems, hooksUnconfigured],
  } as const;
  const path = '/api/apps/{slug}/push-hook-secret';
  return [
    defineEndpoint({
      ...shared,
      method: 'POST',
      path,
      operation: 'getPushHookSecret',
      summary: 'Get the address and the secret of the push hook',
      description:
        'With them, a git forge reports each push, and the commit is built immediately. The secret belongs to this app and is the same until it is replaced; it can request a look at the repository and nothing else.',
      output: hookSecretView,
      handler: async ({ params: { slug } }, context) =>
        access.act(
          slug,
          context,
          { operation: 'getPushHookSecret', action: 'show-push-hook-secret' },
          async ({ app: { metadata } }) => {
            assertConfigured(secret);
            return buildView(slug, metadata.uid, await versions.read(metadata.uid));
          },
        ),
    }),
    defineEndpoint({
      ...shared,
      method: 'POST',
      path: `${path}/replace`,
      operation: 'replacePushHookSecret',
      summary: 'Replace the secret of the push hook',
      description: `Makes a new secret. The previous one stays valid for ${overlapHours} hours, unless end_previous is true; one before that ends immediately.`,
      body: z.strictObject({
        end_previous: z
          .boolean()
          .default(false)
          .describe('Ends the previous secret immediately, such as when others know it.'),
      }),
      output: hookSecretView,
      handler: async ({ params: { slug }, body }, context) => {
        const detail = { end_previous: body.end_previous };
        const operation = 'replacePushHookSecret';
        return access.act(
          slug,
          context,
          { operation, action: 'replace-push-hook-secret', detail },
          async ({ app: { metadata } }) => {
            assertConfigured(secret);
            const hook = await versions.replace(metadata.uid, body.end_previous ? 0 : overlapHours);
            return buildView(slug, metadata.uid, hook);
          },
        );
      },
    }),
    defineEndpoint({
      ...shared,
      method: 'DELETE',
      path: `${path}/previous`,
      operation: 'endPreviousPushHookSecret',
      summary: 'End the previous secret of the push hook',
      description: 'Only events that are signed with the current secret are accepted from now on.',
      output: actionView,
      outputDescription: 'The previous secret is not valid.',
      problems: changeProblems,
      handler: async ({ params: { slug } }, context) =>
        access.act(
          slug,
          context,
          { operation: 'endPreviousPushHookSecret', action: 'end-previous-push-hook-secret' },
          async ({ app: { metadata } }) => {
            const isEnded = await versions.endPrevious(metadata.uid);
            const message = isEnded ? 'The previous secret is not valid any more.' : 'There was no previous secret.';
            return { slug, message };
          },
        ),
    }),
  ];
}

function describeSetup(url: string): Record<string, string> {
  const form =
    'Payload URL or Target URL: url. Content type: application/json. Secret: secret. Trigger: push events, and pull requests if they have previews.';
  return {
    github: `Repository, Settings, Webhooks, Add webhook. ${form}`,
    gitlab:
      'Project, Settings, Webhooks, Add new webhook. URL: url. Secret token: secret. Trigger: push events, and merge requests if they have previews.',
    gitea: `Repository, Settings, Webhooks, Add Webhook, Gitea. ${form}`,
    forgejo: `Repository, Settings, Webhooks, Add webhook, Forgejo. ${form}`,
    generic: `After a push: curl -X POST -H "Authorization: Bearer $SECRET" ${url}. Or send X-Moorage-Signature: sha256=<HMAC-SHA256 of the body by the secret, in hexadecimal>.`,
  };
}
