// Reads the name of a domain that an author wants to give to an app, and refuses names that cannot be one.
import { isIP } from 'node:net';
import { domainToASCII, domainToUnicode } from 'node:url';
import { parse } from 'tldts';

/** Why a name is refused, as the end of a sentence about it, and what to do. */
export interface DomainRefusal {
  readonly message: string;
  readonly fix: string;
}

/** Top-level names that no public DNS has, or that stand for other things than hosts of a website. */
const internalNames = ['localhost', 'local', 'internal', 'svc', 'lan', 'test', 'invalid', 'example', 'onion', 'arpa'];

/**
 * Reads a domain in any script, and returns it in ASCII.
 *
 * @param platform domains of the API and of the apps: neither they, nor what is above or below them, can be given to an app
 */
export function readDomainName(text: string, platform: readonly string[]): string | DomainRefusal {
  const written = text.trim().replace(/[.]$/, '');
  if (written.includes('*'))
    return refuse('is a wildcard', 'Add each domain by its full name: each has its own proof and certificate.');
  const name = domainToASCII(written);
  if (isIP(name.replaceAll(/[[\]]/g, '')) !== 0)
    return refuse('is an IP address', 'Send a domain, like shop.example.com.');
  // domainToASCII drops what follows a host, and decodes percent signs.
  const isPlain = !/[%/\\?#@:\s]/.test(written) && name.length <= 240;
  if (!isPlain || !name.split('.').every(isLabel))
    return refuse(
      'is not a domain name',
      'Send a name like shop.example.com, without https://, port, path or underscore.',
    );
  return findRefusal(name, platform) ?? name;
}

function findRefusal(name: string, platform: readonly string[]): DomainRefusal | undefined {
  const last = name.split('.').at(-1) ?? '';
  if (internalNames.includes(last) || !name.includes('.'))
    return refuse('is an internal name', 'Send a domain of the public DNS, like shop.example.com.');
  const own = platform.find((each) => isSameOrBelow(name, each) || isSameOrBelow(each, name));
  if (own !== undefined)
    return refuse(`belongs to this platform (${own})`, 'Send a domain that neither contains it nor is below it.');
  const { publicSuffix, isIcann, isPrivate } = parse(name, { allowPrivateDomains: true });
  if (isIcann !== true && isPrivate !== true)
    return refuse(`ends in .${last}, which is no public top-level domain`, 'Send a domain of the public DNS.');
  if (publicSuffix === name)
    return refuse(
      'is a public suffix, below which everybody can register names',
      `Send a domain below it, like shop.${name}.`,
    );
  return undefined;
}

/** A label of ASCII, or of another script in valid Punycode. */
function isLabel(label: string): boolean {
  if (!/^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/.test(label)) return false;
  if (!/^..--/.test(label)) return true;
  const unicode = domainToUnicode(label);
  return unicode !== label && domainToASCII(unicode) === label;
}

function isSameOrBelow(name: string, domain: string): boolean {
  return name === domain || name.endsWith(`.${domain}`);
}

function refuse(message: string, fix: string): DomainRefusal {
  return { message, fix };
}

/** The name as people read it. */
export function formatDomainName(name: string): string {
  return domainToUnicode(name);
}
