// Images of the services behind tools, made of packages: Go modules, Maven Central, PyPI and Debian.
import { copyFile } from 'node:fs/promises';
import { join } from 'node:path';
import { binary } from '../binaries/build.ts';
import { recipeOf } from '../binaries/recipes.ts';
import { contentKey, folderKey } from '../files.ts';
import type { ImageRecipe } from './recipe.ts';

const nothing = (): Promise<void> => Promise.resolve();
const translator = join(import.meta.dirname, 'pdf-translator');

/** Each is called like its folder; the tag says the version of the program. */
function toolImage(
  name: string,
  tag: string,
  rest: Pick<ImageRecipe, 'bases'> & Partial<Pick<ImageRecipe, 'folder' | 'parts' | 'key' | 'fill'>>,
): ImageRecipe {
  return {
    name,
    on: 'tools',
    repository: `moorage/${name}`,
    tags: [tag],
    folder: name,
    compression: 'zstd',
    parts: [],
    fill: nothing,
    ...rest,
  };
}

export const toolImages: readonly ImageRecipe[] = [
  toolImage('speech', 'whisper-tiny.en', { bases: ['python-3.11'] }),
  toolImage('languagetool', '6.6', { bases: ['debian-bookworm'] }),
  toolImage('pdf-translator', 'babeldoc-0.6.4', {
    folder: 'pdf-translator-offline',
    bases: ['python-3.11'],
    key: async () => contentKey([await folderKey(translator)]),
    fill: async (context) => {
      for (const file of ['requirements.txt', 'server.py']) await copyFile(join(translator, file), join(context, file));
    },
  }),
  toolImage('gotenberg', recipeOf('gotenberg').version.slice(1), {
    bases: ['debian-bookworm'],
    parts: ['gotenberg'],
    fill: async (context) => {
      await copyFile(binary('gotenberg', 'gotenberg'), join(context, 'gotenberg'));
    },
  }),
];
