// Reads the port that Dockerfiles which are not built name: what their authors know of the app holds without them too.
import type { Tree } from '../../tree.ts';

const dockerfile = /(?:^|\/)(?:[\w.-]{1,60}\.)?(?:Dockerfile|Containerfile)(?:\.[\w-]{1,40})?$/i;

/** The only port that the Dockerfiles of the tree expose; undefined when there is none or they differ. */
export function exposedPort(tree: Tree): number | undefined {
  const ports = tree.entries
    .filter((each) => each.kind === 'file' && dockerfile.test(each.path) && each.path.split('/').length <= 3)
    .slice(0, 10)
    .flatMap((each) => [...(tree.text(each.path, 64 * 1024) ?? '').matchAll(/^\s{0,9}EXPOSE\s{1,9}(\d{4,5})\b/gim)])
    .map((match) => Number(match[1]));
  const [first, ...more] = new Set(ports);
  return more.length === 0 ? first : undefined;
}
