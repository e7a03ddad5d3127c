// Draws Mermaid, without a browser: the kinds of diagrams that can be laid out so.
import { renderMermaidSVG } from 'beautiful-mermaid';
import { Problem } from '../../../../lib/problem.ts';
import { draw } from '../../svg/draw.ts';
import type { Picture } from '../../svg/picture.ts';
import { fault, layoutOf, type Sketch } from './layout.ts';
import { plainColours } from './plain-colours.ts';

const kinds = 'flowchart, graph, sequenceDiagram, classDiagram, stateDiagram, erDiagram and xychart';

export default function render({ source, layout, ...wanted }: Sketch): Picture {
  layoutOf('Mermaid', layout, ['dagre']);
  const { text, warnings } = drawable(source);
  return draw(plainColours(svgOf(text)), wanted, warnings);
}

function svgOf(text: string): string {
  try {
    return renderMermaidSVG(text);
  } catch (error) {
    if (error instanceof Problem || error instanceof RangeError || !(error instanceof Error)) throw error;
    const header = /^Invalid mermaid header: "(.*?)"\. Expected/s.exec(error.message)?.[1];
    throw header === undefined
      ? fault('Mermaid', error.message)
      : fault('Mermaid', `${header.slice(0, 100)} begins no diagram that is drawn here; these are: ${kinds}`, 1);
  }
}

/** What concerns pages in a browser is left out: settings before the diagram, and what a click does. */
function drawable(source: string): { text: string; warnings: string[] } {
  const diagram = source.replace(/^\uFEFF?\s*---\n[\s\S]*?\n---\s*\n/, '').replace(/^\s*%%\{[\s\S]*?\}%%\s*/, '');
  const text = diagram.replace(/^[ \t]*click[ \t]+\S+[ \t]+.*$/gm, '');
  return {
    text,
    warnings: [
      ...(diagram.length < source.trimEnd().length && diagram !== source
        ? ['settings before the diagram are left out']
        : []),
      ...(text === diagram ? [] : ['click is left out']),
    ],
  };
}
