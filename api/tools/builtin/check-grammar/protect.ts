// What is never corrected: code, addresses and names. A checker knows words, and none of these are.
import type { Match } from './match.ts';

type Range = readonly [start: number, end: number];

/** Code and addresses, wherever they stand. Each pattern is linear: none repeats what repeats. */
const patterns: readonly RegExp[] = [
  // Fenced and inline code, tags, templates.
  /```[^]*?```/g,
  /`[^`\n]{1,500}`/g,
  /<\/?[a-zA-Z][^<>\n]{0,500}>/g,
  /\$?\{[^{}\n]{0,200}\}|\$[A-Za-z_]\w*/g,
  // Addresses of the web, of mail, of people; tags and issues.
  /\b[a-z][a-z0-9+.-]{0,20}:\/\/[^\s<>"”’)]+/gi,
  /\bwww\.[^\s<>"”’)]+/gi,
  /[\w.+-]{1,64}@[\w-]{1,64}\.[\w.-]{1,64}/g,
  /[@#][\w-]+/g,
  // Paths and files.
  /(?<![\w/])(?:~|\.{1,2})?\/[\w.-]+(?:\/[\w.-]+)*/g,
  /\b[\w.-]+\/[\w./-]*\.[a-z]\w*/gi,
  /\b[A-Z]:\\[^\s]+/g,
  /\b[\w-]+\.[a-zA-Z][a-zA-Z0-9]{0,5}\b(?!\.[A-Z])/g,
  // Identifiers, calls, options, versions, abbreviations.
  /\b\w*[a-z0-9][A-Z]\w*/g,
  /\b\w+(?:_\w+)+/g,
  /\b\w+\(\)?/g,
  /\b(?:null|undefined|NaN|stdin|stdout|stderr)\b/g,
  /(?<![\w-])--?[a-z][\w-]*/gi,
  /\b\w*\d[\w.]*/g,
  /\b[A-Z]{2,}s?\b/g,
];

export function protectedRanges(text: string): Range[] {
  return patterns.flatMap((pattern) =>
    [...text.matchAll(pattern)].map(({ index, 0: found }): Range => [index, index + found.length]),
  );
}

/** Whether a match is about something that is no word of the language. */
export function isProtected(text: string, { offset, length }: Match, ranges: readonly Range[]): boolean {
  const end = offset + length;
  if (ranges.some(([from, to]) => from < end && offset < to)) return true;
  // A word that is part of something written together.
  return /[\w@/\\]/.test(text[end] ?? '') && /\w$/.test(text.slice(offset, end));
}

/**
 * Whether a word that is not in the dictionary may be a name: it is written with a capital where none is due, has letters
 * that English has not, or stands before another capital.
 */
export function mayBeName(text: string, { offset, length }: Match, language: string): boolean {
  const word = text.slice(offset, offset + length);
  if (!/^\p{Lu}/u.test(word)) return /[^\p{ASCII}’]/u.test(word) && language.startsWith('en');
  if (language.startsWith('en') && /[^\p{ASCII}’]/u.test(word)) return true;
  if (/^ \p{Lu}/u.test(text.slice(offset + length, offset + length + 2))) return true;
  // German writes every noun so.
  return !language.startsWith('de') && !startsSentence(text, offset);
}

export function startsSentence(text: string, offset: number): boolean {
  return /(?:^|[.!?…:\n]["'”’»)\]]*\s*|[\n\r]\s*)["'“‘„«([¿¡]*$/u.test(text.slice(Math.max(0, offset - 40), offset));
}
