// Places names beside points, so that they cover neither each other nor a point, where that is possible.

export interface Point {
  readonly name: string;
  readonly x: number;
  readonly y: number;
}

export interface Label extends Point {
  readonly anchor: 'start' | 'end' | 'middle';
}

interface Box {
  readonly left: number;
  readonly right: number;
  readonly top: number;
  readonly bottom: number;
}

/** About as wide as a letter of a label is, and as high as its line. */
const letter = 6.6;
const height = 14;
const gap = 8;

/** @param width of the plot, which no label leaves */
export function placeLabels(points: readonly Point[], width: number): Label[] {
  const taken: Box[] = points.map(({ x, y }) => ({ left: x - 5, right: x + 5, top: y - 5, bottom: y + 5 }));
  return points.map((point) => {
    const candidates = positions(point);
    const fits = candidates.filter((label) => {
      const { left, right } = boxOf(label);
      return left >= 0 && right <= width;
    });
    const free = fits.find((label) => taken.every((box) => !overlap(box, boxOf(label))));
    const chosen = free ?? fits[0] ?? candidates[0] ?? { ...point, anchor: 'start' };
    taken.push(boxOf(chosen));
    return chosen;
  });
}

function positions({ name, x, y }: Point): Label[] {
  const lines = [0, -height, height, -2 * height, 2 * height];
  return lines.flatMap((line): Label[] => [
    { name, x: x + gap, y: y + 4 + line, anchor: 'start' },
    { name, x: x - gap, y: y + 4 + line, anchor: 'end' },
  ]);
}

function boxOf({ name, x, y, anchor }: Label): Box {
  const wide = name.length * letter;
  const left = anchor === 'start' ? x : x - wide;
  return { left, right: left + wide, top: y - height + 3, bottom: y + 3 };
}

function overlap(a: Box, b: Box): boolean {
  return a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom;
}
