// Resolves the colours that an SVG computes in CSS (variables, mixtures), which few programs but browsers support.

const longestChain = 12;

/** The SVG with plain colours, and without style sheets from elsewhere. */
export function plainColours(svg: string): string {
  const variables = new Map<string, string>();
  const tags = /<style[\s\S]*?<\/style>|<[^>]+>/g;
  for (const [tag] of svg.matchAll(tags)) {
    if (!/^<(style|svg)\b/.test(tag)) continue;
    for (const [, name = '', value = ''] of tag
      .replace(/\/\*[\s\S]*?\*\//g, '')
      .matchAll(/(--[\w-]+)\s*:\s*([^;"}]+)/g))
      variables.set(name, value.trim());
  }
  return svg
    .replace(/@import url\('[^']*'\);?/g, '')
    .replace(tags, (tag) => (/var\(|color-mix\(/.test(tag) ? resolved(tag, variables) : tag));
}

function resolved(tag: string, variables: ReadonlyMap<string, string>): string {
  let text = tag;
  for (let pass = 0; pass < longestChain; pass += 1) {
    const next = text
      .replace(
        /var\(\s*(--[\w-]+)\s*(?:,\s*([^()]*))?\)/g,
        (whole, name: string, fallback: string | undefined) =>
          variables.get(name) ?? fallback ?? (whole.includes(',') ? whole : 'currentColor'),
      )
      .replace(
        /color-mix\(\s*in srgb\s*,\s*(#[0-9a-f]{6})\s+([\d.]+)%\s*,\s*(#[0-9a-f]{6})(?:\s+[\d.]+%)?\s*\)/gi,
        (_, one: string, share: string, other: string) => mixed(one, Number(share) / 100, other),
      );
    if (next === text) break;
    text = next;
  }
  return text;
}

function mixed(one: string, share: number, other: string): string {
  const part = (colour: string, at: number): number => Number.parseInt(colour.slice(at, at + 2), 16);
  return `#${[1, 3, 5]
    .map((at) =>
      Math.round(part(one, at) * share + part(other, at) * (1 - share))
        .toString(16)
        .padStart(2, '0'),
    )
    .join('')}`;
}
