// Reads the front matter of a Hugging Face Space in README.md: what it is made with, its file and its port.
import { field, text } from '../../manifest.ts';
import type { Tree } from '../../tree.ts';
import type { Declaration } from './declaration.ts';
import { parseYaml } from './yaml.ts';

export function huggingFaceDeclaration(tree: Tree): Declaration | undefined {
  const file = 'README.md';
  const matter = /^\ufeff?---\r?\n([\s\S]{1,4000}?)\r?\n---/.exec(tree.text(file, 8_000) ?? '')?.[1];
  const parsed = parseYaml(matter);
  const sdk = text(parsed, 'sdk');
  if (sdk === 'docker') {
    const port = field(parsed, 'app_port');
    return { file, port: typeof port === 'number' && port > 0 && port <= 65_535 ? port : 7860 };
  }
  if (sdk === 'static') return { file, site: { folder: '.', fallback: false } };
  if (sdk !== 'gradio' && sdk !== 'streamlit') return undefined;
  const script = text(parsed, 'app_file') ?? 'app.py';
  const given = field(parsed, 'sdk_version');
  const version = /^[0-9]{1,4}(?:\.[0-9]{1,4}){0,3}$/.exec(String(given))?.[0];
  return tree.has(script) && script.endsWith('.py')
    ? { file, space: { sdk, file: script, ...(version === undefined ? {} : { version }) } }
    : undefined;
}
