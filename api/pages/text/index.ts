// The words of pages by language.
import type { Language } from '../language.ts';
import { en, type Text } from './en.ts';
import { zh } from './zh.ts';

export type { Text };
export const texts: Readonly<Record<Language, Text>> = { en, zh };
