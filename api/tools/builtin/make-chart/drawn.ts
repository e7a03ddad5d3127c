// What Vega has drawn: marks that show nothing, and labels that lie over each other.
import type * as vega from 'vega';
import { textWidth } from '../../svg/text-width.ts';

/** A node of Vega's scene: a mark with items, which in groups hold marks again. */
interface Node {
  readonly marktype?: string;
  readonly role?: string;
  readonly name?: string;
  readonly items?: readonly Item[];
}
interface Item extends Readonly<Record<string, unknown>> {
  readonly items?: readonly Node[];
  readonly bounds?: { readonly x1: number; readonly x2: number; readonly y1: number; readonly y2: number };
}

const measures: Readonly<Record<string, readonly string[]>> = {
  arc: ['x', 'y', 'startAngle', 'endAngle'],
  area: ['x', 'y'],
  image: ['x', 'y'],
  line: ['x', 'y'],
  rect: ['x', 'y', 'width', 'height'],
  rule: ['x', 'y'],
  symbol: ['x', 'y'],
  text: ['x', 'y'],
  trail: ['x', 'y'],
};

export interface Drawn {
  /** Marks of data: name, and how many of their items can be seen. */
  readonly marks: ReadonlyMap<string, number>;
  /** Axes of names whose labels collide: x, or y; with the room that each label has. */
  readonly crowded: readonly CrowdedAxis[];
}

export interface CrowdedAxis {
  readonly axis: 'x' | 'y';
  /** Pixels from label to label. */
  readonly step: number;
  readonly labels: number;
}

export function drawnIn(view: vega.View): Drawn {
  const marks = new Map<string, number>();
  const crowded: CrowdedAxis[] = [];
  const visit = (node: Node, inAxis: string | undefined): void => {
    const orient = node.role === 'axis' ? orientOf(node) : inAxis;
    if (node.role === 'mark' && node.marktype !== 'group') {
      const name = node.name ?? node.marktype ?? '';
      marks.set(name, (marks.get(name) ?? 0) + (node.items ?? []).filter((item) => canBeSeen(node.marktype ?? '', item)).length);
    }
    if (node.role === 'axis-label' && orient !== undefined) crowded.push(...crowdedIn(node, orient));
    for (const item of node.items ?? []) for (const inner of item.items ?? []) visit(inner, orient);
  };
  visit((view.scenegraph() as unknown as { root: Node }).root, undefined);
  return { marks, crowded };
}

function orientOf(node: Node): string | undefined {
  const orient = node.items?.[0]?.['orient'];
  return typeof orient === 'string' ? orient : undefined;
}

function canBeSeen(marktype: string, item: Item): boolean {
  if (item['defined'] === false) return false;
  if (marktype === 'shape' || marktype === 'path') return item.bounds !== undefined && item.bounds.x2 >= item.bounds.x1;
  if (marktype === 'text' && String(item['text'] ?? '') === '') return false;
  const places = (measures[marktype] ?? []).filter((name) => item[name] !== undefined);
  return places.every((name) => Number.isFinite(item[name]));
}

/** Labels in a row whose text is broader, or higher, than the step from one to the next. */
function crowdedIn({ items = [] }: Node, orient: string): CrowdedAxis[] {
  const axis = orient === 'left' || orient === 'right' ? 'y' : 'x';
  const shown = items
    .filter((item) => item['opacity'] !== 0 && String(item['text'] ?? '') !== '')
    .toSorted((a, b) => Number(a[axis]) - Number(b[axis]));
  let step = Infinity;
  let isCrowded = false;
  shown.forEach((item, index) => {
    const next = shown[index + 1];
    if (next === undefined) return;
    const room = Number(next[axis]) - Number(item[axis]);
    step = Math.min(step, room);
    if (room > 0 && room + 0.5 < (extentOf(item, axis) + extentOf(next, axis)) / 2) isCrowded = true;
  });
  return isCrowded ? [{ axis, step, labels: shown.length }] : [];
}

/** How much of the axis a label needs, turned as it is. */
function extentOf(item: Item, axis: 'x' | 'y'): number {
  const size = Number(item['fontSize'] ?? 10);
  const lines = [item['text']].flat().map(String);
  const angle = ((Number(item['angle'] ?? 0) * Math.PI) / 180) * (axis === 'x' ? 1 : -1);
  const across = axis === 'x' ? Math.abs(Math.cos(angle)) : Math.abs(Math.sin(angle));
  const length = Math.max(...lines.map((line) => textWidth(line, size))) * across;
  // Slanted labels lie beside each other, one line apart.
  const slanted = (size * lines.length) / Math.max(0.2, axis === 'x' ? Math.abs(Math.sin(angle)) : Math.abs(Math.cos(angle)));
  return across < 0.05 ? size * lines.length : across > 0.95 && axis === 'x' ? length : Math.min(slanted, length + size);
}
