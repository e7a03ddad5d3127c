// Generators of task instances: the same seed gives the same instance on every machine.
import { createHash } from 'node:crypto';
import type { Values } from './template.ts';

export const generators = {
  'arithmetic-story': createArithmeticStory,
  'number-words': createNumberInWords,
  'record-fields': createRecordLetter,
  'reorder-list': createUnsortedList,
  'table-to-json': createTable,
} satisfies Readonly<Record<string, Generator>>;

export type GeneratorName = keyof typeof generators;
export const generatorNames = Object.keys(generators) as [GeneratorName, ...GeneratorName[]];

/** Gives the values that the prompt and the grader of a task name. */
export type Generator = (random: Random) => Values;

export function createArithmeticStory(random: Random): Values {
  const [seller = '', friend = ''] = random.sample(people, 2);
  const good = random.pick(goods);
  const [boxes, each] = [random.pickWhole(6, 29), random.pickWhole(12, 48)];
  const broken = random.pickWhole(3, boxes * 2);
  const share = random.pickWhole(3, 9);
  const price = random.pickWhole(2, 19);
  const sold = Math.floor((boxes * each - broken) / share);
  return {
    story:
      `${seller} buys ${boxes} boxes with ${each} ${good} in each. ${broken} of the ${good} are broken and thrown away. ` +
      `The rest is shared out into lots of ${share}, and what does not fill a lot is given to ${friend}. ` +
      `Each full lot is sold for ${price} dollars.`,
    answer: sold * price,
  };
}

const small = [
  'zero',
  'one',
  'two',
  'three',
  'four',
  'five',
  'six',
  'seven',
  'eight',
  'nine',
  'ten',
  'eleven',
  'twelve',
  'thirteen',
  'fourteen',
  'fifteen',
  'sixteen',
  'seventeen',
  'eighteen',
  'nineteen',
];
const tens = ['', '', 'twenty', 'thirty', 'forty', 'fifty', 'sixty', 'seventy', 'eighty', 'ninety'];

/** In words, without "and", with hyphens: `four hundred twenty-one thousand seven`. For whole numbers below a million. */
export function formatInWords(value: number): string {
  if (value < 20) return small[value] ?? '';
  if (value < 100) return `${tens[Math.floor(value / 10)]}${value % 10 === 0 ? '' : `-${small[value % 10]}`}`;
  const [size, word] = value < 1_000 ? [100, 'hundred'] : [1_000, 'thousand'];
  const rest = value % size;
  return `${formatInWords(Math.floor(value / size))} ${word}${rest === 0 ? '' : ` ${formatInWords(rest)}`}`;
}

export function createNumberInWords(random: Random): Values {
  const value = random.pickWhole(10_001, 999_999);
  return { number: String(value), words: formatInWords(value) };
}

export function createRecordLetter(random: Random): Values {
  const [buyer, clerk] = [random.sample(people, 2), random.sample(surnames, 2)];
  const name = `${buyer[0]} ${clerk[0]}`;
  const [city = '', depot = ''] = random.sample(cities, 2);
  const order = `${random.pick(['A', 'K', 'T', 'Z'])}-${random.pickWhole(10_000, 99_999)}`;
  const [amount, cents] = [random.pickWhole(20, 940), random.pickWhole(10, 99)];
  const [day, month] = [random.pickWhole(10, 28), random.pickWhole(10, 12)];
  return {
    letter:
      `Dear ${name}, thank you for your order ${order}, which replaces ${random.pick(['B', 'Q'])}-${random.pickWhole(10_000, 99_999)}. ` +
      `${buyer[1]} ${clerk[1]} has packed ${random.pickWhole(2, 30)} ${random.pick(goods)} at our depot in ${depot}. ` +
      `They leave on 2026-${month}-${day} for your address in ${city}. The total is ${amount}.${cents} EUR, ` +
      `of which ${Math.floor(amount / 5)}.00 EUR is tax.`,
    record: { name, city, order, date: `2026-${month}-${day}`, total: Number(`${amount}.${cents}`) },
  };
}

export function createUnsortedList(random: Random): Values {
  const items = random.sample(animals, 8).map((animal) => ({ animal, number: random.pickWhole(100, 999) }));
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
}

export function createTable(random: Random): Values {
  const rows = random.sample(people, 4).map((name) => ({
    name,
    age: random.pickWhole(18, 79),
    city: random.pick(cities),
    member: random.pick([true, false]),
  }));
  const lines = rows.map(({ name, age, city, member }) => `${name} | ${age} | ${city} | ${member ? 'yes' : 'no'}`);
  return {
    table: ['name | age | city | member', ...lines].join('\n'),
    rows: rows.map(({ name, age, city, member }) => ({ name, age, city, member })),
  };
}

export const people = ['Ana', 'Bo', 'Chen', 'Dara', 'Emil', 'Fatima', 'Goran', 'Hana', 'Ivo', 'Jun', 'Kofi', 'Lena'];
export const surnames = [
  'Adler',
  'Brandt',
  'Costa',
  'Dubois',
  'Eriksen',
  'Fischer',
  'Garcia',
  'Huang',
  'Ito',
  'Jansen',
];
export const cities = ['Bergen', 'Cairo', 'Dakar', 'Hanoi', 'Lima', 'Lyon', 'Osaka', 'Porto', 'Quito', 'Riga', 'Turin'];
export const goods = ['apples', 'bowls', 'candles', 'lamps', 'mugs', 'pencils', 'plates', 'ropes', 'stamps', 'tiles'];
export const animals = [
  'badger',
  'camel',
  'dolphin',
  'falcon',
  'gecko',
  'heron',
  'ibex',
  'jackal',
  'koala',
  'lynx',
  'otter',
];

export interface Random {
  /** A whole number, both bounds included. */
  pickWhole(low: number, high: number): number;
  pick<Value>(values: readonly Value[]): Value;
  /** So many different ones, in random order. */
  sample<Value>(values: readonly Value[], count: number): Value[];
  shuffle<Value>(values: readonly Value[]): Value[];
}

/** SplitMix32 over a hash of the seed. */
export function createRandom(seed: string): Random {
  let state = createHash('sha256').update(seed).digest().readUInt32LE(0);
  const drawNext = (): number => {
    state = (state + 0x9e3779b9) | 0;
    let mixed = state ^ (state >>> 16);
    mixed = Math.imul(mixed, 0x21f0aaad);
    mixed ^= mixed >>> 15;
    mixed = Math.imul(mixed, 0x735a2d97);
    return ((mixed ^ (mixed >>> 15)) >>> 0) / 4_294_967_296;
  };
  const pickWhole = (low: number, high: number): number => low + Math.floor(drawNext() * (high - low + 1));
  const shuffle = <Value>(values: readonly Value[]): Value[] => {
    const left = [...values];
    return Array.from({ length: left.length }, () => left.splice(pickWhole(0, left.length - 1), 1)).flat();
  };
  return {
    pickWhole,
    shuffle,
    pick: (values) => values[pickWhole(0, values.length - 1)] ?? throwEmpty(),
    sample: (values, count) => shuffle(values).slice(0, count),
  };
}

function throwEmpty(): never {
  throw new RangeError('there is nothing to pick from');
}
