// The slugs of the eight apps that every installation knows (section 2.7 of the interface), whether it runs them or not.

export const catalogSlugs = [
  'chat-ui-1',
  'chat-ui-2',
  'academic-assistant',
  'research-agent',
  'chat-ui-3',
  'chat-ui-4',
  'pdf-translate',
  'slide-generator',
] as const;

const slugs: ReadonlySet<string> = new Set(catalogSlugs);

/** True for a name that stands for one of them, and that no submitted repository gets. */
export function isCatalogSlug(name: string): boolean {
  return slugs.has(name);
}
