// The languages that Whisper transcribes, by its own codes.
import { findLanguage } from '../languages.ts';

const heard: ReadonlySet<string> = new Set(
  (
    'af am ar as az ba be bg bn bo br bs ca cs cy da de el en es et eu fa fi fo fr gl gu ha haw he hi hr ht hu hy id is it ja jw ka kk km kn ko la lb ln lo lt lv mg mi mk ml mn mr ms mt my ' +
    'ne nl nn no oc pa pl ps pt ro ru sa sd si sk sl sn so sq sr su sv sw ta te tg th tk tl tr tt uk ur uz vi yi yo yue zh'
  ).split(' '),
);

/** Where Whisper's code is another than today's. */
const renamed: Readonly<Record<string, string>> = { jv: 'jw', nb: 'no', fil: 'tl', iw: 'he', ji: 'yi', in: 'id' };

/**
 * Whisper's code of a language by code or name, like `de` of `de-AT` or `German`; undefined for one that it does not
 * hear.
 */
export function spokenLanguage(text: string): string | undefined {
  const plain = text.trim().toLowerCase();
  if (heard.has(plain)) return plain;
  const base = findLanguage(plain)?.code.split('-')[0] ?? '';
  const code = renamed[base] ?? base;
  return heard.has(code) ? code : undefined;
}
