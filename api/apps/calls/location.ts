// Where a redirect of an app leads. An app must not send a browser anywhere from the origin of the API.
import type { Target } from '../directory.ts';

const plain = /^[\x21-\x7e]{1,4000}$/;

/** The address that a Location header means, on the web; undefined for anything else, such as javascript: and data:. */
function webAddress(location: unknown, base: string): URL | undefined {
  if (typeof location !== 'string' || !plain.test(location)) return undefined;
  const url = URL.parse(location, base);
  return url?.protocol === 'https:' || url?.protocol === 'http:' ? url : undefined;
}

/** Path, query and fragment of a redirect that stays within the app; undefined for one that leaves it. */
export function locationWithin(location: unknown, { publicOrigin }: Target, path: string): string | undefined {
  const to = webAddress(location, `${publicOrigin}${path}`);
  const { hostname } = new URL(publicOrigin);
  return to?.hostname === hostname ? `${to.pathname}${to.search}${to.hash}` : undefined;
}

/** A redirect as text, for a caller who decides himself: as the app wrote it, if it leads to the web. */
export function reportedLocation(location: unknown, { publicOrigin }: Target): string | undefined {
  return webAddress(location, publicOrigin) === undefined ? undefined : String(location).slice(0, 2_000);
}
