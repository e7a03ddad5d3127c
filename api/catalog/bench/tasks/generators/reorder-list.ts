// A list that has to be put in order by a rule.
import type { Generator } from './generator.ts';
import { animals } from './words.ts';

export const reorderList: Generator = (random) => {
  const items = random.sample(animals, 8).map((animal) => ({ animal, number: random.whole(100, 999) }));
  const descending = random.pick([true, false]);
  const inOrder = [...items].sort((one, other) => {
    const [first, second] = descending ? [other, one] : [one, other];
    return first.number - second.number || (one.animal < other.animal ? -1 : 1);
  });
  return {
    list: items.map(({ animal, number }) => `${animal} ${number}`).join(', '),
    rule: descending ? 'from the largest number to the smallest' : 'from the smallest number to the largest',
    sorted: inOrder.map(({ animal }) => animal),
  };
};
