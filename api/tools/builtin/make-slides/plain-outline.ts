// An outline without Markdown headings, numbered, indented or plain, written as Markdown with headings.

interface Entry {
  readonly text: string;
  readonly depth: number;
  readonly isMarked: boolean;
}

const marks: readonly RegExp[] = [
  /^(?:\d+\.)+\d+\.?\s+/,
  /^\d{1,3}[.)]\s+/,
  /^\(?[ivxlc]{1,6}[.)]\s+/i,
  /^\(?[A-Za-z][.)]\s+/,
  /^[-*+•‣–]\s+/,
];
const slideMark = /^(?:\*\*|__)?slide\s+\d+\s*[:.–—-]\s*(.*?)(?:\*\*|__)?$/i;

/** Whether a heading is there already. */
export function hasHeadings(outline: string): boolean {
  const bare = outline.replaceAll(/^([`~]{3,})[\s\S]*?^\1/gm, '');
  return /^ {0,3}#{1,6}\s/m.test(bare) || /^\S[^\n]*\n(=+|-+)[ \t]*$/m.test(bare);
}

/** @returns the outline in Markdown; undefined where it has no structure that could become slides */
export function markdownOf(outline: string): string | undefined {
  const text = outline.replaceAll('\r\n', '\n');
  return bySlideMarks(text) ?? byDepth(text) ?? byParagraphs(text);
}

/** `Slide 3: Title`, and what follows. */
function bySlideMarks(text: string): string | undefined {
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

/** Numbers, letters, bullets and indentation: the first level are slides, the deeper ones their bullets. */
function byDepth(text: string): string | undefined {
  const entries = entriesOf(text);
  const [first] = entries;
  if (first === undefined || !entries.some(({ isMarked }) => isMarked)) return undefined;
  const hasTitle = !first.isMarked && entries.slice(1).every(({ isMarked, depth }) => isMarked || depth > 0);
  const body = hasTitle ? entries.slice(1) : entries;
  const top = Math.min(...body.map(({ depth }) => depth));
  if (!body.some(({ depth }) => depth > top)) return hasTitle ? flat(first.text, body) : undefined;
  const slides = body.map(({ text: said, depth }) =>
    depth === top ? `\n## ${said}\n` : `${'  '.repeat(depth - top - 1)}- ${said}`,
  );
  return [...(hasTitle ? [`# ${first.text}`] : []), ...slides].join('\n');
}

function flat(title: string, body: readonly Entry[]): string {
  return [`## ${title.replace(/:$/, '')}`, '', ...body.map(({ text }) => `- ${text}`)].join('\n');
}

/** Depth by indentation and, where nothing is indented, by the kinds of marks in the order in which they appear. */
function entriesOf(text: string): Entry[] {
  const kinds: number[] = [];
  const indents: number[] = [];
  return text
    .split('\n')
    .filter((line) => line.trim() !== '')
    .map((line) => {
      const bare = line.trim();
      const kind = marks.findIndex((mark) => mark.test(bare));
      if (kind >= 0 && !kinds.includes(kind)) kinds.push(kind);
      const depth = Math.max(depthOf(line, indents), decimalsOf(bare) ?? Math.max(0, kinds.indexOf(kind)));
      return { text: kind < 0 ? bare : bare.replace(marks[kind] ?? '', ''), depth, isMarked: kind >= 0 };
    });
}

/** By how many indents a line is deeper than the first. */
function depthOf(line: string, indents: number[]): number {
  const indent = (/^\s*/.exec(line)?.[0] ?? '').replaceAll('\t', '    ').length;
  while (indents.length > 0 && indent < (indents.at(-1) ?? 0)) indents.pop();
  if (indents.length === 0 || indent > (indents.at(-1) ?? 0)) indents.push(indent);
  return indents.length - 1;
}

/** The depth that 1.2.3 says. */
function decimalsOf(text: string): number | undefined {
  const decimals = /^(?:\d+\.)+\d+/.exec(text)?.[0];
  return decimals === undefined ? undefined : decimals.split('.').filter(Boolean).length - 1;
}

/** Blocks of lines: the first line of each is the title of a slide. One block is no outline. */
function byParagraphs(text: string): string | undefined {
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
