// A story of four steps of arithmetic, with one number at its end.
import type { Generator } from './generator.ts';
import { goods, people } from './words.ts';

export const arithmeticStory: Generator = (random) => {
  const [seller = '', friend = ''] = random.sample(people, 2);
  const good = random.pick(goods);
  const [boxes, each] = [random.whole(6, 29), random.whole(12, 48)];
  const broken = random.whole(3, boxes * 2);
  const share = random.whole(3, 9);
  const price = random.whole(2, 19);
  const sold = Math.floor((boxes * each - broken) / share);
  return {
    story:
      `${seller} buys ${boxes} boxes with ${each} ${good} in each. ${broken} of the ${good} are broken and thrown away. ` +
      `The rest is shared out into lots of ${share}, and what does not fill a lot is given to ${friend}. ` +
      `Each full lot is sold for ${price} dollars.`,
    answer: sold * price,
  };
};
