// Parses DOIs and arXiv ids in the forms that people write.

/** A DOI, bare or as an address. */
export function doiIn(text: string): string | undefined {
  const bare = text.trim().replace(/^(?:https?:\/\/(?:dx\.)?doi\.org\/|doi:\s*)/i, '');
  return /^10\.\d{4,9}\/[^\s?#]+$/.exec(bare)?.[0];
}

/** An arXiv id of either form, bare or as an address. */
export function arxivIdIn(text: string): string | undefined {
  const bare = text
    .trim()
    .replace(/^(?:https?:\/\/(?:www\.|export\.)?arxiv\.org\/(?:abs|pdf|html)\/|arxiv:\s*|10\.48550\/arxiv\.)/i, '')
    .replace(/\.pdf$/i, '');
  return /^(?:\d{4}\.\d{4,5}|[a-z-]+(?:\.[A-Z]{2})?\/\d{7})(?:v\d{1,3})?$/.exec(bare)?.[0];
}
