// Ways to change a ledger and its signed record by hand, as somebody with all rights in the database and without the key.
import { randomInt } from 'node:crypto';
import type { Client } from 'pg';
import {
  extendChain,
  hashLeafText,
  startChain,
  toCanonicalJson,
  TreeBuilder,
} from '../../../api/accounting/receipts/format/hashes.ts';
import { leaf } from '../../../api/accounting/receipts/format/documents.ts';
import { selectLeaf } from '../../../api/accounting/receipts/ledger-log-queries.ts';

export interface Tampering {
  readonly name: string;
  /** @returns what it changed */
  make(client: Client): Promise<string>;
  /** What the findings have to say, where they can name it. */
  readonly names?: (what: string) => RegExp;
}

async function one(client: Client, sql: string, values: readonly unknown[] = []): Promise<string> {
  const { rows } = await client.query<Record<string, string | number | null>>(sql, [...values]);
  const [value] = Object.values(rows[0] ?? {});
  if (value === undefined || value === null) throw new Error(`nothing was changed by ${sql}`);
  return String(value);
}

const someTransaction = (client: Client) =>
  one(client, 'select id::text from ledger.transaction order by random() limit 1');
const someDay = (client: Client) => one(client, 'select day::text from receipts.day order by random() limit 1');
const someLink = (client: Client) =>
  one(client, 'select transaction_id::text from receipts.link order by random() limit 1');
const ofTransaction = (what: string): RegExp => new RegExp(`transaction ${what}\\b`);
const amount = () => `0.${String(randomInt(1, 1e9)).padStart(12, '0')}`;

/** Makes chain and hashes of a day anew from its leaves, and even its tiles: all but the signature. */
export async function rechain(client: Client, day: string): Promise<void> {
  const { rows } = await client.query<{ id: string; leaf: string }>(
    'select transaction_id::text as id, leaf from receipts.link where day = $1 order by position',
    [day],
  );
  let chain = startChain(day);
  const tree = new TreeBuilder();
  const links = rows.map((row) => {
    const hash = hashLeafText(row.leaf);
    chain = extendChain(chain, hash);
    tree.add(hash);
    return [row.id, hash.toString('hex'), chain.toString('hex')] as const;
  });
  await client.query(
    `update receipts.link l set hash = decode(n.h, 'hex'), chain = decode(n.c, 'hex')
      from unnest($1::bigint[], $2::text[], $3::text[]) as n (i, h, c) where l.transaction_id = n.i`,
    [links.map(([id]) => id), links.map(([, hash]) => hash), links.map(([, , next]) => next)],
  );
  await client.query("update receipts.day set tiles = decode($2, 'hex') where day = $1", [
    day,
    Buffer.concat(tree.computeTiles()).toString('hex'),
  ]);
}

/** Makes the link of a transaction anew, as if it had always been what it is now. */
async function relink(client: Client, id: string): Promise<void> {
  const { rows } = await client.query<{ leaf: unknown }>(`select ${selectLeaf('$1')} as leaf`, [id]);
  const text = toCanonicalJson(leaf.parse(rows[0]?.leaf));
  const day = await one(client, 'update receipts.link set leaf = $2 where transaction_id = $1 returning day::text', [
    id,
    text,
  ]);
  await rechain(client, day);
}

async function changeAmounts(client: Client): Promise<string> {
  const id = await someTransaction(client);
  const other = amount();
  await client.query(
    'update ledger.entry set amount = case line when 1 then $2::numeric else -$2::numeric end where transaction_id = $1',
    [id, other],
  );
  return id;
}

async function deleteTransaction(client: Client): Promise<string> {
  const id = await someTransaction(client);
  await client.query('delete from ledger.entry where transaction_id = $1', [id]);
  await client.query('delete from ledger.transaction where id = $1', [id]);
  return id;
}

async function insertTransaction(client: Client): Promise<string> {
  const id = await one(
    client,
    "insert into ledger.transaction (reference, kind, at) values ('by hand ' || random(), 'settle', timestamptz '2026-03-01' + random() * interval '5 days') returning id::text",
  );
  await client.query(
    'insert into ledger.entry (transaction_id, line, account_id, amount) select $1, e.line, e.account_id, e.amount from ledger.entry e where e.transaction_id = $2',
    [id, await one(client, 'select transaction_id::text from receipts.link order by random() limit 1')],
  );
  return id;
}

/** A statement that changes something at random. @returns what of it is named in the findings */
const by = (name: string, sql: string, names?: Tampering['names']): Tampering => ({
  name,
  make: (client) => one(client, sql),
  ...(names === undefined ? {} : { names }),
});

export const tamperings: readonly Tampering[] = [
  {
    name: 'both amounts of a transaction, so that it balances',
    make: changeAmounts,
    names: (id) => new RegExp(`transaction ${id}: entry 1 has amount`),
  },
  {
    name: 'a transaction deleted with its entries',
    make: deleteTransaction,
    names: (id) => new RegExp(`transaction ${id}: it was deleted; it was \\{`),
  },
  { name: 'a transaction inserted', make: insertTransaction, names: ofTransaction },
  {
    name: 'a transaction deleted, and its link, and the chain made again',
    make: async (client) => {
      const id = await deleteTransaction(client);
      const day = await one(client, 'delete from receipts.link where transaction_id = $1 returning day::text', [id]);
      await client.query('update receipts.link set position = position + 1000000 where day = $1', [day]);
      await client.query(
        'update receipts.link l set position = n.p - 1 from (select transaction_id, row_number() over (order by position) as p from receipts.link where day = $1) n where n.transaction_id = l.transaction_id',
        [day],
      );
      await rechain(client, day);
      return day;
    },
    names: (day) => new RegExp(day),
  },
  {
    name: 'amounts changed, and the link, and the chain made again',
    make: async (client) => {
      const id = await changeAmounts(client);
      await relink(client, id);
      return id;
    },
  },
  {
    name: 'a transaction inserted and linked at the end of an open or sealed day',
    make: async (client) => {
      const id = await insertTransaction(client);
      const day = await one(client, 'select day::text from receipts.link order by random() limit 1');
      await client.query(
        "insert into receipts.link select $1::bigint, $2::date, max(position) + 1, '{}', '', '' from receipts.link where day = $2::date",
        [id, day],
      );
      await relink(client, id);
      return day;
    },
    names: (day) => new RegExp(day),
  },
  by(
    'an entry on another account',
    `update ledger.entry e set account_id = (select id from ledger.account a where a.id <> e.account_id order by random() limit 1)
      where (transaction_id, line) = (select transaction_id, line from ledger.entry order by random() limit 1) returning transaction_id::text`,
    (id) => new RegExp(`transaction ${id}: entry \\d is on account`),
  ),
  by(
    'an entry deleted',
    'delete from ledger.entry where (transaction_id, line) = (select transaction_id, line from ledger.entry order by random() limit 1) returning transaction_id::text',
    (id) => new RegExp(`transaction ${id}: entry \\d was deleted`),
  ),
  by(
    'two entries inserted that balance',
    `insert into ledger.entry (transaction_id, line, account_id, amount)
      select t.id, n, (select id from ledger.account order by random() limit 1), case n when 3 then 1 else -1 end
      from (select id from ledger.transaction order by random() limit 1) t, generate_series(3, 4) n returning transaction_id::text`,
    (id) => new RegExp(`transaction ${id}: entry 3 was inserted`),
  ),
  by(
    'entries of no transaction',
    'insert into ledger.entry (transaction_id, line, account_id, amount) select 1e9::bigint, n, (select min(id) from ledger.account), 0 from generate_series(1, 2) n returning transaction_id::text',
    ofTransaction,
  ),
  by(
    'the owner of an account',
    "update ledger.account set owner = owner || 'x' where id = (select account_id from ledger.entry order by random() limit 1) returning id::text",
  ),
  by(
    'the day of an account',
    'update ledger.account set day = day + 40 where id = (select account_id from ledger.entry order by random() limit 1) returning id::text',
  ),
  by(
    'the day of an account made endless',
    "update ledger.account set day = 'infinity' where id = (select account_id from ledger.entry order by random() limit 1) returning id::text",
  ),
  by(
    'the kind of an account',
    "update ledger.account set kind = 'app' where id = (select account_id from ledger.entry order by random() limit 1) returning id::text",
  ),
  by(
    'an account deleted',
    'delete from ledger.account where id = (select account_id from ledger.entry order by random() limit 1) returning id::text',
  ),
  by(
    'the kind of a transaction',
    "update ledger.transaction set kind = 'refund' where id = (select id from ledger.transaction order by random() limit 1) returning id::text",
    ofTransaction,
  ),
  by(
    'the reference of a transaction',
    "update ledger.transaction set reference = reference || 'x' where id = (select id from ledger.transaction order by random() limit 1) returning id::text",
    ofTransaction,
  ),
  by(
    'the time of a transaction, by a microsecond',
    "update ledger.transaction set at = at + interval '1 microsecond' where id = (select id from ledger.transaction order by random() limit 1) returning id::text",
    ofTransaction,
  ),
  by(
    'the time of a transaction made endless',
    "update ledger.transaction set at = 'infinity' where id = (select id from ledger.transaction order by random() limit 1) returning id::text",
    ofTransaction,
  ),
  {
    name: 'the number of a transaction',
    make: async (client) => {
      await client.query('alter table ledger.transaction alter id set generated by default');
      return one(
        client,
        'update ledger.transaction set id = id + 1000000 where id = (select id from ledger.transaction order by random() limit 1) returning (id - 1000000)::text',
      );
    },
    names: ofTransaction,
  },
  {
    name: 'two transactions swapped',
    make: async (client) => {
      const [a, b] = [await someTransaction(client), await someTransaction(client)];
      if (a === b) return insertTransaction(client);
      await client.query(
        'update ledger.entry set transaction_id = case transaction_id when $1::bigint then -1 else -2 end where transaction_id in ($1, $2)',
        [a, b],
      );
      await client.query(
        'update ledger.entry set transaction_id = case transaction_id when -1 then $2::bigint else $1::bigint end where transaction_id in (-1, -2)',
        [a, b],
      );
      return a;
    },
  },
  {
    name: 'two links swapped',
    make: async (client) => {
      const day = await someDay(client);
      const { rows } = await client.query<{ id: string; position: number }>(
        'select transaction_id::text as id, position from receipts.link where day = $1 order by random() limit 2',
        [day],
      );
      const [a, b] = rows;
      if (a === undefined || b === undefined) throw new Error('no links');
      await client.query('update receipts.link set position = 1000000 where transaction_id = $1', [a.id]);
      await client.query('update receipts.link set position = $2 where transaction_id = $1', [b.id, a.position]);
      await client.query('update receipts.link set position = $2 where transaction_id = $1', [a.id, b.position]);
      if (randomInt(2) === 0) await rechain(client, day);
      return day;
    },
    names: (day) => new RegExp(day),
  },
  by(
    'a link deleted',
    'delete from receipts.link where transaction_id = (select transaction_id from receipts.link order by random() limit 1) returning transaction_id::text',
    ofTransaction,
  ),
  {
    name: 'a link and its transaction deleted',
    make: async (client) => {
      const id = await deleteTransaction(client);
      return one(client, 'delete from receipts.link where transaction_id = $1 returning day::text', [id]);
    },
    names: (day) => new RegExp(day),
  },
  {
    name: 'a link deleted, and its transaction made to wait again',
    make: async (client) => {
      const id = await someLink(client);
      await client.query('delete from receipts.link where transaction_id = $1', [id]);
      await client.query('insert into receipts.waiting (transaction_id) values ($1)', [id]);
      return id;
    },
  },
  by(
    'a link moved to another day',
    'update receipts.link set day = day + 1, position = 100000 where transaction_id = (select transaction_id from receipts.link order by random() limit 1) returning transaction_id::text',
  ),
  by(
    'the leaf of a link',
    'update receipts.link set leaf = replace(leaf, \'"settle"\', \'"settled"\') where transaction_id = (select transaction_id from receipts.link order by random() limit 1) returning transaction_id::text',
    ofTransaction,
  ),
  by(
    'a space in the leaf of a link',
    "update receipts.link set leaf = leaf || ' ' where transaction_id = (select transaction_id from receipts.link order by random() limit 1) returning transaction_id::text",
    ofTransaction,
  ),
  by(
    'the hash of a link',
    'update receipts.link set hash = sha256(hash) where transaction_id = (select transaction_id from receipts.link order by random() limit 1) returning transaction_id::text',
    ofTransaction,
  ),
  by(
    'the chain of a link',
    'update receipts.link set chain = sha256(chain) where transaction_id = (select transaction_id from receipts.link order by random() limit 1) returning transaction_id::text',
    ofTransaction,
  ),
  by(
    'the last sealed day dropped',
    'delete from receipts.day where day = (select max(day) from receipts.day) returning day::text',
    (day) => new RegExp(day),
  ),
  {
    name: 'the last sealed day dropped with all that came after',
    make: async (client) => {
      const day = await one(
        client,
        'delete from receipts.day where day = (select max(day) from receipts.day) returning day::text',
      );
      await client.query(
        'delete from ledger.entry where transaction_id in (select transaction_id from receipts.link where day >= $1)',
        [day],
      );
      await client.query(
        'delete from ledger.transaction where id in (select transaction_id from receipts.link where day >= $1)',
        [day],
      );
      await client.query('delete from receipts.link where day >= $1', [day]);
      return day;
    },
  },
  by(
    'a sealed day dropped',
    'delete from receipts.day where day = (select day from receipts.day order by random() limit 1) returning day::text',
    () => /missing|newest sealed day/,
  ),
  by(
    'the first sealed day dropped',
    'delete from receipts.day where day = (select min(day) from receipts.day) returning day::text',
  ),
  by(
    'the count of a sealed day',
    `update receipts.day set document = jsonb_set(document, '{count}', to_jsonb((document ->> 'count')::integer + 1)) where day = (select day from receipts.day order by random() limit 1) returning day::text`,
    (day) => new RegExp(day),
  ),
  by(
    'the root of a sealed day',
    `update receipts.day set document = jsonb_set(document, '{root}', to_jsonb(encode(sha256('x'), 'hex'))) where day = (select day from receipts.day order by random() limit 1) returning day::text`,
    (day) => new RegExp(day),
  ),
  by(
    'the signature of a sealed day',
    `update receipts.day d set document = jsonb_set(document, '{signature}', (select o.document -> 'signature' from receipts.day o where o.day <> d.day order by random() limit 1)) where day = (select day from receipts.day order by random() limit 1) returning day::text`,
    (day) => new RegExp(day),
  ),
  by(
    'a member added to a sealed day',
    `update receipts.day set document = document || '{"note": "x"}' where day = (select day from receipts.day order by random() limit 1) returning day::text`,
    (day) => new RegExp(day),
  ),
  by(
    'the tiles of a sealed day',
    'update receipts.day set tiles = sha256(tiles) where day = (select day from receipts.day order by random() limit 1) returning day::text',
    (day) => new RegExp(day),
  ),
  by(
    'a sealed day moved',
    "update receipts.day set day = day - 40 where day = (select day from receipts.day order by random() limit 1) returning document ->> 'day'",
  ),
  by('the checkpoint deleted', 'delete from receipts.checkpoint returning one::text'),
  by(
    'the count in the checkpoint',
    `update receipts.checkpoint set document = jsonb_set(document, '{open,0,count}', '7') returning one::text`,
  ),
  by(
    'the time of the checkpoint',
    `update receipts.checkpoint set document = jsonb_set(document, '{made_at}', '"2026-03-06T12:00:01Z"') returning one::text`,
  ),
  by(
    'a transaction that is linked made to wait',
    'insert into receipts.waiting (transaction_id) select transaction_id from receipts.link order by random() limit 1 returning transaction_id::text',
    ofTransaction,
  ),
  by(
    'something that waits and is nowhere',
    'insert into receipts.waiting (transaction_id) values (123456789) returning transaction_id::text',
    ofTransaction,
  ),
];
