// What an image of the node is made of.
import type { Part } from '../binaries/recipes.ts';
import type { Report } from '../steps.ts';

export interface ImageRecipe {
  name: string;
  /**
   * Built only where it is asked for: by `up --base-images` (`demand`), or as a service behind tools by `up --tools`
   * (`tools`). No part of the cluster starts from it.
   */
  on?: 'demand' | 'tools';
  /** Registry whose name it has; Docker Hub where there is none. */
  host?: string;
  /** Repository and tags; Docker Hub's official images live under library/. */
  repository: string;
  tags: readonly string[];
  /** Tags that it has only as long as no other image is under them. */
  standInFor?: readonly string[];
  /** Folder here with the Dockerfile. */
  folder: string;
  arguments?: Record<string, string>;
  /** Of the layers; gzip where there is none. zstd takes a fraction of the time, and a little less space. */
  compression?: 'zstd';
  /** Base images. */
  bases: readonly string[];
  /** Parts whose binaries it contains. */
  parts: readonly Part[];
  /** What else its content depends on. */
  key?: () => Promise<string>;
  /** Adds what the Dockerfile copies to the build context. */
  fill: (context: string, report?: Report) => Promise<void>;
}
