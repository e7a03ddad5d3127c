// Why a research found nothing: what each search and each page came to, and what to do about it.
import { Problem } from '../../../../lib/problem.ts';
import { toolFailed } from '../../problems.ts';

export interface Attempts {
  readonly searches: readonly { readonly query: string; readonly outcome: string }[];
  /** Pages and searches that failed; a search stands as `search: <query>`. */
  readonly unread: readonly { readonly url: string; readonly reason: string }[];
  /** Addresses of pages that were read and say nothing about the question. */
  readonly irrelevant: readonly string[];
}

/** Of each kind; all of them are in the members. */
const maxNamed = 6;
const maxMembers = 20;

export function nothingFound({ searches, unread, irrelevant }: Attempts): Problem {
  const pages = unread.filter(({ url }) => !url.startsWith('search: '));
  const sentences = [
    'No relevant page was found.',
    searches.length === 0
      ? 'The model planned no searches.'
      : `Searches: ${named(searches.map(({ query, outcome }) => `"${query}" (${outcome})`))}.`,
    pages.length === 0
      ? ''
      : `Pages that failed: ${named(pages.map(({ url, reason }) => `${url} (${bare(reason)})`))}.`,
    irrelevant.length === 0 ? '' : `Pages that say nothing about the question: ${named(irrelevant)}.`,
    advice(searches, pages.length, irrelevant.length),
  ];
  return new Problem(toolFailed, sentences.filter((sentence) => sentence !== '').join(' '), {
    members: {
      searches: searches.map(({ query }) => query),
      search_outcomes: searches.slice(0, maxMembers),
      unread: unread.slice(0, maxMembers),
      irrelevant: irrelevant.slice(0, maxMembers),
    },
  });
}

function advice(searches: Attempts['searches'], failed: number, irrelevant: number): string {
  if (searches.length > 0 && searches.every(({ outcome }) => outcome.startsWith('failed')))
    return 'The search engine is at fault, not the question: try again later.';
  if (failed > 0 && irrelevant === 0) return 'Try again later, or ask for pages that can be fetched.';
  return 'Rephrase the question.';
}

function named(items: readonly string[]): string {
  const more = items.length - maxNamed;
  return `${items.slice(0, maxNamed).join(', ')}${more > 0 ? ` and ${more} more` : ''}`;
}

function bare(reason: string): string {
  return reason.replace(/\.$/, '');
}
