// Where an app's images and layer cache are in the registry: one repository each, by the app's name and UID.

/** The app that a repository belongs to. */
export interface RepositoryOwner {
  readonly name: string;
  readonly uid: string;
}

/**
 * Repository of an app's images, without the registry's host. By its UID as well: an app that gets the name later has
 * nothing to do with what this one left there.
 */
export function imageRepository({ name, uid }: RepositoryOwner): string {
  return `apps/${name}.${uid}`;
}

/** Repository of an app's layer cache, without the registry's host. */
export function cacheRepository({ name, uid }: RepositoryOwner): string {
  return `cache/${name}.${uid}`;
}

/** First part of the name of each repository that the platform writes to; what an app's build must not read. */
export const platformFolders = ['apps', 'cache', 'moorage'] as const;

/** Tag of the image that a pipeline pushes: its number, so that what no release refers to can be found and removed. */
export function imageTag(number: number): string {
  return `build-${number}`;
}

/** Number of the pipeline that pushed a tag; undefined for a tag that no pipeline was to push. */
export function numberOfTag(tag: string): number | undefined {
  const number = Number(/^build-([1-9][0-9]{0,9})$/.exec(tag)?.[1]);
  return Number.isNaN(number) ? undefined : number;
}

/**
 * Tags of the layer cache: of all steps, or of the layers of the image alone, which take no further space, for an app
 * whose cache of all steps is larger than it may be.
 */
export const cacheTags = { all: 'steps', image: 'image' } as const;
