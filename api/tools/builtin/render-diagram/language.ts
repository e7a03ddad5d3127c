// Detects the language of a diagram, or says that it is unsure.
import { Problem } from '../../../../lib/problem.ts';
import { unprocessable } from '../../problems.ts';

export type Language = 'graphviz' | 'd2' | 'mermaid';

const graphviz =
  /^(strict\s+)?(di)?graph\s*("(?:[^"\\]|\\.)*"|[\w.-]+)?(\s|\/\/[^\n]*\n|\/\*[\s\S]*?\*\/|#[^\n]*\n)*\{/i;

/** Words with which a Mermaid diagram begins, in any case: a misspelled one is Mermaid all the same. */
const mermaidWords =
  'graph|flowchart(-v2|-elk)?|sequenceDiagram|classDiagram(-v2)?|stateDiagram(-v2)?|erDiagram|xychart(-beta)?|pie|gantt|mindmap|journey|timeline|gitGraph|quadrantChart|requirement(Diagram)?|sankey(-beta)?|block(-beta)?|packet(-beta)?|architecture(-beta)?|kanban|radar(-beta)?|treemap(-beta)?|treeView-beta|venn-beta|ishikawa(-beta)?|usecase-beta|wardley-beta|cynefin-beta|railroad(-ebnf|-abnf|-peg)?-beta|swimlane-beta|agentflow-beta|eventmodeling|C4(Context|Container|Component|Dynamic|Deployment)|zenuml|info';
/** Not a node of D2 that has such a name. */
const mermaid = new RegExp(`^(${mermaidWords})(?=$|[\\s;:{])(?!\\s*(->|<-|--|:\\s*[{|]?\\s*\\S|\\{))`, 'i');
const mermaidColon = /^gitGraph\s*(LR|TB|BT)?\s*:/i;

/** An edge, a container, or a key that only D2 has. */
const d2 = [
  /^[^\n#]*?(<->|->|<-|--)/m,
  /^[^\n#:]+(:[^\n]*)?\{\s*(#[^\n]*)?$/m,
  /^[^\n#:{]+:\s*\{[^\n]*\}\s*$/m,
  /^\s*[^\n#:]*\.?(shape|style(\.[\w-]+)?|near|icon|tooltip|grid-rows|grid-columns|direction)\s*:\s*\S/m,
  /^\s*(vars|classes|layers|scenarios|steps)\s*:/m,
  /:\s*\|+[`\w]*\s*$/m,
];

/** What others draw. */
const foreign: readonly [RegExp, string][] = [
  [/^@start\w+/, 'PlantUML'],
  [/^\s*</, 'XML, SVG or HTML'],
  [/^\s*[[{]\s*"/, 'JSON'],
];

const names = 'mermaid, d2 or graphviz';

export interface Diagram {
  readonly language: Language;
  /** The source without the fence around it. */
  readonly text: string;
  readonly warnings: readonly string[];
}

/** @throws Problem (unprocessable) when its language is not certain, or not one of these */
export function diagramIn(source: string, named: Language | 'dot' | undefined): Diagram {
  const kind = named === 'dot' ? 'graphviz' : named;
  const { text, fenced, warnings } = unwrapped(source);
  const marked = fenced === undefined || fenced === '' ? undefined : languageCalled(fenced);
  if (kind !== undefined && marked !== undefined && kind !== marked)
    throw unsure(`kind is ${kind}, but the fenced block says ${fenced ?? ''}.`);
  return { language: kind ?? marked ?? detected(text), text, warnings };
}

function unwrapped(source: string): { text: string; fenced: string | undefined; warnings: string[] } {
  const fences = [...source.matchAll(/^[ \t]*(`{3,}|~{3,})[ \t]*([\w.+-]*)[^\n]*\n([\s\S]*?)^[ \t]*\1[ \t]*$/gm)];
  const [fence] = fences;
  if (fence === undefined || !isWrapping(source, fence[2])) return { text: source, fenced: undefined, warnings: [] };
  if (fences.length > 1) throw unsure(`source has ${fences.length} fenced blocks. Send one diagram per call.`);
  const [whole = '', , fenced = '', text = ''] = fence;
  const around = source.replace(whole, '').trim() !== '';
  return { text, fenced, warnings: around ? ['The text around the fenced block was left out.'] : [] };
}

/** Around a block stand the words of an assistant. In D2 a block can also stand inside of a text. */
function isWrapping(source: string, called = ''): boolean {
  return startsWithFence(source) || /^(mermaid|d2|dot|graphviz|gv)$/i.test(called);
}

const startsWithFence = (source: string): boolean => /^\uFEFF?\s*(`{3,}|~{3,})/.test(source);

function languageCalled(name: string): Language {
  const called = name.toLowerCase();
  if (called === 'mermaid' || called === 'mmd') return 'mermaid';
  if (called === 'd2') return 'd2';
  if (called === 'dot' || called === 'graphviz' || called === 'gv') return 'graphviz';
  throw unsure(`A fenced block of ${name.slice(0, 40)} is no diagram that this tool draws. It draws ${names}.`);
}

function detected(source: string): Language {
  const start = source.replace(
    /^\uFEFF?(\s+|\/\*[\s\S]*?\*\/|(\/\/|#|%%)[^\n]*(\n|$)|---\r?\n[\s\S]*?\n---[ \t]*(\r?\n|$))*/,
    '',
  );
  if (graphviz.test(start)) return 'graphviz';
  if (mermaid.test(start) || mermaidColon.test(start)) return 'mermaid';
  const other = foreign.find(([pattern]) => pattern.test(start))?.[1];
  if (other !== undefined)
    throw unsure(`source looks like ${other}, which this tool does not draw. It draws ${names}.`);
  if (d2.some((pattern) => pattern.test(start))) return 'd2';
  throw unsure(
    `source does not look like a diagram: it has no heading of Mermaid (such as flowchart LR), no graph { } of Graphviz, and no connection or container of D2. Write one, or set kind to ${names}.`,
  );
}

function unsure(words: string): Problem {
  return new Problem(unprocessable, words, {
    errors: [{ in: 'query', field: 'source', message: words, fix: `Set kind to ${names}, or correct source.` }],
  });
}
