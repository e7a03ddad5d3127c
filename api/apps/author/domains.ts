// The endpoints with which an author gives own domains to an app. The API stores what the author wants in spec.control; the
// operator looks for the proof in DNS, and reports in the status.
import { formatSlugHost, readSlug } from '../../../crds/slugs.ts';
import { z } from 'zod';
import type { Control } from '../../../crds/control.ts';
import {
  domainStates,
  type DomainStatus,
  formatDomainProof,
  isServedState,
  maximumDomains,
  type OwnDomain,
} from '../../../crds/domains.ts';
import { formatDomainName, readDomainName } from '../../../lib/domain-names.ts';
import { createUnknownNameProblem, Problem } from '../../../lib/problem.ts';
import { omitUndefined } from '../../../lib/values.ts';
import { createValidationProblem, defineEndpoint, type Endpoint } from '../../http/index.ts';
import type { App } from '../hosted-apps.ts';
import { domainsUnavailable, readingProblems, settingRefused, unknownDomain } from '../problems.ts';
import type { ControlChange } from './control.ts';
import { type AuthorServices, changeProblems, slugParams } from './endpoints.ts';

const recordView = z.object({ name: z.string().describe('Where to publish it.'), value: z.string() });

const domainView = z.object({
  domain: z.string().describe('In ASCII.'),
  display: z.string().describe('In its own script.'),
  state: z.enum(domainStates),
  message: z.string().describe('The state in words, and what to do.'),
  url: z.string().optional().describe('Address of the app at this domain, while requests are routed to it.'),
  records: z
    .object({ txt: recordView, cname: recordView })
    .describe('Publish one of them. Each is valid for this app and this domain alone.'),
  target: z
    .string()
    .describe('Host name with the addresses that the domain must have, if it is proven by the TXT record.'),
  proven_by: z.enum(['txt', 'cname']).optional(),
  proven_at: z.string().optional().describe('When a record was last found, RFC 3339.'),
  checked_at: z.string().optional().describe('When DNS was last asked, RFC 3339.'),
  check_requested_at: z
    .string()
    .describe('When a check was last requested, RFC 3339. It is done once checked_at is later.'),
  lookup_error: z.string().optional().describe('Why DNS gave no answer. It does not count as a lost proof.'),
  lost_at: z.string().optional().describe('Since when the proof is gone, RFC 3339.'),
});
type DomainView = z.output<typeof domainView>;

export const domainsView = z.object({
  slug: z.string(),
  offered: z.boolean().describe('Whether apps of this installation can have own domains.'),
  domains: z.array(domainView),
});

const domainText = z.string().min(1).max(300);
const domainParams = slugParams.extend({ domain: domainText.describe('The domain.') });
const changedView = domainView.extend({ slug: z.string(), note: z.string() });

export function createDomainEndpoints(services: AuthorServices): Endpoint[] {
  return [
    createListEndpoint(services),
    createAddEndpoint(services),
    createCheckEndpoint(services),
    createRemoveEndpoint(services),
  ];
}

function createListEndpoint({ access, site, domains }: AuthorServices): Endpoint {
  return defineEndpoint({
    method: 'GET',
    path: '/api/apps/{slug}/domains',
    operation: 'listDomains',
    tag: 'apps',
    summary: 'List the own domains of an app',
    description: 'Each with its state and the records that prove it.',
    params: slugParams,
    output: domainsView,
    outputDescription: 'The domains.',
    returnsCallerData: true,
    problems: readingProblems,
    head: 'as GET',
    handler: async ({ params }, context) => {
      const { app } = await access.identify(params.slug, context, 'listDomains');
      const wanted = app.spec.control?.domains ?? [];
      return {
        slug: readSlug(app),
        offered: domains.offered,
        domains: wanted.map((each) => toDomainView(app, each, site)),
      };
    },
  });
}

function createAddEndpoint(services: AuthorServices): Endpoint {
  return defineEndpoint({
    method: 'POST',
    path: '/api/apps/{slug}/domains',
    operation: 'addDomain',
    tag: 'apps',
    summary: 'Add an own domain to an app',
    description: `The app answers at the domain once DNS has one of the two records in the answer. Of several apps that prove a domain, the first one gets it. An app has at most ${maximumDomains} domains.`,
    params: slugParams,
    body: z.strictObject({ domain: domainText.describe('A domain like shop.example.com, in any script.') }),
    output: changedView,
    outputDescription: 'The domain and its records.',
    problems: [...changeProblems, settingRefused, domainsUnavailable],
    handler: async ({ params: { slug }, body }, context) => {
      const domain = readDomain(body.domain, services);
      const changed = await services.access.act(
        slug,
        context,
        { operation: 'addDomain', action: 'add-domain', detail: { domain } },
        ({ app }) => {
          if (!services.domains.offered)
            throw new Problem(
              domainsUnavailable,
              'This installation has no issuer for the certificates of own domains.',
            );
          return services.writeControl(app, (control) =>
            addDomain(control, { name: domain, addedAt: formatNow(services) }),
          );
        },
      );
      const note = `Publish one of the two records. DNS is asked every minute at first; POST /api/apps/${slug}/domains/${domain}/check asks immediately.`;
      return { slug, note, ...findDomainView(changed, domain, services) };
    },
  });
}

function createCheckEndpoint(services: AuthorServices): Endpoint {
  return defineEndpoint({
    method: 'POST',
    path: '/api/apps/{slug}/domains/{domain}/check',
    operation: 'checkDomain',
    tag: 'apps',
    summary: 'Check the proof of a domain now',
    description: 'Requests a lookup of its records. The list has the result within seconds.',
    params: domainParams,
    output: changedView,
    outputDescription: 'The domain before the lookup.',
    problems: [...changeProblems, unknownDomain],
    handler: async ({ params: { slug, domain: text } }, context) => {
      const domain = normalizeDomain(text);
      const changed = await services.access.act(
        slug,
        context,
        { operation: 'checkDomain', action: 'check-domain', detail: { domain } },
        ({ app }) =>
          services.writeControl(app, (control) => ({
            domains: changeDomain(control, domain, (each) => [{ ...each, checkAfter: formatNow(services) }]),
          })),
      );
      const note = `DNS is being asked. GET /api/apps/${slug}/domains has the result in a moment.`;
      return { slug, note, ...findDomainView(changed, domain, services) };
    },
  });
}

function createRemoveEndpoint(services: AuthorServices): Endpoint {
  return defineEndpoint({
    method: 'DELETE',
    path: '/api/apps/{slug}/domains/{domain}',
    operation: 'removeDomain',
    tag: 'apps',
    summary: 'Remove an own domain from an app',
    description: 'The app stops answering at it within seconds, and its certificate is deleted.',
    params: domainParams,
    output: z.object({ domain: z.string(), message: z.string() }),
    outputDescription: 'The domain was removed.',
    problems: [...changeProblems, unknownDomain],
    handler: async ({ params: { slug, domain: text } }, context) => {
      const domain = normalizeDomain(text);
      await services.access.act(
        slug,
        context,
        { operation: 'removeDomain', action: 'remove-domain', detail: { domain } },
        ({ app }) => services.writeControl(app, (control) => ({ domains: changeDomain(control, domain, () => []) })),
      );
      return { domain, message: `${domain} is removed. You can delete its record now.` };
    },
  });
}

function formatNow(services: AuthorServices): string {
  return (services.now?.() ?? new Date()).toISOString();
}

/** @throws Problem (invalid-request) */
function readDomain(text: string, { domains }: AuthorServices): string {
  const read = readDomainName(text, domains.platform);
  if (typeof read === 'string') return read;
  throw createValidationProblem([{ in: 'body', field: 'domain', message: read.message, fix: read.fix }]);
}

/** The name as it is stored, if it can be one. Also one that is refused by now can be removed. */
function normalizeDomain(text: string): string {
  const read = readDomainName(text, []);
  return typeof read === 'string' ? read : text;
}

/** @throws Problem (setting-refused) */
function addDomain({ domains = [] }: Control, added: OwnDomain): ControlChange {
  if (domains.some(({ name }) => name === added.name))
    throw new Problem(settingRefused, `domain: ${added.name} is added already. Check it, or remove it first.`);
  if (domains.length >= maximumDomains)
    throw new Problem(settingRefused, `domain: an app has at most ${maximumDomains} domains. Remove one first.`);
  return { domains: [...domains, added] };
}

/** @throws Problem (unknown-domain) */
function changeDomain(
  { domains = [] }: Control,
  domain: string,
  change: (found: OwnDomain) => readonly OwnDomain[],
): OwnDomain[] {
  if (!domains.some(({ name }) => name === domain))
    throw createUnknownNameProblem(unknownDomain, {
      says: 'Unknown domain',
      name: domain,
      names: domains.map(({ name }) => name),
      all: 'GET /api/apps/{slug}/domains lists them.',
    });
  return domains.flatMap((each) => (each.name === domain ? change(each) : [each]));
}

function findDomainView(app: App, domain: string, { site }: AuthorServices): DomainView {
  const { domains = [] } = app.spec.control ?? {};
  const wanted = domains.find(({ name }) => name === domain) ?? { name: domain, addedAt: '' };
  return toDomainView(app, wanted, site);
}

function toDomainView(app: App, wanted: OwnDomain, site: AuthorServices['site']): DomainView {
  const { metadata, status } = app;
  const { name, addedAt, checkAfter = addedAt } = wanted;
  const found: Partial<DomainStatus> = status?.domains?.find((each) => each.name === name) ?? {};
  const { state = 'Pending', message = 'DNS has not been asked yet.' } = found;
  const { provenBy, provenAt, checkedAt, lookupError, lostAt } = found;
  return {
    ...{ domain: name, display: formatDomainName(name), state, message },
    records: formatDomainProof(metadata, name, site),
    target: formatSlugHost(app, site),
    check_requested_at: checkAfter,
    ...omitUndefined({
      url: isServedState(state) ? new URL(`https://${name}:${site.port}`).href : undefined,
      ...{ proven_by: provenBy, proven_at: provenAt, checked_at: checkedAt },
      ...{ lookup_error: lookupError, lost_at: lostAt },
    }),
  };
}
