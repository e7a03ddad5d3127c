// Draws Mermaid diagrams with beautiful-mermaid, which needs no browser. Runs in a worker process.
import { renderMermaidSVG } from 'beautiful-mermaid';
import { Problem } from '../../../../lib/problem.ts';
import { draw } from '../../svg/draw.ts';
import type { Picture } from '../../svg/picture.ts';
import { fault, layoutOf, type DiagramTask } from './layout.ts';
import { plainColours } from './plain-colours.ts';

const kinds = 'flowchart, graph, sequenceDiagram, classDiagram, stateDiagram, erDiagram and xychart';

export default function render({ source, layout, ...wanted }: DiagramTask): Picture {
  // Its only layout is ELK; dagre, which mermaid.js defaults to, is accepted and ignored.
  if (layout !== 'dagre') layoutOf('Mermaid', layout, ['elk']);
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
      : fault('Mermaid', `${header.slice(0, 100)} is not a supported diagram type. Supported: ${kinds}.`, 1);
  }
}

/** Removes what only a browser uses: settings before the diagram, and click handlers. */
function drawable(source: string): { text: string; warnings: string[] } {
  const diagram = source.replace(/^\uFEFF?\s*---\n[\s\S]*?\n---\s*\n/, '').replace(/^\s*%%\{[\s\S]*?\}%%\s*/, '');
  const text = diagram.replace(/^[ \t]*click[ \t]+\S+[ \t]+.*$/gm, '');
  return {
    text,
    warnings: [
      ...(diagram.length < source.trimEnd().length && diagram !== source
        ? ['Settings before the diagram were ignored.']
        : []),
      ...(text === diagram ? [] : ['click was ignored.']),
    ],
  };
}
