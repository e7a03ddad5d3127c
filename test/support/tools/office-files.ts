// Writes small office files for tests: each as little as an office suite opens, with a sentence in it and whatever a
// test adds.
import JSZip from 'jszip';
import { createRequire } from 'node:module';
import type PptxGenJs from 'pptxgenjs';

// Its types are of an ES module, its entry for Node is CommonJS.
const Presentation = createRequire(import.meta.url)('pptxgenjs') as typeof PptxGenJs.default;

async function archive(files: Readonly<Record<string, string>>): Promise<Uint8Array> {
  const zip = new JSZip();
  for (const [name, text] of Object.entries(files))
    zip.file(name, text, { compression: name === 'mimetype' ? 'STORE' : 'DEFLATE' });
  return zip.generateAsync({ type: 'uint8array' });
}

const xml = '<?xml version="1.0" encoding="UTF-8" standalone="yes"?>';
const relations = 'http://schemas.openxmlformats.org/officeDocument/2006/relationships';
const packageRelations = 'http://schemas.openxmlformats.org/package/2006/relationships';

/** A relation of a document to something outside of it. */
export function createOutsideLink(id: string, type: string, target: string): string {
  return `<Relationship Id="${id}" Type="${relations}/${type}" Target="${target}" TargetMode="External"/>`;
}

/** A picture in a paragraph of a docx, by the id of its relation. */
export function docxPicture(id: string): string {
  const extent = '<wp:extent cx="900000" cy="900000"/><wp:docPr id="1" name="p"/>';
  const shape =
    '<pic:spPr><a:xfrm><a:off x="0" y="0"/><a:ext cx="900000" cy="900000"/></a:xfrm><a:prstGeom prst="rect"><a:avLst/></a:prstGeom></pic:spPr>';
  return `<w:p><w:r><w:drawing><wp:inline xmlns:wp="http://schemas.openxmlformats.org/drawingml/2006/wordprocessingDrawing">${extent}<a:graphic xmlns:a="http://schemas.openxmlformats.org/drawingml/2006/main"><a:graphicData uri="http://schemas.openxmlformats.org/drawingml/2006/picture"><pic:pic xmlns:pic="http://schemas.openxmlformats.org/drawingml/2006/picture"><pic:nvPicPr><pic:cNvPr id="1" name="p"/><pic:cNvPicPr/></pic:nvPicPr><pic:blipFill><a:blip r:link="${id}"/><a:stretch><a:fillRect/></a:stretch></pic:blipFill>${shape}</pic:pic></a:graphicData></a:graphic></wp:inline></w:drawing></w:r></w:p>`;
}

export async function docx(sentence: string, { body = '', links = '' } = {}): Promise<Uint8Array> {
  return archive({
    '[Content_Types].xml': `${xml}<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types"><Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/><Override PartName="/word/document.xml" ContentType="application/vnd.openxmlformats-officedocument.wordprocessingml.document.main+xml"/></Types>`,
    '_rels/.rels': `${xml}<Relationships xmlns="${packageRelations}"><Relationship Id="r" Type="${relations}/officeDocument" Target="word/document.xml"/></Relationships>`,
    'word/_rels/document.xml.rels': `${xml}<Relationships xmlns="${packageRelations}">${links}</Relationships>`,
    'word/document.xml': `${xml}<w:document xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main" xmlns:r="${relations}"><w:body><w:p><w:r><w:t>${sentence}</w:t></w:r></w:p>${body}</w:body></w:document>`,
  });
}

/** Cells of a row: text, or a formula that begins with =. */
export async function xlsx(row: readonly string[]): Promise<Uint8Array> {
  const cells = row.map((cell, index) => {
    const at = `${String.fromCharCode(65 + index)}1`;
    return cell.startsWith('=')
      ? `<c r="${at}" t="str"><f>${cell.slice(1).replaceAll('"', '&quot;')}</f></c>`
      : `<c r="${at}" t="inlineStr"><is><t>${cell}</t></is></c>`;
  });
  const sheet = 'application/vnd.openxmlformats-officedocument.spreadsheetml';
  return archive({
    '[Content_Types].xml': `${xml}<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types"><Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/><Override PartName="/xl/workbook.xml" ContentType="${sheet}.sheet.main+xml"/><Override PartName="/xl/worksheets/sheet1.xml" ContentType="${sheet}.worksheet+xml"/></Types>`,
    '_rels/.rels': `${xml}<Relationships xmlns="${packageRelations}"><Relationship Id="r" Type="${relations}/officeDocument" Target="xl/workbook.xml"/></Relationships>`,
    'xl/_rels/workbook.xml.rels': `${xml}<Relationships xmlns="${packageRelations}"><Relationship Id="s" Type="${relations}/worksheet" Target="worksheets/sheet1.xml"/></Relationships>`,
    'xl/workbook.xml': `${xml}<workbook xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main" xmlns:r="${relations}"><sheets><sheet name="One" sheetId="1" r:id="s"/></sheets></workbook>`,
    'xl/worksheets/sheet1.xml': `${xml}<worksheet xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"><sheetData><row r="1">${cells.join('')}</row></sheetData></worksheet>`,
  });
}

export async function pptx(sentence: string): Promise<Uint8Array> {
  const deck = new Presentation();
  deck.addSlide().addText(sentence, { x: 1, y: 1, w: 8, h: 1 });
  return new Uint8Array((await deck.write({ outputType: 'arraybuffer' })) as ArrayBuffer);
}

const namespaces = ['office', 'text', 'table', 'drawing', 'presentation', 'style']
  .map((name) => `xmlns:${name === 'drawing' ? 'draw' : name}="urn:oasis:names:tc:opendocument:xmlns:${name}:1.0"`)
  .join(' ');
const others =
  'xmlns:fo="urn:oasis:names:tc:opendocument:xmlns:xsl-fo-compatible:1.0" xmlns:svg="urn:oasis:names:tc:opendocument:xmlns:svg-compatible:1.0" xmlns:xlink="http://www.w3.org/1999/xlink" xmlns:of="urn:oasis:names:tc:opendocument:xmlns:of:1.2"';

/** An OpenDocument file with this content in its body. */
export async function openDocument(
  kind: 'text' | 'spreadsheet' | 'presentation',
  content: string,
): Promise<Uint8Array> {
  const mediaType = `application/vnd.oasis.opendocument.${kind}`;
  return archive({
    mimetype: mediaType,
    'META-INF/manifest.xml': `${xml}<manifest:manifest xmlns:manifest="urn:oasis:names:tc:opendocument:xmlns:manifest:1.0" manifest:version="1.2"><manifest:file-entry manifest:full-path="/" manifest:media-type="${mediaType}"/><manifest:file-entry manifest:full-path="content.xml" manifest:media-type="text/xml"/></manifest:manifest>`,
    'content.xml': `${xml}<office:document-content ${namespaces} ${others} office:version="1.2"><office:body><office:${kind}>${content}</office:${kind}></office:body></office:document-content>`,
  });
}

export async function odt(sentence: string, more = ''): Promise<Uint8Array> {
  return openDocument('text', `<text:p>${sentence}</text:p>${more}`);
}

export async function ods(...cells: readonly string[]): Promise<Uint8Array> {
  const made = cells.map((cell) =>
    cell.startsWith('of:')
      ? `<table:table-cell table:formula="${cell.replaceAll('"', '&quot;')}" office:value-type="string"/>`
      : `<table:table-cell office:value-type="string"><text:p>${cell}</text:p></table:table-cell>`,
  );
  return openDocument(
    'spreadsheet',
    `<table:table table:name="One"><table:table-row>${made.join('')}</table:table-row></table:table>`,
  );
}

export async function odp(sentence: string): Promise<Uint8Array> {
  return openDocument(
    'presentation',
    `<draw:page draw:name="one"><draw:frame svg:x="2cm" svg:y="2cm" svg:width="20cm" svg:height="3cm"><draw:text-box><text:p>${sentence}</text:p></draw:text-box></draw:frame></draw:page>`,
  );
}
