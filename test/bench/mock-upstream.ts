// A process that answers chat completions after a fixed time, with a bill: what all paths of a benchmark end at.
import { createServer } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';

const [port = '0', delayMs = '0'] = process.argv.slice(2);
const body = JSON.stringify({
  id: 'chatcmpl-bench',
  object: 'chat.completion',
  created: 0,
  model: 'bench',
  choices: [
    {
      index: 0,
      message: { role: 'assistant', content: 'one two three four five six seven eight nine ten' },
      finish_reason: 'stop',
    },
  ],
  usage: { prompt_tokens: 10, completion_tokens: 20, total_tokens: 30, cost: 0.00002 },
});

createServer((request, response) => {
  request.resume().on('end', () => {
    void sleep(Number(delayMs)).then(() => {
      response.writeHead(200, { 'content-type': 'application/json' }).end(body);
    });
  });
}).listen(Number(port), '127.0.0.1', () => {
  process.stdout.write('up\n');
});
