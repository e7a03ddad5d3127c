// A process that passes calls on with one durable row before each, and does nothing else: what a metered call takes at least.
import { createServer } from 'node:http';
import { text } from 'node:stream/consumers';
import { Pool } from 'pg';
import { Agent, request } from 'undici';

const [port = '0', upstream = '', connectionString = ''] = process.argv.slice(2);
const agent = new Agent({ keepAliveTimeout: 3_000 });
const pool = new Pool({ connectionString, max: 10 });
await pool.query('create table row (id uuid primary key default gen_random_uuid(), amount numeric(20,12) not null)');

async function passOn(body: string): Promise<string> {
  await pool.query({ name: 'row', text: 'insert into row (amount) values ($1)', values: ['0.0001'] });
  const headers = { 'content-type': 'application/json' };
  const answer = await request(`${upstream}/chat/completions`, { method: 'POST', dispatcher: agent, body, headers });
  return answer.body.text();
}

createServer((incoming, outgoing) => {
  text(incoming)
    .then(passOn)
    .then(
      (body) => outgoing.writeHead(200, { 'content-type': 'application/json' }).end(body),
      () => outgoing.destroy(),
    );
}).listen(Number(port), '127.0.0.1', () => {
  process.stdout.write('up\n');
});
