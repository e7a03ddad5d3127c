// Reads the front matter of a Hugging Face Space in README.md: what it is made with, its file and its port.
import { present } from '../../../../lib/present.ts';
import { readField, readText } from '../../manifest.ts';
import type { Tree } from '../../tree.ts';
import type { Declaration } from './declaration.ts';
import { parseYaml } from './yaml.ts';

export function huggingFaceDeclaration(tree: Tree): Declaration | undefined {
  const file = 'README.md';
  const matter = /^\ufeff?---\r?\n([\s\S]{1,4000}?)\r?\n---/.exec(tree.text(file, 8_000) ?? '')?.[1];
  const parsed = parseYaml(matter);
  switch (readText(parsed, 'sdk')) {
    case 'docker':
      return { file, port: portOf(parsed) ?? 7860 };
    case 'static':
      return { file, site: { folder: '.', fallback: false } };
    case 'gradio':
      return space(tree, file, 'gradio', parsed);
    case 'streamlit':
      return space(tree, file, 'streamlit', parsed);
    default:
      return undefined;
  }
}

function portOf(parsed: unknown): number | undefined {
  const port = readField(parsed, 'app_port');
  return typeof port === 'number' && Number.isInteger(port) && port > 0 && port <= 65_535 ? port : undefined;
}

function space(tree: Tree, file: string, sdk: 'gradio' | 'streamlit', parsed: unknown): Declaration | undefined {
  const script = readText(parsed, 'app_file') ?? 'app.py';
  const version = /^[0-9]{1,4}(?:\.[0-9]{1,4}){0,3}$/.exec(String(readField(parsed, 'sdk_version')))?.[0];
  return tree.has(script) && script.endsWith('.py')
    ? { file, space: present({ sdk, file: script, version }) }
    : undefined;
}
