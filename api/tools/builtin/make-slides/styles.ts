// Fonts, colours and styled text of a presentation.
import type PptxGenJs from 'pptxgenjs';
import { runsOf } from './text.ts';

export interface Theme {
  readonly background: string;
  readonly text: string;
  readonly soft: string;
  readonly accent: string;
  readonly panel: string;
}

export const themes: Readonly<Record<'light' | 'dark', Theme>> = {
  light: { background: 'FFFFFF', text: '1F2933', soft: '5F6C7B', accent: '0B6E99', panel: 'EEF4F7' },
  dark: { background: '15202B', text: 'F2F5F7', soft: 'A9B7C4', accent: '4FC3F7', panel: '22303D' },
};

export const font = 'Calibri';
export const codeFont = 'Consolas';

export type Sheet = ReturnType<PptxGenJs.default['addSlide']>;
export type TextProps = PptxGenJs.default.TextProps;

/** Arabic and Hebrew are written from the right, by the first letter that says so. */
export function directionOf(text: string): { rtlMode?: true; align?: 'right' } {
  const first = /[\p{L}]/u.exec(text)?.[0] ?? '';
  return /[\p{Script=Arabic}\p{Script=Hebrew}\p{Script=Syriac}\p{Script=Thaana}]/u.test(first)
    ? { rtlMode: true, align: 'right' }
    : {};
}

/** Text of a line in runs that PowerPoint edits like typed ones. */
export function styled(text: string, theme: Theme, color: string): TextProps[] {
  return runsOf(text).map((run) => ({
    text: run.text,
    options: {
      color,
      ...(run.bold === true ? { bold: true } : {}),
      ...(run.italic === true ? { italic: true } : {}),
      ...(run.struck === true ? { strike: 'sngStrike' as const } : {}),
      ...(run.code === true ? { fontFace: codeFont } : {}),
      ...(run.link === undefined ? {} : { color: theme.accent, hyperlink: { url: run.link } }),
    },
  }));
}
