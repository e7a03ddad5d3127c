// Looks up the DNS records that prove own domains, and finds the proof of an app in them.
import { Resolver } from 'node:dns/promises';
import { formatDomainProof } from '../../../crds/domains.ts';
import type { AppsSite } from '../../../crds/names.ts';

/** The records of a domain. */
export interface DomainAnswer {
  /** Of _moorage.<domain>. */
  readonly texts: readonly string[];
  /** What the domain itself is an alias of. */
  readonly aliases: readonly string[];
  /** Why some of them are unknown, which is not the same as that there are none. */
  readonly error?: string | undefined;
}

/** The result of a lookup. */
export interface DomainAnswers {
  /** When it began: records that were published later may be missing. */
  readonly startedAt: Date;
  readonly byName: Readonly<Record<string, DomainAnswer>>;
}

const timeoutMs = 3_000;
const tries = 2;
/** A domain can have any number of records. */
const maximumRecords = 100;

/**
 * Creates the function that looks up domains. It never rejects.
 *
 * @param servers addresses, with a port if it is not 53; empty: those of the process
 */
export function createDomainLookup(
  servers: readonly string[],
  now: () => Date = () => new Date(),
): (domains: readonly string[]) => Promise<DomainAnswers> {
  return async (domains) => {
    const startedAt = now();
    const resolver = new Resolver({ timeout: timeoutMs, tries });
    if (servers.length > 0) resolver.setServers(servers);
    const entries = domains.map(async (domain) => [domain, await lookUpDomain(resolver, domain)] as const);
    return { startedAt, byName: Object.fromEntries(await Promise.all(entries)) };
  };
}

async function lookUpDomain(resolver: Resolver, domain: string): Promise<DomainAnswer> {
  const [texts, aliases] = await Promise.all([
    listRecords(resolver.resolveTxt(`_moorage.${domain}`)),
    listRecords(resolver.resolveCname(domain)),
  ]);
  return {
    texts: texts.records.map((parts) => parts.join('').trim()),
    aliases: aliases.records.map(normalizeHost),
    error: texts.error ?? aliases.error,
  };
}

/** The records, or why they are unknown. That there is no record, or no such name, is an answer. */
async function listRecords<Item>(query: Promise<Item[]>): Promise<{ records: readonly Item[]; error?: string }> {
  try {
    return { records: (await query).slice(0, maximumRecords) };
  } catch (error) {
    const { code = 'unknown error' } = error as NodeJS.ErrnoException;
    return { records: [], ...(code === 'ENODATA' || code === 'ENOTFOUND' ? {} : { error: code }) };
  }
}

function normalizeHost(host: string): string {
  return host.toLowerCase().replace(/[.]$/, '');
}

/** The record that gives a domain to an app; undefined if there is none in the answer. */
export function findDomainProof(
  answer: DomainAnswer,
  app: { readonly name: string; readonly uid: string },
  domain: string,
  site: AppsSite,
): 'txt' | 'cname' | undefined {
  const { txt, cname } = formatDomainProof(app, domain, site);
  if (answer.texts.includes(txt.value)) return 'txt';
  return answer.aliases.includes(cname.value) ? 'cname' : undefined;
}
