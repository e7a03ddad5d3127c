// Citations of a research answer: keeps those of pages that were read, and removes all others.

export interface Source {
  readonly title: string;
  readonly url: string;
}

export interface CitedAnswer {
  readonly answer: string;
  /** In the order in which they are cited, numbered from 1. */
  readonly sources: readonly (Source & { readonly number: number })[];
}

/** With the blank before, which goes with one that is taken out. */
const marks = /( ?)\[(\d{1,3}(?:\s*[,;]\s*\d{1,3})*)\](?!\()/g;

/**
 * Citations of sources that there are, numbered anew by their order; other numbers, and addresses that were not read,
 * are taken out.
 */
export function citedOnly(text: string, read: readonly Source[]): CitedAnswer {
  const order: number[] = [];
  const numbered = withoutReferences(text).replaceAll(marks, (_, blank: string, numbers: string) => {
    const kept = numbers
      .split(/[,;]/)
      .map(Number)
      .map((number) => {
        if (read[number - 1] === undefined) return '';
        if (!order.includes(number)) order.push(number);
        return `[${order.indexOf(number) + 1}]`;
      })
      .join('');
    return kept === '' ? '' : `${blank}${kept}`;
  });
  const sources = order.flatMap((number, index) => {
    const source = read[number - 1];
    return source === undefined ? [] : [{ number: index + 1, title: source.title, url: source.url }];
  });
  return { answer: withoutStrangers(numbered, new Set(read.map(({ url }) => url))), sources };
}

/** Links keep their words, and lose their address when it was not read. */
function withoutStrangers(text: string, urls: ReadonlySet<string>): string {
  return text
    .replaceAll(/!?\[([^\]]*)\]\(\s*<?((?:[^()\s<>]|\([^()\s]*\))*)>?[^()]*\)/g, (link, label: string, url: string) =>
      urls.has(url) && !link.startsWith('!') ? link : label,
    )
    .replaceAll(
      /(?<!\]\() ?<?(https?:\/\/(?:[^\s<>()\]]|\([^()\s]*\))*?)([.,;:]*)>?(?=[\s<>)\]]|$)/gi,
      (all, url: string, after: string) => (urls.has(url) ? all : after),
    )
    .trim();
}

/** Models like to list the sources themselves, under a heading at the end. The list is ours. */
function withoutReferences(text: string): string {
  return text.replace(
    /\n+(?:#{1,6} *|\*\*)(?:sources|references|citations|bibliography|quellen|fuentes|sources citées)(?:\*\*)?:?[^\S\n]*\n[\s\S]*$/i,
    '',
  );
}
