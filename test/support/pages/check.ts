// Judges a page as a strict parser does: tags that close, ids that are there, labels, headings in order, nothing inline.
import { Parser } from 'htmlparser2';

export interface PageFaults {
  readonly faults: readonly string[];
  /** What href and action name. */
  readonly links: readonly string[];
  readonly text: string;
}

interface Element {
  readonly name: string;
  readonly attributes: Readonly<Record<string, string>>;
}

const voids = new Set(['meta', 'link', 'input', 'br', 'img', 'hr', 'path', 'circle', 'rect']);
/** What may stand directly in these. */
const children: Readonly<Record<string, readonly string[]>> = {
  ul: ['li', 'template'],
  ol: ['li'],
  dl: ['div', 'dt', 'dd'],
  table: ['caption', 'thead', 'tbody'],
  tr: ['th', 'td'],
  select: ['option'],
};

export function checkPage(html: string): PageFaults {
  const faults: string[] = [];
  const seen: Element[] = [];
  const open: Element[] = [];
  let text = '';
  const parser = new Parser({
    onopentag(name, attributes) {
      const parent = open.at(-1);
      const allowed = parent === undefined ? undefined : children[parent.name];
      if (allowed !== undefined && !allowed.includes(name)) faults.push(`<${name}> stands in <${parent?.name ?? ''}>`);
      if (name === 'a' && open.some((one) => ['a', 'button'].includes(one.name)))
        faults.push('a link in a link or button');
      const element = { name, attributes };
      seen.push(element);
      open.push(element);
    },
    onclosetag(name, implied) {
      if (implied && !voids.has(name)) faults.push(`<${name}> is not closed`);
      const top = open.pop();
      if (top?.name !== name) faults.push(`</${name}> closes <${top?.name ?? 'nothing'}>`);
    },
    ontext(part) {
      if (open.at(-1)?.name === 'script' && part.trim() !== '') faults.push('a script stands in the page');
      text += part;
    },
  });
  parser.end(html);
  if (!html.startsWith('<!doctype html>')) faults.push('it has no doctype');
  faults.push(...seen.flatMap(inline), ...ids(seen), ...labels(seen), ...headings(seen), ...landmarks(seen));
  const links = seen.flatMap(({ attributes }) =>
    [attributes['href'], attributes['action'], attributes['src']].filter((one) => one !== undefined),
  );
  return { faults, links, text };
}

function inline({ name, attributes }: Element): string[] {
  return Object.entries(attributes).flatMap(([attribute, value]) => {
    if (attribute === 'style' || attribute.startsWith('on')) return [`<${name}> has ${attribute}`];
    const isAddress = ['href', 'src', 'action'].includes(attribute);
    return isAddress && !/^(https?:\/\/|\/|#)/.test(value) ? [`<${name}> leads to ${value}`] : [];
  });
}

function ids(seen: readonly Element[]): string[] {
  const all = seen.flatMap(({ attributes }) => attributes['id'] ?? []);
  const twice = all.filter((id, index) => all.indexOf(id) !== index).map((id) => `id ${id} is there twice`);
  const wanted = seen.flatMap(({ attributes }) => {
    const { for: of, href } = attributes;
    const named = ['aria-labelledby', 'aria-describedby', 'aria-controls'].flatMap((name) =>
      (attributes[name] ?? '').split(' '),
    );
    return [...named, of ?? '', href?.startsWith('#') === true ? href.slice(1) : ''].filter((id) => id !== '');
  });
  return [...twice, ...wanted.filter((id) => !all.includes(id)).map((id) => `id ${id} is missing`)];
}

function labels(seen: readonly Element[]): string[] {
  const labelled = new Set(seen.flatMap(({ name, attributes }) => (name === 'label' ? (attributes['for'] ?? []) : [])));
  return seen
    .filter(({ name }) => ['input', 'select', 'textarea'].includes(name))
    .filter(
      ({ attributes: { type = 'text', id = '' } }) => type !== 'hidden' && type !== 'checkbox' && !labelled.has(id),
    )
    .map(({ attributes }) => `field ${attributes['name'] ?? ''} has no label`);
}

function headings(seen: readonly Element[]): string[] {
  const levels = seen.flatMap(({ name }) => /^h([1-6])$/.exec(name)?.[1] ?? []).map(Number);
  const skips = levels.filter((level, index) => level > (levels[index - 1] ?? 0) + 1);
  return [
    ...skips.map((level) => `h${level} follows a higher one`),
    ...(levels.filter((level) => level === 1).length === 1 ? [] : ['there is not one h1']),
  ];
}

function landmarks(seen: readonly Element[]): string[] {
  const counts = ['header', 'main', 'footer', 'title'].map(
    (name) => [name, seen.filter((one) => one.name === name).length] as const,
  );
  return counts.filter(([name, count]) => name !== 'title' && count !== 1).map(([name, count]) => `${count} <${name}>`);
}
