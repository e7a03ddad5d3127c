// Writes a work as BibTeX. The library knows the rules of names, of capitals and of what TeX takes for a command.
import { plugins, type CSL, type CSLType } from '@citation-js/core';
import '@citation-js/plugin-bibtex';
import { known, type Work } from './work.ts';

/** Crossref's types as those of CSL. */
const types: Readonly<Record<string, CSLType>> = {
  'journal-article': 'article-journal',
  'proceedings-article': 'paper-conference',
  'book-chapter': 'chapter',
  'book-section': 'chapter',
  'book-part': 'chapter',
  book: 'book',
  monograph: 'book',
  'edited-book': 'book',
  'reference-book': 'book',
  dissertation: 'thesis',
  report: 'report',
  dataset: 'dataset',
  'posted-content': 'article',
  preprint: 'article',
  standard: 'standard',
};

export function bibtex({
  doi,
  url,
  type,
  title,
  authors,
  venue,
  volume,
  issue,
  pages,
  publisher,
  arxiv,
  ...date
}: Work): string {
  const data: CSL = {
    id: doi ?? url,
    type: types[type] ?? 'document',
    title,
    author: authors.map(({ family, given }) => (given === undefined ? { family: escaped(family) } : { family, given })),
    ...issued(date),
    ...known({
      'container-title': venue,
      volume,
      issue,
      page: pages,
      publisher,
      DOI: doi,
      note: arxiv === undefined ? undefined : `arXiv:${arxiv}`,
    }),
    URL: url,
  };
  return String(plugins.output.format('bibtex', [data])).trim();
}

/** A name in one piece, which the library writes as it is. */
function escaped(name: string): string {
  return name.replace(/[\\{}^~]/g, ' ').replace(/[&%#_$]/g, '\\$&');
}

function issued({ year, month }: Pick<Work, 'year' | 'month'>): Pick<CSL, 'issued'> {
  if (year === undefined) return {};
  return { issued: { 'date-parts': [month === undefined ? [year] : [year, month]] } };
}
