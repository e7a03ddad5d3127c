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
    const { role, items = [] } = node;
    const orient = role === 'axis' ? orientOf(node) : inAxis;
    if (role === 'mark') count(marks, node);
    if (role === 'axis-label' && orient !== undefined) crowded.push(...crowdedIn(node, orient));
    for (const item of items) for (const inner of item.items ?? []) visit(inner, orient);
  };
  visit((view.scenegraph() as unknown as { root: Node }).root, undefined);
  return { marks, crowded };
}

function count(marks: Map<string, number>, { marktype = '', name = marktype, items = [] }: Node): void {
  if (marktype === 'group') return;
  marks.set(name, (marks.get(name) ?? 0) + items.filter((item) => canBeSeen(marktype, item)).length);
}

function orientOf(node: Node): string | undefined {
  const orient = node.items?.[0]?.['orient'];
  return typeof orient === 'string' ? orient : undefined;
}

function canBeSeen(marktype: string, item: Item): boolean {
  if (item['defined'] === false) return false;
  if (marktype === 'shape' || marktype === 'path') return item.bounds !== undefined && item.bounds.x2 >= item.bounds.x1;
  if (marktype === 'text' && linesOf(item).every((line) => line === '')) return false;
  const places = (measures[marktype] ?? []).filter((name) => item[name] !== undefined);
  return places.every((name) => Number.isFinite(item[name]));
}

/** Labels in a row whose text is broader, or higher, than the step from one to the next. */
function crowdedIn({ items = [] }: Node, orient: string): CrowdedAxis[] {
  const axis = orient === 'left' || orient === 'right' ? 'y' : 'x';
  const shown = items
    .filter((item) => item['opacity'] !== 0 && linesOf(item).some((line) => line !== ''))
    .toSorted((a, b) => Number(a[axis]) - Number(b[axis]));
  const gaps = shown.slice(1).map((item, index) => {
    const before = shown[index] ?? item;
    const room = Number(item[axis]) - Number(before[axis]);
    return { room, isCrowded: room > 0 && room + 0.5 < (extentOf(item, axis) + extentOf(before, axis)) / 2 };
  });
  if (!gaps.some((each) => each.isCrowded)) return [];
  return [{ axis, step: Math.min(...gaps.map(({ room }) => room)), labels: shown.length }];
}

function linesOf(item: Item): string[] {
  const given: unknown = item['text'];
  return (Array.isArray(given) ? given : [given]).map((line: unknown) =>
    typeof line === 'string' || typeof line === 'number' || typeof line === 'boolean' ? String(line) : '',
  );
}

/** How much of the axis a label needs, turned as it is. */
function extentOf(item: Item, axis: 'x' | 'y'): number {
  const size = Number(item['fontSize'] ?? 10);
  const lines = linesOf(item);
  const angle = ((Number(item['angle'] ?? 0) * Math.PI) / 180) * (axis === 'x' ? 1 : -1);
  const across = axis === 'x' ? Math.abs(Math.cos(angle)) : Math.abs(Math.sin(angle));
  const length = Math.max(...lines.map((line) => textWidth(line, size))) * across;
  // Slanted labels lie beside each other, one line apart.
  const slanted =
    (size * lines.length) / Math.max(0.2, axis === 'x' ? Math.abs(Math.sin(angle)) : Math.abs(Math.cos(angle)));
  return across < 0.05
    ? size * lines.length
    : across > 0.95 && axis === 'x'
      ? length
      : Math.min(slanted, length + size);
}
