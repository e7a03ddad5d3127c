// Finds apps that open a window on the author's machine: Tauri, and nothing that serves.
import type { Problem } from '../recipe.ts';
import type { Tree } from '../../tree.ts';

const config = /^(?:[^/]{1,60}\/)?tauri\.conf\.json5?$/;
const servers =
  /^\s{0,9}"?(?:actix-web|axum|rocket|warp|hyper|tide|poem|salvo|gotham|ntex|tonic)"?(?:\.workspace)?\s{0,9}=/m;

/** A refusal by name; undefined when it serves, or opens no window. */
export function desktopApp(tree: Tree): Problem | undefined {
  const file = tree.entries.find((each) => each.kind === 'file' && config.test(each.path))?.path;
  if (file === undefined) return undefined;
  const manifests = tree.entries.filter(
    (each) => each.kind === 'file' && /^(?:[^/]{1,60}\/){0,2}Cargo\.toml$/.test(each.path),
  );
  if (manifests.some((each) => servers.test(tree.text(each.path) ?? ''))) return undefined;
  return {
    problem: {
      rule: 'plan/desktop-app',
      severity: 'error',
      file,
      message: 'This is a desktop app (Tauri): it opens a window on its own machine and answers no HTTP.',
      fix: 'Only apps that answer HTTP are hosted. If its pages work in a browser alone, set build.strategy: node in moorage.yaml.',
    },
  };
}
