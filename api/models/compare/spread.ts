// Picks the models of a comparison for a caller who named none: different in price, quality and maker.
import type { Model } from '../catalog.ts';

/** How many are picked. */
export const spreadSize = 3;

/**
 * The cheapest, the dearest, and one between them that adds most: a maker and a quality not there yet, then a price
 * near
 * the geometric mean. Models of one maker are taken only when no other is left. Always the same for the same models.
 */
export function pickSpread(models: readonly Model[]): Model[] {
  const sorted = [...models].sort((a, b) => weight(a) - weight(b));
  const [cheapest, ...others] = sorted;
  if (cheapest === undefined) return [];
  const dearest = dearestOf(others.filter(({ maker }) => maker !== cheapest.maker)) ?? dearestOf(others);
  if (dearest === undefined) return [cheapest];
  const ends = [cheapest, dearest];
  const middle = Math.sqrt(weight(cheapest) * weight(dearest));
  const rank = (model: Model): number => {
    const newMaker = ends.every(({ maker }) => maker !== model.maker) ? 0 : 1;
    const newQuality = ends.every(({ quality }) => quality !== model.quality) ? 0 : 1;
    return newMaker * 1e6 + newQuality * 1e3 + Math.abs(Math.log(weight(model) / middle));
  };
  const between = sorted
    .filter((model) => !ends.includes(model))
    .sort((a, b) => rank(a) - rank(b))
    .slice(0, spreadSize - ends.length);
  return sorted.filter((model) => ends.includes(model) || between.includes(model));
}

/** What an answer of usual shape, three tokens in for one out, costs relative to others; only to order by. */
function weight({ in_per_m, out_per_m }: Model): number {
  return Number(in_per_m * 3n + out_per_m) + 1;
}

/** Of several at one price, the first. */
function dearestOf(models: readonly Model[]): Model | undefined {
  return models.reduce<Model | undefined>(
    (heaviest, model) => (heaviest === undefined || weight(model) > weight(heaviest) ? model : heaviest),
    undefined,
  );
}
