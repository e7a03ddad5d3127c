// A number that has to be written in English words.
import type { Generator } from './generator.ts';

const small = [
  'zero',
  'one',
  'two',
  'three',
  'four',
  'five',
  'six',
  'seven',
  'eight',
  'nine',
  'ten',
  'eleven',
  'twelve',
  'thirteen',
  'fourteen',
  'fifteen',
  'sixteen',
  'seventeen',
  'eighteen',
  'nineteen',
];
const tens = ['', '', 'twenty', 'thirty', 'forty', 'fifty', 'sixty', 'seventy', 'eighty', 'ninety'];

/** In words, without "and", with hyphens: `four hundred twenty-one thousand seven`. For whole numbers below a million. */
export function inWords(value: number): string {
  if (value < 20) return small[value] ?? '';
  if (value < 100) return `${tens[Math.floor(value / 10)]}${value % 10 === 0 ? '' : `-${small[value % 10]}`}`;
  const [size, word] = value < 1_000 ? [100, 'hundred'] : [1_000, 'thousand'];
  const rest = value % size;
  return `${inWords(Math.floor(value / size))} ${word}${rest === 0 ? '' : ` ${inWords(rest)}`}`;
}

export const numberWords: Generator = (random) => {
  const value = random.whole(10_001, 999_999);
  return { number: String(value), words: inWords(value) };
};
