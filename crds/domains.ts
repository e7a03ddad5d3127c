// Own domains of an app: what its author asks for (spec.control.domains), the DNS records that prove a domain, and what the
// operator reports about each.
import { createHash } from 'node:crypto';
import { z } from 'zod';
import { type AppsSite, formatAppHost, formatSubdomainLabel } from './names.ts';
import { addRules, createPatternRule, listBy, timestamp } from './values.ts';

export const maximumDomains = 5;

/** A name with a prefix for the TXT record must fit into 253 characters. */
const longestName = 240;

export const domainName = addRules(
  z.string().max(longestName),
  createPatternRule(
    '^([a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?[.])+[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$',
    'a domain has labels of lower-case letters, digits and inner hyphens, like shop.example.com; write other scripts as xn--…',
  ),
);

const ownDomain = z.strictObject({
  name: domainName.describe('The domain, in ASCII.'),
  addedAt: timestamp.max(40).describe('When the author added it.'),
  checkAfter: timestamp.max(40).optional().describe('When the author last requested a check of its DNS records.'),
});
export type OwnDomain = z.output<typeof ownDomain>;

/** The field spec.control.domains. */
export const ownDomains = listBy(z.array(ownDomain).max(maximumDomains), 'name');

export const domainStates = ['Pending', 'Taken', 'Refused', 'Issuing', 'Active', 'ProofLost', 'Removed'] as const;

const domainStatus = z.object({
  name: domainName.describe('The domain, in ASCII.'),
  state: z
    .enum(domainStates)
    .describe(
      'Pending: no proof was found yet. Taken: another app has proven it. Refused: it cannot be the domain of an app. Issuing: proven, and waiting for the gateway and a certificate. Active: the app answers at it. ProofLost: the app still answers, but the proof is gone. Removed: the proof was gone for too long.',
    ),
  message: z.string().max(500).describe('The state in words, and what to do.'),
  provenBy: z.enum(['txt', 'cname']).optional().describe('The record that proved it last.'),
  provenAt: timestamp.optional().describe('When the proof was last found.'),
  checkedAt: timestamp.optional().describe('When its DNS records were last looked up.'),
  lookupError: z
    .string()
    .max(200)
    .optional()
    .describe('Why the last lookup had no result. It does not count as a lost proof.'),
  lostAt: timestamp.optional().describe('Since when the proof is gone.'),
});
export type DomainStatus = z.output<typeof domainStatus>;

/** The field status.domains. */
export const domainStatuses = listBy(z.array(domainStatus).max(maximumDomains), 'name');

const servedStates: ReadonlySet<string> = new Set<DomainStatus['state']>(['Issuing', 'Active', 'ProofLost']);

/** Whether the app has the domain: requests to it are routed to the app. */
export function isServedState(state: string): boolean {
  return servedStates.has(state);
}

/** The domains that an app has, from the status of its HostedApp as any version of the API server returns it. */
export function listServedDomains(
  status: { readonly domains?: readonly DomainStatus[] | undefined } | undefined,
): string[] {
  return (status?.domains ?? []).filter(({ state }) => isServedState(state)).map(({ name }) => name);
}

/** The app that has a domain. While it changes hands, two may say so: the one that proved it last counts. */
export function chooseDomainOwner<
  App extends { readonly status?: { readonly domains?: readonly DomainStatus[] | undefined } | undefined },
>(apps: readonly App[], domain: string): App | undefined {
  const readProof = ({ status }: App): string => status?.domains?.find(({ name }) => name === domain)?.provenAt ?? '';
  return apps.toSorted((one, other) => (readProof(one) < readProof(other) ? 1 : -1))[0];
}

interface AppIdentity {
  readonly name: string;
  readonly uid: string;
}

interface DnsRecord {
  readonly name: string;
  readonly value: string;
}

/** The two records of which either proves a domain. */
export interface DomainProof {
  readonly txt: DnsRecord;
  readonly cname: DnsRecord;
}

/**
 * The records with which the owner of a domain gives it to an app. Both contain a hash of the app's UID and of the domain, so
 * that records of a deleted app, or of another domain, prove nothing for a later namesake.
 */
export function formatDomainProof({ name, uid }: AppIdentity, domain: string, site: AppsSite): DomainProof {
  const token = hashShort([uid, domain]);
  return {
    txt: { name: `_moorage.${domain}`, value: `moorage-domain=${token}` },
    // One label, like the host names of components, so that the wildcard record of the apps covers it.
    cname: { name: domain, value: formatAppHost(formatSubdomainLabel(name, token), site) },
  };
}

/** Name of an app's Gateway for a domain, and of the Secret with the certificate. */
export function formatDomainGatewayName({ uid }: Pick<AppIdentity, 'uid'>, domain: string): string {
  return `domain-${hashShort(['gateway', uid, domain])}`;
}

function hashShort(parts: readonly string[]): string {
  return createHash('sha256').update(JSON.stringify(parts)).digest('hex').slice(0, 20);
}
