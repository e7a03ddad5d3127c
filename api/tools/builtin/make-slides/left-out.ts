// What Markdown can say and slides cannot keep: it is taken out of an outline, or kept as text, and said.

export interface Prepared {
  readonly text: string;
  readonly warnings: readonly string[];
}

const fences = /^([ \t]*)([`~]{3,})[^\n]*\n[\s\S]*?^[ \t]*\2[ \t]*$|`[^`\n]+`/gm;

/** The outline, ready to be parsed. Code is left as it is. */
export function prepared(outline: string): Prepared {
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
    .replaceAll(fences, (code) => `\uE000${kept.push(code) - 1}\uE001`);
  const text = rules.reduce((now, rule) => rule(now, say), bare);
  return { text: text.replaceAll(/\uE000(\d+)\uE001/g, (_, index: string) => kept[Number(index)] ?? ''), warnings };
}

/** Elements of HTML; `List<Item>` is none. */
const tags =
  /<\/?(?:a|abbr|b|blockquote|body|center|code|dd|del|details|div|dl|dt|em|figcaption|figure|font|footer|h[1-6]|head|header|hr|html|i|ins|kbd|li|main|mark|nav|ol|p|pre|q|s|section|small|span|strong|sub|summary|sup|table|tbody|td|tfoot|th|thead|tr|tt|u|ul)(?:\s[^<>\n]*)?\/?>/gi;

type Rule = (text: string, say: (warning: string) => string) => string;

const rules: readonly Rule[] = [
  // Notes right below a list would go on with its last item.
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
  (text, say) => text.replaceAll(tags, () => say('HTML tags are left out; their text is kept.')),
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
