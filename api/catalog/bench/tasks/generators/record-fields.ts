// A letter that holds the fields of a record between others that look like them.
import type { Generator } from './generator.ts';
import { cities, goods, people, surnames } from './words.ts';

export const recordFields: Generator = (random) => {
  const [buyer, clerk] = [random.sample(people, 2), random.sample(surnames, 2)];
  const name = `${buyer[0]} ${clerk[0]}`;
  const [city = '', depot = ''] = random.sample(cities, 2);
  const order = `${random.pick(['A', 'K', 'T', 'Z'])}-${random.whole(10_000, 99_999)}`;
  const [amount, cents] = [random.whole(20, 940), random.whole(10, 99)];
  const [day, month] = [random.whole(10, 28), random.whole(10, 12)];
  return {
    letter:
      `Dear ${name}, thank you for your order ${order}, which replaces ${random.pick(['B', 'Q'])}-${random.whole(10_000, 99_999)}. ` +
      `${buyer[1]} ${clerk[1]} has packed ${random.whole(2, 30)} ${random.pick(goods)} at our depot in ${depot}. ` +
      `They leave on 2026-${month}-${day} for your address in ${city}. The total is ${amount}.${cents} EUR, ` +
      `of which ${Math.floor(amount / 5)}.00 EUR is tax.`,
    record: { name, city, order, date: `2026-${month}-${day}`, total: Number(`${amount}.${cents}`) },
  };
};
