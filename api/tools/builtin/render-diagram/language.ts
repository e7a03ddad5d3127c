// Diagram languages: detects the language of a source, parses its layout option, and reports syntax errors. Shared by
// the tool and the workers, so it imports nothing heavy.
import { Problem } from '../../../../lib/problem.ts';
import { unprocessable } from '../../problems.ts';
import type { PictureOptions } from '../../svg/draw.ts';

export type DiagramLanguage = 'graphviz' | 'd2' | 'mermaid';

const graphvizStart =
  /^(strict\s+)?(di)?graph\s*("(?:[^"\\]|\\.)*"|[\w.-]+)?(\s|\/\/[^\n]*\n|\/\*[\s\S]*?\*\/|#[^\n]*\n)*\{/i;

/** Keywords that begin a Mermaid diagram, in any case: with the wrong case it is still Mermaid. */
const mermaidWords =
  'graph|flowchart(-v2|-elk)?|sequenceDiagram|classDiagram(-v2)?|stateDiagram(-v2)?|erDiagram|xychart(-beta)?|pie|gantt|mindmap|journey|timeline|gitGraph|quadrantChart|requirement(Diagram)?|sankey(-beta)?|block(-beta)?|packet(-beta)?|architecture(-beta)?|kanban|radar(-beta)?|treemap(-beta)?|treeView-beta|venn-beta|ishikawa(-beta)?|usecase-beta|wardley-beta|cynefin-beta|railroad(-ebnf|-abnf|-peg)?-beta|swimlane-beta|agentflow-beta|eventmodeling|C4(Context|Container|Component|Dynamic|Deployment)|zenuml|info';
/** Excludes D2 nodes of the same name. */
const mermaidStart = new RegExp(`^(${mermaidWords})(?=$|[\\s;:{])(?!\\s*(->|<-|--|:\\s*[{|]?\\s*\\S|\\{))`, 'i');
const mermaidGitGraph = /^gitGraph\s*(LR|TB|BT)?\s*:/i;

/** An edge, a container, or a key that only D2 has. Checked last: the patterns are loose. */
const d2Signs = [
  /^[^\n#]*?(<->|->|<-|--)/m,
  /^[^\n#:]+(:[^\n]*)?\{\s*(#[^\n]*)?$/m,
  /^[^\n#:{]+:\s*\{[^\n]*\}\s*$/m,
  /^\s*[^\n#:]*\.?(shape|style(\.[\w-]+)?|near|icon|tooltip|grid-rows|grid-columns|direction)\s*:\s*\S/m,
  /^\s*(vars|classes|layers|scenarios|steps)\s*:/m,
  /:\s*\|+[`\w]*\s*$/m,
];

/** Sources that other tools draw. */
const foreignSigns: readonly [RegExp, string][] = [
  [/^@start\w+/, 'PlantUML'],
  [/^\s*</, 'XML, SVG or HTML'],
  [/^\s*[[{]\s*"/, 'JSON'],
];

const languageNames = 'mermaid, d2 or graphviz';

export interface DetectedDiagram {
  readonly language: DiagramLanguage;
  /** The source without the fence around it. */
  readonly text: string;
  readonly warnings: readonly string[];
}

/** @throws Problem (unprocessable) if the language is uncertain or not supported */
export function detectDiagram(source: string, named: DiagramLanguage | 'dot' | undefined): DetectedDiagram {
  const kind = named === 'dot' ? 'graphviz' : named;
  const { text, fenced, warnings } = unwrapFence(source);
  const marked = fenced === undefined || fenced === '' ? undefined : parseLanguageName(fenced);
  if (kind !== undefined && marked !== undefined && kind !== marked)
    throw createUnsureProblem(`kind is ${kind}, but the fenced block says ${fenced ?? ''}.`);
  return { language: kind ?? marked ?? detectLanguage(text), text, warnings };
}

function unwrapFence(source: string): { text: string; fenced: string | undefined; warnings: string[] } {
  const fences = [...source.matchAll(/^[ \t]*(`{3,}|~{3,})[ \t]*([\w.+-]*)[^\n]*\n([\s\S]*?)^[ \t]*\1[ \t]*$/gm)];
  const [fence] = fences;
  if (fence === undefined || !isWrapping(source, fence[2])) return { text: source, fenced: undefined, warnings: [] };
  if (fences.length > 1)
    throw createUnsureProblem(`source has ${fences.length} fenced blocks. Send one diagram per call.`);
  const [whole = '', , fenced = '', text = ''] = fence;
  const around = source.replace(whole, '').trim() !== '';
  return { text, fenced, warnings: around ? ['The text around the fenced block was left out.'] : [] };
}

/** Whether the fence wraps the diagram, as in an assistant's answer. A D2 text can itself contain a fenced block. */
function isWrapping(source: string, called = ''): boolean {
  return isFenced(source) || /^(mermaid|d2|dot|graphviz|gv)$/i.test(called);
}

const isFenced = (source: string): boolean => /^\uFEFF?\s*(`{3,}|~{3,})/.test(source);

function parseLanguageName(name: string): DiagramLanguage {
  const called = name.toLowerCase();
  if (called === 'mermaid' || called === 'mmd') return 'mermaid';
  if (called === 'd2') return 'd2';
  if (called === 'dot' || called === 'graphviz' || called === 'gv') return 'graphviz';
  throw createUnsureProblem(
    `A fenced block of ${name.slice(0, 40)} is no diagram that this tool draws. It draws ${languageNames}.`,
  );
}

function detectLanguage(source: string): DiagramLanguage {
  const start = source.replace(
    /^\uFEFF?(\s+|\/\*[\s\S]*?\*\/|(\/\/|#|%%)[^\n]*(\n|$)|---\r?\n[\s\S]*?\n---[ \t]*(\r?\n|$))*/,
    '',
  );
  if (graphvizStart.test(start)) return 'graphviz';
  if (mermaidStart.test(start) || mermaidGitGraph.test(start)) return 'mermaid';
  const other = foreignSigns.find(([pattern]) => pattern.test(start))?.[1];
  if (other !== undefined)
    throw createUnsureProblem(`source looks like ${other}, which this tool does not draw. It draws ${languageNames}.`);
  if (d2Signs.some((pattern) => pattern.test(start))) return 'd2';
  throw createUnsureProblem(
    `source does not look like a diagram: it has no heading of Mermaid (such as flowchart LR), no graph { } of Graphviz, and no connection or container of D2. Write one, or set kind to ${languageNames}.`,
  );
}

function createUnsureProblem(words: string): Problem {
  return new Problem(unprocessable, words, {
    errors: [{ in: 'query', field: 'source', message: words, fix: `Set kind to ${languageNames}, or correct source.` }],
  });
}

export interface DiagramTask extends PictureOptions {
  readonly source: string;
  readonly layout: string | undefined;
}

/** Reports a syntax error in the words of the parser. */
export function createSyntaxFault(language: string, words: string, line?: number): Problem {
  return new Problem(
    unprocessable,
    `${language} cannot parse source: ${line === undefined ? '' : `line ${line}: `}${words.trim().slice(0, 600)}`,
    line === undefined ? {} : { members: { line } },
  );
}

/**
 * Parses the requested layout; defaults to the first known one. @throws Problem (unprocessable) if the language lacks
 * it
 */
export function parseLayout<Name extends string>(
  language: string,
  requested: string | undefined,
  known: readonly [Name, ...Name[]],
): Name {
  if (requested === undefined) return known[0];
  const found = known.find((name) => name === requested);
  if (found === undefined)
    throw new Problem(unprocessable, `${language} has no layout ${requested}. Available: ${known.join(', ')}.`);
  return found;
}
