// Prepares an outline for the parser: removes Markdown that slides cannot keep, or keeps it as text, with a warning;
// and turns an outline without headings (numbered, indented or plain) into Markdown with headings.

export interface PreparedOutline {
  readonly text: string;
  readonly warnings: readonly string[];
}

const codePattern = /^([ \t]*)([`~]{3,})[^\n]*\n[\s\S]*?^[ \t]*\2[ \t]*$|`[^`\n]+`/gm;

/** Returns the outline, ready to be parsed. */
export function prepareOutline(outline: string): PreparedOutline {
  const { text, warnings } = removeUnsupported(outline);
  return { text: hasHeadings(text) ? text : (toMarkdown(text) ?? text), warnings };
}

/** Leaves code unchanged. */
export function removeUnsupported(outline: string): PreparedOutline {
  const kept: string[] = [];
  const warnings: string[] = [];
  const say = (warning: string): string => {
    if (!warnings.includes(warning)) warnings.push(warning);
    return '';
  };
  const bare = outline
    .replace(/^\uFEFF/, '')
    .replaceAll('\r\n', '\n')
    .replaceAll(/\uE000|\uE001/g, '')
    .replaceAll(codePattern, (code) => `\uE000${kept.push(code) - 1}\uE001`);
  const text = rules.reduce((now, rule) => rule(now, say), bare);
  return { text: text.replaceAll(/\uE000(\d+)\uE001/g, (_, index: string) => kept[Number(index)] ?? ''), warnings };
}

/** HTML elements; `List<Item>` is not one. */
const htmlTags =
  /<\/?(?:a|abbr|b|blockquote|body|center|code|dd|del|details|div|dl|dt|em|figcaption|figure|font|footer|h[1-6]|head|header|hr|html|i|ins|kbd|li|main|mark|nav|ol|p|pre|q|s|section|small|span|strong|sub|summary|sup|table|tbody|td|tfoot|th|thead|tr|tt|u|ul)(?:\s[^<>\n]*)?\/?>/gi;

type Rule = (text: string, say: (warning: string) => string) => string;

const rules: readonly Rule[] = [
  // Notes directly below a list would continue its last item.
  (text) => text.replaceAll(/\n(?=\**(?:speaker |presenter )?notes?\**:)/gi, '\n\n'),
  (text, say) =>
    text.replace(/^---\n((?:[\w-]+:[^\n]*\n|[ \t]+[^\n]*\n|\n)+?)---[ \t]*\n/, (_, fields: string) => {
      const title = /^title:\s*["']?(.*?)["']?\s*$/m.exec(fields)?.[1];
      say('The front matter sets nothing here and is left out, except for its title.');
      return title === undefined || title === '' || /^#\s/m.test(text) ? '' : `# ${title}\n\n`;
    }),
  (text, say) =>
    text.replaceAll(/<!--[\s\S]*?-->/g, () => say('HTML comments are left out. Write "Notes: …" for speaker notes.')),
  (text, say) =>
    text.replaceAll(/<(script|style|iframe|video|audio|svg|object)\b[\s\S]*?<\/\1\s*>/gi, (_, name: string) =>
      say(`A slide cannot keep <${name.toLowerCase()}>: it is left out.`),
    ),
  (text) => text.replaceAll(/<br\s*\/?>/gi, ' '),
  (text, say) =>
    text.replaceAll(/<img\b[^>]*?\bsrc\s*=\s*["']([^"']+)["'][^>]*>/gi, (tag: string, href: string) => {
      const alt = /\balt\s*=\s*["']([^"']*)["']/i.exec(tag)?.[1] ?? '';
      say('The attributes of <img> are left out; the image is kept.');
      return `![${alt}](${href})`;
    }),
  (text, say) => text.replaceAll(htmlTags, () => say('HTML tags are left out; their text is kept.')),
  (text, say) =>
    text.replaceAll(
      /!\[([^\]]*)\]\(([^)\s]+\.(?:mp4|webm|mov|avi|mp3|wav|ogg)|https?:\/\/(?:www\.)?(?:youtube\.com|youtu\.be|vimeo\.com)[^)\s]*)[^)]*\)/gi,
      (_, alt: string, href: string) => {
        say('Videos and sounds are not kept: a link stands in their place.');
        return `[${alt === '' ? href : alt}](${href})`;
      },
    ),
  (text, say) => {
    if (!/^\[\^[^\]]+\]:/m.test(text)) return text;
    say('Footnotes have no place on slides: their text stands where they are defined.');
    return text.replaceAll(/^\[\^([^\]]+)\]:[ \t]*/gm, '\n\\[$1\\] ').replaceAll(/\[\^([^\]]+)\]/g, '\\[$1\\]');
  },
  (text, say) => {
    if (/\$\$[\s\S]+?\$\$|\\\(.+?\\\)|\\\[[^\d][\s\S]+?\\\]|\$[^$\n]*[\\^_][^$\n]*\$/.test(text))
      say('Formulas are kept as they are written: they are not typeset.');
    return text;
  },
];

interface OutlineEntry {
  readonly text: string;
  readonly depth: number;
  readonly isMarked: boolean;
}

const entryMarks: readonly RegExp[] = [
  /^(?:\d+\.)+\d+\.?\s+/,
  /^\d{1,3}[.)]\s+/,
  /^\(?[ivxlc]{1,6}[.)]\s+/i,
  /^\(?[A-Za-z][.)]\s+/,
  /^[-*+•‣–]\s+/,
];
const slideMark = /^(?:\*\*|__)?slide\s+\d+\s*[:.–—-]\s*(.*?)(?:\*\*|__)?$/i;

/** Whether the outline already has a heading. */
export function hasHeadings(outline: string): boolean {
  const bare = outline.replaceAll(/^([`~]{3,})[\s\S]*?^\1/gm, '');
  return /^ {0,3}#{1,6}\s/m.test(bare) || /^\S[^\n]*\n(=+|-+)[ \t]*$/m.test(bare);
}

/** @returns the outline in Markdown; undefined if it has no structure that could become slides */
export function toMarkdown(outline: string): string | undefined {
  const text = outline.replaceAll('\r\n', '\n');
  return fromSlideMarks(text) ?? fromDepth(text) ?? fromParagraphs(text);
}

/** Reads `Slide 3: Title` and what follows it. */
function fromSlideMarks(text: string): string | undefined {
  const lines = text.split('\n');
  if (lines.filter((line) => slideMark.test(line.trim())).length < 2) return undefined;
  return lines
    .map((line) => {
      const title = slideMark.exec(line.trim())?.[1];
      if (title !== undefined) return `\n## ${title === '' ? line.trim() : title}\n`;
      return /^title\s*:/i.test(line.trim()) ? `# ${line.trim().replace(/^title\s*:\s*/i, '')}` : line;
    })
    .join('\n');
}

/** Reads numbers, letters, bullets and indentation: the first level becomes slides, deeper levels their bullets. */
function fromDepth(text: string): string | undefined {
  const entries = parseEntries(text);
  const [first] = entries;
  if (first === undefined || !entries.some(({ isMarked }) => isMarked)) return undefined;
  const hasTitle = !first.isMarked && entries.slice(1).every(({ isMarked, depth }) => isMarked || depth > 0);
  const body = hasTitle ? entries.slice(1) : entries;
  const top = Math.min(...body.map(({ depth }) => depth));
  if (!body.some(({ depth }) => depth > top)) return hasTitle ? formatFlat(first.text, body) : undefined;
  const slides = body.map(({ text: said, depth }) =>
    depth === top ? `\n## ${said}\n` : `${'  '.repeat(depth - top - 1)}- ${said}`,
  );
  return [...(hasTitle ? [`# ${first.text}`] : []), ...slides].join('\n');
}

function formatFlat(title: string, body: readonly OutlineEntry[]): string {
  return [`## ${title.replace(/:$/, '')}`, '', ...body.map(({ text }) => `- ${text}`)].join('\n');
}

/** Depth follows from indentation, and without any from the kinds of marks in order of appearance. */
function parseEntries(text: string): OutlineEntry[] {
  const kinds: number[] = [];
  const indents: number[] = [];
  return text
    .split('\n')
    .filter((line) => line.trim() !== '')
    .map((line) => {
      const bare = line.trim();
      const kind = entryMarks.findIndex((mark) => mark.test(bare));
      if (kind >= 0 && !kinds.includes(kind)) kinds.push(kind);
      const depth = Math.max(measureDepth(line, indents), readDecimalDepth(bare) ?? Math.max(0, kinds.indexOf(kind)));
      return { text: kind < 0 ? bare : bare.replace(entryMarks[kind] ?? '', ''), depth, isMarked: kind >= 0 };
    });
}

/** Counts by how many indents a line is deeper than the first. */
function measureDepth(line: string, indents: number[]): number {
  const indent = (/^\s*/.exec(line)?.[0] ?? '').replaceAll('\t', '    ').length;
  while (indents.length > 0 && indent < (indents.at(-1) ?? 0)) indents.pop();
  if (indents.length === 0 || indent > (indents.at(-1) ?? 0)) indents.push(indent);
  return indents.length - 1;
}

/** Reads the depth of numbers such as 1.2.3. */
function readDecimalDepth(text: string): number | undefined {
  const decimals = /^(?:\d+\.)+\d+/.exec(text)?.[0];
  return decimals === undefined ? undefined : decimals.split('.').filter(Boolean).length - 1;
}

/** Reads blocks of lines: the first line of each is the title of a slide. A single block is not an outline. */
function fromParagraphs(text: string): string | undefined {
  const blocks = text
    .split(/\n[ \t]*\n/)
    .map((block) =>
      block
        .split('\n')
        .map((line) => line.trim())
        .filter((line) => line !== ''),
    )
    .filter((block) => block.length > 0);
  const [first, ...others] = blocks;
  if (first === undefined || others.length === 0 || !others.some((block) => block.length > 1)) return undefined;
  const slides = (first.length === 1 ? others : blocks).map(([title = '', ...lines]) =>
    [`\n## ${title.replace(/:$/, '')}\n`, ...lines.map((line) => `- ${line}`)].join('\n'),
  );
  return [...(first.length === 1 ? [`# ${first[0] ?? ''}`] : []), ...slides].join('\n');
}
