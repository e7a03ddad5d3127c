// Fixes what pptxgenjs 4.0.1 writes: properties of a paragraph repeated inside it, which PowerPoint takes for damage,
// bullets without a colour, and placeholders, which it cannot place freely.
import JSZip from 'jszip';

/** Shapes of these names become placeholders of their slide. */
export const shapeNames = { title: 'Title', body: 'Body 1', second: 'Body 2' } as const;

/** @param accent colour of the bullets, as RRGGBB */
export async function repair(bytes: Uint8Array, accent: string): Promise<Uint8Array> {
  const archive = await JSZip.loadAsync(bytes);
  const change = async (folder: RegExp, changed: (xml: string) => string): Promise<void> => {
    const names = Object.keys(archive.files).filter((name) => folder.test(name));
    await Promise.all(
      names.map(async (name) => {
        const xml = await archive.file(name)?.async('string');
        if (xml !== undefined) archive.file(name, changed(xml));
      }),
    );
  };
  await change(/^ppt\/slides\/slide\d+\.xml$/, (xml) => placed(coloured(once(xml), accent)));
  await change(/^ppt\/slideLayouts\/slideLayout\d+\.xml$/, layout);
  return archive.generateAsync({ type: 'uint8array', compression: 'DEFLATE' });
}

/** Of each paragraph, only the properties at its beginning. Text is escaped in XML, so none can look like a tag. */
function once(xml: string): string {
  return xml.replaceAll(/(<\/a:r>|<\/a:fld>|<a:br\/>)<a:pPr(?:[^>]*\/>|[^>]*>.*?<\/a:pPr>)/gs, '$1');
}

function coloured(xml: string, accent: string): string {
  return xml.replaceAll('<a:buSzPct', `<a:buClr><a:srgbClr val="${accent}"/></a:buClr><a:buSzPct`);
}

const bodyOf = (index: number): string => `<p:ph type="body" idx="${index}"/>`;
const placeholders = new Map<string, string>([
  [shapeNames.title, '<p:ph type="title"/>'],
  [shapeNames.body, bodyOf(1)],
  [shapeNames.second, bodyOf(2)],
]);

/** Shapes as placeholders; the empty ones that pptxgenjs puts on each slide are left out. */
function placed(xml: string): string {
  return xml.replaceAll(/<p:sp>.*?<\/p:sp>/gs, (shape) => {
    if (shape.includes('<p:ph')) return '';
    const name = /<p:cNvPr [^>]*\bname="([^"]*)"/.exec(shape)?.[1];
    const kind = placeholders.get(name ?? '');
    if (kind === undefined) return shape;
    return shape.replace(/<p:nvPr>\s*<\/p:nvPr>|<p:nvPr\s*\/>/, `<p:nvPr>${kind}</p:nvPr>`);
  });
}

/** The placeholders of a layout under the numbers by which slides name them. */
function layout(xml: string): string {
  let bodies = 0;
  return xml.replaceAll(/<p:ph\b[^>]*?\/>/gs, (placeholder) => {
    if (/type="title"/.test(placeholder)) return '<p:ph type="title"/>';
    if (!/type="body"/.test(placeholder)) return placeholder;
    bodies += 1;
    return bodyOf(bodies);
  });
}
