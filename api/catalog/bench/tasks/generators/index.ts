// All generators of instances, by the names that tasks use.
import { arithmeticStory } from './arithmetic-story.ts';
import type { Generator } from './generator.ts';
import { numberWords } from './number-words.ts';
import { recordFields } from './record-fields.ts';
import { reorderList } from './reorder-list.ts';
import { tableToJson } from './table-to-json.ts';

export const generators = {
  'arithmetic-story': arithmeticStory,
  'number-words': numberWords,
  'record-fields': recordFields,
  'reorder-list': reorderList,
  'table-to-json': tableToJson,
} satisfies Readonly<Record<string, Generator>>;

export type GeneratorName = keyof typeof generators;
export const generatorNames = Object.keys(generators) as [GeneratorName, ...GeneratorName[]];
