// Methods and paths by which an app can be called. Worker processes read this file, so it imports nothing.

export const methods = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE'] as const;
export type Method = (typeof methods)[number];

/**
 * Path and query of a request to an app; undefined where the text is none. The app's origin is not part of it, so nothing
 * can change that.
 */
export function appPath(text: string): string | undefined {
  if (!/^\/[\x21-\x7e\u00a1-\uffff]*$/.test(text) || text.length > 8_000) return undefined;
  // Every slash at the front belongs to the path; parsed with a host before it, none of it can be taken for one.
  if (!URL.canParse(`http://app${text}`)) return undefined;
  const { host, pathname, search } = new URL(`http://app${text}`);
  return host === 'app' ? `${pathname}${search}` : undefined;
}
