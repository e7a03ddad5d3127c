// A small table that has to be written as JSON of a given form.
import type { Generator } from './generator.ts';
import { cities, people } from './words.ts';

export const tableToJson: Generator = (random) => {
  const rows = random.sample(people, 4).map((name) => ({
    name,
    age: random.whole(18, 79),
    city: random.pick(cities),
    member: random.pick([true, false]),
  }));
  const lines = rows.map(({ name, age, city, member }) => `${name} | ${age} | ${city} | ${member ? 'yes' : 'no'}`);
  return {
    table: ['name | age | city | member', ...lines].join('\n'),
    rows: rows.map(({ name, age, city, member }) => ({ name, age, city, member })),
  };
};
