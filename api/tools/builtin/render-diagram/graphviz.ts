// Draws DOT with Graphviz (WebAssembly). Runs in a worker process.
import { Graphviz } from '@hpcc-js/wasm-graphviz';
import { draw } from '../../svg/draw.ts';
import type { Picture } from '../../svg/picture.ts';
import { withFont, withoutPads } from './dot-fonts.ts';
import { dotNotes } from './dot-notes.ts';
import { fault, layoutOf, type DiagramTask } from './layout.ts';

const graphviz = await Graphviz.load();

/** Faults that do not keep Graphviz from drawing something, such as a label that it cannot parse: asked for once, gone. */
interface Module {
  readonly _module: { readonly CGraphviz: { lastError: () => string } };
}
const { CGraphviz } = (graphviz as unknown as Module)._module;
const lastError = CGraphviz.lastError.bind(CGraphviz);
let said = '';
CGraphviz.lastError = () => (said = lastError());

export default function render({ source, layout, ...wanted }: DiagramTask): Picture {
  const engine = layoutOf('Graphviz', layout, ['dot', 'neato', 'fdp', 'sfdp', 'circo', 'twopi', 'osage', 'patchwork']);
  const notes = dotNotes(source);
  const svg = svgOf(source, engine);
  if (said !== '') throw fault('Graphviz', withoutPads(said));
  return draw(svg, wanted, notes);
}

function svgOf(
  source: string,
  engine: 'dot' | 'neato' | 'fdp' | 'sfdp' | 'circo' | 'twopi' | 'osage' | 'patchwork',
): string {
  said = '';
  try {
    return withoutPads(graphviz.layout(withFont(source), 'svg', engine));
  } catch (error) {
    const words = error instanceof Error ? error.message : '';
    // A WebAssembly trap, such as at the end of its memory, is passed on as it is.
    if (words === '' || !(error instanceof Error) || error.constructor !== Error) throw error;
    const line = /in line (\d+)/.exec(words)?.[1];
    throw fault(
      'Graphviz',
      withoutPads(words).replace(/ ?in line \d+/, ''),
      line === undefined ? undefined : Number(line),
    );
  }
}
