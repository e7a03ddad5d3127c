// Detects the language of a diagram.

export type Language = 'graphviz' | 'd2' | 'mermaid';

const graphviz = /^(strict\s+)?(di)?graph\b[^;\n]*(\n\s*)?\{/i;
/** All kinds of Mermaid diagrams, so that unsupported ones are reported as such. */
const mermaid =
  /^(graph|flowchart|sequenceDiagram|classDiagram|stateDiagram|erDiagram|xychart|pie|gantt|mindmap|journey|timeline|gitGraph|quadrantChart|requirementDiagram|sankey|block|packet|architecture|kanban|radar|C4\w+|zenuml)\b/;

export function languageOf(source: string, named: Language | 'dot' | undefined): Language {
  if (named !== undefined) return named === 'dot' ? 'graphviz' : named;
  const start = source.replace(/^\uFEFF?(\s+|\/\*[\s\S]*?\*\/|(\/\/|#|%%)[^\n]*\n|---\n[\s\S]*?\n---\n)*/, '');
  if (graphviz.test(start)) return 'graphviz';
  return mermaid.test(start) ? 'mermaid' : 'd2';
}
