// What next.config says: what the build leaves, and which packages it imports, also when the server starts.
import type { Tree } from '../../tree.ts';

export interface NextConfig {
  readonly output: 'standalone' | 'export' | undefined;
  /** Names of packages, without the path within them. */
  readonly imports: readonly string[];
}

const files = ['next.config.js', 'next.config.mjs', 'next.config.ts', 'next.config.cjs'];

export function readNextConfig(tree: Tree): NextConfig {
  const file = files.find((each) => tree.has(each));
  const text = file === undefined ? '' : (tree.text(file) ?? '');
  const output = /\boutput\s{0,9}:\s{0,9}["'](standalone|export)["']/.exec(text)?.[1];
  const imported = /\b(?:from|import|require)\s{0,9}\(?\s{0,9}["']((?:@[\w.-]{1,100}\/)?[\w.-]{1,100})/g;
  const imports = [...text.matchAll(imported)].flatMap(([, name = '']) => (name.startsWith('.') ? [] : [name]));
  return { output: output === 'standalone' || output === 'export' ? output : undefined, imports };
}
