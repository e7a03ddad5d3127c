// Fixes what pptxgenjs 4.0.1 writes: properties of a paragraph repeated inside it, which PowerPoint takes for damage,
// and bullets without a colour.
import JSZip from 'jszip';

/** @param accent colour of the bullets, as RRGGBB */
export async function repair(bytes: Uint8Array, accent: string): Promise<Uint8Array> {
  const archive = await JSZip.loadAsync(bytes);
  const slides = Object.keys(archive.files).filter((name) => /^ppt\/slides\/slide\d+\.xml$/.test(name));
  await Promise.all(
    slides.map(async (name) => {
      const xml = await archive.file(name)?.async('string');
      if (xml !== undefined) archive.file(name, coloured(once(xml), accent));
    }),
  );
  return archive.generateAsync({ type: 'uint8array', compression: 'DEFLATE' });
}

/** Of each paragraph, only the properties at its beginning. Text is escaped in XML, so none can look like a tag. */
function once(xml: string): string {
  return xml.replaceAll(/(<\/a:r>|<\/a:fld>|<a:br\/>)<a:pPr(?:[^>]*\/>|[^>]*>.*?<\/a:pPr>)/gs, '$1');
}

function coloured(xml: string, accent: string): string {
  return xml.replaceAll('<a:buSzPct', `<a:buClr><a:srgbClr val="${accent}"/></a:buClr><a:buSzPct`);
}
