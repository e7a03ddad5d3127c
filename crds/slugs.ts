// The names of an app. The name of its HostedApp is its ID: it never changes, and the app's objects and records carry it. The
// slug, at which people reach the app, is that name until its author renames the app.
import { z } from 'zod';
import { catalogSlugs, formatAppHost, formatAppUrl, isReserved, slugPattern, type AppsSite } from './names.ts';
import { addRules, createPatternRule, listBy, timestamp } from './values.ts';

/** How long an app is also reached by a name that it had before. */
export const redirectDays = 90;

/** Names that redirect to an app at the same time. Each of them is kept from everyone else. */
export const maximumFormerSlugs = 5;

/** A former name stays taken for this long after its end, until every process has noticed that end. */
const marginMs = 3_600_000;

const slugText = addRules(
  z.string().max(40),
  createPatternRule(
    slugPattern,
    'a slug has lower-case letters, digits and inner hyphens, starts with a letter, and has at most 40 characters',
  ),
);

const formerSlug = z.strictObject({
  name: slugText.describe('A slug that the app had.'),
  until: timestamp.max(40).describe('When it stops redirecting to the app. Nobody else gets it before.'),
});

export type FormerSlug = z.output<typeof formerSlug>;

/** Fields of spec.control. */
export const slugFields = {
  slug: slugText.optional().describe('Public name and subdomain of the app, if its author has renamed it.'),
  formerSlugs: listBy(z.array(formerSlug).max(maximumFormerSlugs), 'name')
    .optional()
    .describe('Slugs that the app had. They redirect to the current one until they end.'),
};

/** The parts of a HostedApp that name it. */
export interface NamedApp {
  readonly metadata: { readonly name: string };
  readonly spec: {
    readonly control?:
      | {
          readonly slug?: string | undefined;
          readonly formerSlugs?: readonly FormerSlug[] | undefined;
        }
      | undefined;
  };
}

/** The public name of an app. */
export function readSlug({ metadata, spec }: NamedApp): string {
  return spec.control?.slug ?? metadata.name;
}

/** Former slugs that have not ended, with their ends. */
export function selectFormerSlugs({ spec }: NamedApp, now: Date): FormerSlug[] {
  return (spec.control?.formerSlugs ?? []).filter(({ until }) => Date.parse(until) > now.getTime());
}

/** Names that still lead to the app, without the current one. */
export function listFormerSlugs(app: NamedApp, now: Date): string[] {
  return selectFormerSlugs(app, now).map(({ name }) => name);
}

/** Names that no other app may get: its ID, its slug, and the ones that have not ended or only just have. */
export function listTakenSlugs(app: NamedApp, now: Date): string[] {
  const ended = new Date(now.getTime() - marginMs);
  return [...new Set([app.metadata.name, readSlug(app), ...listFormerSlugs(app, ended)])];
}

/** The spec.control fields of an app that gets another slug. */
export function renameTo(
  app: NamedApp,
  slug: string,
  now: Date,
): { readonly slug: string | undefined; readonly formerSlugs: readonly FormerSlug[] } {
  const current = readSlug(app);
  const until = new Date(now.getTime() + redirectDays * 86_400_000).toISOString();
  const others = selectFormerSlugs(app, now).filter(({ name }) => name !== slug && name !== current);
  return {
    slug: slug === app.metadata.name ? undefined : slug,
    formerSlugs: [...others, { name: current, until }],
  };
}

/** Submissions fall back to a name that ends with a hash of the repository. Nobody may take it from them. */
const hashedExpression = /-[0-9a-f]{8}$/;
const slugExpression = new RegExp(slugPattern);
const catalogSlugSet: ReadonlySet<string> = new Set(catalogSlugs);

/** Why no author can choose this slug, as the end of a sentence; undefined if it can be one. */
export function findSlugFault(slug: string): string | undefined {
  if (!slugExpression.test(slug))
    return 'must have lower-case letters, digits and inner hyphens, start with a letter, and have at most 40 characters';
  if (isReserved(slug)) return 'is reserved: it is a name of the platform, or one that programs or people trust';
  if (catalogSlugSet.has(slug)) return 'is the name of an app of the catalog';
  return hashedExpression.test(slug)
    ? 'must not end with a hyphen and eight hexadecimal digits, as names do that are made for submissions'
    : undefined;
}

/** Whether a URL that was published is at the current slug of an app. False: its new address is not reached yet. */
export function isAtSlug(app: NamedApp, url: string | undefined, site: AppsSite): boolean {
  return url === formatAppUrl(readSlug(app), site);
}

/** Whether a URL is that of an app at any of its names. */
export function isOwnUrl(app: NamedApp, url: string, site: AppsSite, now: Date): boolean {
  return [app.metadata.name, readSlug(app), ...listFormerSlugs(app, now)].some(
    (name) => url === formatAppUrl(name, site),
  );
}

/** Host name of an app at its slug. */
export function formatSlugHost(app: NamedApp, site: AppsSite): string {
  return formatAppHost(readSlug(app), site);
}
