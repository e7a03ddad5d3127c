// The OCR languages whose data is installed, each as an npm package: nothing is downloaded during a call.
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';

export interface OcrLanguage {
  /** As Tesseract names it. */
  readonly code: string;
  readonly name: string;
  /** Other names by which it is asked for, in lower case. */
  readonly names: readonly string[];
}

/** Languages that can be read. */
export const ocrLanguages: readonly OcrLanguage[] = [
  { code: 'eng', name: 'English', names: ['en', 'english', 'en-us', 'en-gb'] },
  { code: 'deu', name: 'German', names: ['de', 'ger', 'german', 'deutsch', 'de-de', 'de-at', 'de-ch'] },
  { code: 'fra', name: 'French', names: ['fr', 'fre', 'french', 'français', 'fr-fr', 'fr-ca'] },
  { code: 'spa', name: 'Spanish', names: ['es', 'spanish', 'español', 'es-es', 'es-mx'] },
  { code: 'ita', name: 'Italian', names: ['it', 'italian', 'italiano'] },
  { code: 'por', name: 'Portuguese', names: ['pt', 'portuguese', 'português', 'pt-br', 'pt-pt'] },
  { code: 'nld', name: 'Dutch', names: ['nl', 'dut', 'dutch', 'nederlands'] },
  { code: 'pol', name: 'Polish', names: ['pl', 'polish', 'polski'] },
  { code: 'tur', name: 'Turkish', names: ['tr', 'turkish', 'türkçe'] },
  { code: 'ukr', name: 'Ukrainian', names: ['uk', 'ukrainian', 'українська'] },
  { code: 'ara', name: 'Arabic', names: ['ar', 'arabic', 'العربية'] },
  { code: 'hin', name: 'Hindi', names: ['hi', 'hindi', 'हिन्दी'] },
  {
    code: 'chi_sim',
    name: 'Simplified Chinese',
    names: ['zh', 'zh-cn', 'zh-hans', 'zho', 'chi', 'chi-sim', 'chinese', 'simplified chinese', '中文', '简体中文'],
  },
  {
    code: 'chi_tra',
    name: 'Traditional Chinese',
    names: ['zh-tw', 'zh-hk', 'zh-hant', 'chi-tra', 'traditional chinese', '繁體中文'],
  },
  { code: 'jpn', name: 'Japanese', names: ['ja', 'jp', 'japanese', '日本語'] },
  { code: 'kor', name: 'Korean', names: ['ko', 'kr', 'korean', '한국어'] },
];

/** Scripts of languages that are not written in Latin letters. */
const scripts: Readonly<Record<string, string>> = {
  ukr: 'Cyrillic',
  ara: 'Arabic',
  hin: 'Devanagari',
  chi_sim: 'Han',
  chi_tra: 'Han',
  jpn: 'Han',
  kor: 'Hangul',
};

/** Those that were not used: of another script first, since letters of the same are mostly read rightly anyway. */
export function otherLanguages(used: readonly string[]): readonly OcrLanguage[] {
  const findScript = (code: string): string => scripts[code] ?? 'Latin';
  const read = new Set(used.map(findScript));
  const others = ocrLanguages.filter(({ code }) => !used.includes(code));
  return [
    ...others.filter(({ code }) => !read.has(findScript(code))),
    ...others.filter(({ code }) => read.has(findScript(code))),
  ];
}

/** Languages of one call: Tesseract reads with all of them at once, and each takes time. */
export const maxLanguages = 3;

/**
 * The codes in `eng+deu` or `en, de`, each once, in their order; what is not known apart.
 */
export function readLanguages(text: string): {
  readonly codes: readonly string[];
  readonly unknown: readonly string[];
} {
  const words = text
    .toLowerCase()
    .split(/[+,]/)
    .map((word) => word.trim().replaceAll(/(?<=^[a-z]{2})_/g, '-'))
    .filter((word) => word !== '');
  const found = words.map((word) => ({
    word,
    language: ocrLanguages.find(({ code, names }) => code === word || names.includes(word)),
  }));
  return {
    codes: [...new Set(found.flatMap(({ language }) => language?.code ?? []))],
    unknown: found.flatMap(({ word, language }) => (language === undefined ? [word] : [])),
  };
}

/**
 * Data of a language: the small model of whole numbers, which reads nearly as well as the large one and starts much
 * faster.
 */
export function languageFile(code: string): string {
  const folder = dirname(createRequire(import.meta.url).resolve(`@tesseract.js-data/${code}/package.json`));
  return join(folder, '4.0.0_best_int', `${code}.traineddata.gz`);
}
