// Draws DOT with Graphviz (WebAssembly). Runs in a worker process.
import { Graphviz } from '@hpcc-js/wasm-graphviz';
import { draw } from '../../svg/draw.ts';
import type { Picture } from '../../svg/picture.ts';
import { fault, layoutOf, type DiagramTask } from './layout.ts';

const graphviz = await Graphviz.load();

export default function render({ source, layout, ...wanted }: DiagramTask): Picture {
  const engine = layoutOf('Graphviz', layout, ['dot', 'neato', 'fdp', 'sfdp', 'circo', 'twopi', 'osage', 'patchwork']);
  return draw(svgOf(source, engine), wanted);
}

function svgOf(
  source: string,
  engine: 'dot' | 'neato' | 'fdp' | 'sfdp' | 'circo' | 'twopi' | 'osage' | 'patchwork',
): string {
  try {
    return graphviz.layout(source, 'svg', engine);
  } catch (error) {
    const words = error instanceof Error ? error.message : '';
    // A WebAssembly trap, such as at the end of its memory, is passed on as it is.
    if (words === '' || !(error instanceof Error) || error.constructor !== Error) throw error;
    const line = /in line (\d+)/.exec(words)?.[1];
    throw fault('Graphviz', words.replace(/ ?in line \d+/, ''), line === undefined ? undefined : Number(line));
  }
}
