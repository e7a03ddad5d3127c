// Words that instances are made of.
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
