// The endpoint with which an author renames an app, and the claims that let at most one app get a slug. The HostedApp keeps its
// name, so its objects, data and records stay where they are; spec.control.slug has the public name.
import { z } from 'zod';
import { formatAppUrl, isCatalogSlug } from '../../../crds/names.ts';
import { findSlugFault, maximumFormerSlugs, readSlug, redirectDays, renameTo } from '../../../crds/slugs.ts';
import { Problem } from '../../../lib/problem.ts';
import { ledgerUnavailable, ledgerUnconfigured, type OpenLedger, prefixStatements } from '../../billing/index.ts';
import { createValidationProblem, defineEndpoint, type Endpoint } from '../../http/index.ts';
import type { App, AppIndex } from '../hosted-apps.ts';
import { settingRefused, slugTaken } from '../problems.ts';
import { actionView, type AuthorServices, changeProblems, slugParams } from './endpoints.ts';

/** Longer than the cache of any replica is behind. */
const claimSeconds = 60;

const defineStatement = prefixStatements('slug-claims');
const statements = {
  /** $1 slug, $2 holder, $3 seconds. The same holder may claim it again. */
  claim: defineStatement(
    'claim',
    `insert into author.slug_claim as c (slug, holder, expires_at)
      values ($1, $2, clock_timestamp() + $3::int * interval '1 second')
      on conflict (slug) do update set holder = excluded.holder, expires_at = excluded.expires_at
        where c.holder = excluded.holder or c.expires_at < clock_timestamp()
      returning slug`,
    z.object({ slug: z.string() }),
  ),
  release: defineStatement('release', 'delete from author.slug_claim where slug = $1 and holder = $2', z.unknown()),
  clean: defineStatement('clean', 'delete from author.slug_claim where expires_at < clock_timestamp()', z.unknown()),
} as const;

/** Claims of slugs, which all replicas of the API share. */
export class SlugClaims {
  readonly #database: () => OpenLedger['database'];

  /** @param database throws Problem (ledger-unconfigured, ledger-unavailable) while there is none */
  constructor(database: () => OpenLedger['database']) {
    this.#database = database;
  }

  /** Claims a slug for a minute. @returns false if another holder has claimed it */
  async claim(slug: string, holder: string): Promise<boolean> {
    await this.#database().query(statements.clean, []);
    return (await this.#database().query(statements.claim, [slug, holder, claimSeconds])).length > 0;
  }

  async release(slug: string, holder: string): Promise<void> {
    await this.#database().query(statements.release, [slug, holder]);
  }

  /**
   * Claims a slug while an app is created under it. A rename reads from the cluster after its own claim, so it sees the app.
   * Without a database no app is renamed either, so there is nothing to claim.
   *
   * @returns undefined if somebody else has claimed the slug
   */
  async hold<Result>(slug: string, holder: string, create: () => Promise<Result>): Promise<Result | undefined> {
    try {
      if (!(await this.claim(slug, holder))) return undefined;
    } catch (error) {
      if (error instanceof Problem && [ledgerUnconfigured, ledgerUnavailable].includes(error.type)) return create();
      throw error;
    }
    try {
      return await create();
    } finally {
      // It expires anyway.
      await this.release(slug, holder).catch(() => undefined);
    }
  }
}

export interface RenameOptions {
  readonly apps: Pick<AppIndex, 'findNameHolder'>;
  readonly claims: Pick<SlugClaims, 'claim' | 'release'>;
  /** The HostedApp of this name, as the API server has it now. */
  readonly readApp: (name: string) => Promise<App | undefined>;
}

export const renamedView = actionView.extend({
  former: z.string().describe('The slug until now.'),
  url: z.string().describe('The new address of the app, which works within a minute.'),
  redirects_until: z.string().describe('Until when the former slug leads to the app, RFC 3339.'),
});

export function createRenameEndpoint(services: AuthorServices, options: RenameOptions): Endpoint {
  const { access, writeControl, site, now = () => new Date() } = services;
  return defineEndpoint({
    method: 'POST',
    path: '/api/apps/{slug}/rename',
    operation: 'renameApp',
    tag: 'apps',
    summary: 'Rename an app',
    description: `Gives the app another slug, and so another address. Its data, releases, secrets, tokens, hooks, domains and records stay. The former slug redirects for ${redirectDays} days, in which nobody else gets it; the first slug of an app is never another app's while it exists. At most ${maximumFormerSlugs} former slugs redirect at the same time.`,
    params: slugParams,
    body: z.strictObject({
      slug: z.string().min(1).max(63).describe('The new slug: at most 40 lower-case letters, digits and hyphens.'),
    }),
    output: renamedView,
    outputDescription: 'The app has the new slug.',
    problems: [...changeProblems, settingRefused, slugTaken],
    handler: async ({ params, body: { slug } }, context) => {
      const fault = findSlugFault(slug);
      if (fault !== undefined)
        throw createValidationProblem([
          { in: 'body', field: 'slug', message: fault, fix: 'Choose another one, like my-app.' },
        ]);
      const detail = { slug };
      return access.act(params.slug, context, { operation: 'renameApp', action: 'rename', detail }, async ({ app }) => {
        const former = readSlug(app);
        assertRenamable(app, slug);
        const at = now();
        await claimSlug(app, slug, options);
        const renamed = await writeControl(app, (control) => {
          const stored = { ...app, spec: { ...app.spec, control } };
          // Another request was faster.
          assertRenamable(stored, slug);
          const change = renameTo(stored, slug, at);
          if (change.formerSlugs.length > maximumFormerSlugs) throw createTooManySlugs(change.formerSlugs);
          return { ...change, formerSlugs: [...change.formerSlugs] };
        });
        const until = renamed.spec.control?.formerSlugs?.find(({ name }) => name === former)?.until ?? '';
        return {
          ...{ slug, former, url: formatAppUrl(slug, site), redirects_until: until },
          message: `The app is called ${slug} now, and answers at its new address within a minute. ${former} redirects to it until ${until}. An image in which the build has stored the address needs a rebuild: POST /api/apps/${slug}/rebuild.`,
        };
      });
    },
  });
}

/** @throws Problem (setting-refused) */
function assertRenamable(app: App, slug: string): void {
  if (isCatalogSlug(app.metadata.name))
    throw new Problem(
      settingRefused,
      `slug: ${app.metadata.name} is an app of the catalog, which is known by this name. It cannot be renamed.`,
    );
  if (readSlug(app) === slug)
    throw new Problem(settingRefused, `slug: ${slug} is the name of the app already. Choose another one.`);
}

/** @throws Problem (slug-taken) */
async function claimSlug(app: App, slug: string, { apps, claims, readApp }: RenameOptions): Promise<void> {
  const { uid } = app.metadata;
  const isOther = (holder: App | undefined): boolean => holder !== undefined && holder.metadata.uid !== uid;
  const taken = new Problem(
    slugTaken,
    `slug: ${slug} is the name of another app, or was until lately. Choose another one.`,
  );
  if (isOther(apps.findNameHolder(slug))) throw taken;
  if (!(await claims.claim(slug, uid))) throw taken;
  // What was created or renamed before the claim is in the cluster, or in every cache.
  if (!isOther(await readApp(slug)) && !isOther(apps.findNameHolder(slug))) return;
  await claims.release(slug, uid);
  throw taken;
}

function createTooManySlugs(former: readonly { readonly name: string; readonly until: string }[]): Problem {
  const [first] = former.map(({ until }) => until).sort();
  return new Problem(
    settingRefused,
    `slug: ${maximumFormerSlugs} former slugs of the app redirect to it, which is the limit. Choose one of them, or wait until ${first ?? ''}.`,
  );
}
