// Asks the chosen models at once and shows their answers as they come. Without a choice the server picks the models.
const form = document.getElementById('compare');
const section = document.getElementById('answers');
const columns = document.getElementById('columns');
const summary = document.getElementById('summary');
const stop = document.getElementById('stop');
const warning = document.getElementById('models-error');
const template = document.getElementById('answer');
const words = form.dataset;
/** Two digits behind the point, and of less than a dollar as many as show three digits that count. */
const money = (amount) =>
  new Intl.NumberFormat(words.language, {
    style: 'currency',
    currency: 'USD',
    currencyDisplay: 'narrowSymbol',
    minimumFractionDigits: 2,
    maximumFractionDigits: amount > 0 && amount < 1 ? Math.min(12, 2 - Math.floor(Math.log10(amount))) : 2,
  }).format(amount);
const unit = (name, digits) =>
  new Intl.NumberFormat(words.language, {
    style: 'unit',
    unit: name,
    unitDisplay: 'short',
    maximumFractionDigits: digits,
  });
const [seconds, milliseconds] = [unit('second', 1), unit('millisecond', 0)];
const duration = (ms) => (ms < 1000 ? milliseconds.format(ms) : seconds.format(ms / 1000));
let leaving;

const chosen = () => [...form.querySelectorAll('input[name=models]:checked')];

form.addEventListener('change', () => {
  warning.textContent = chosen().length > Number(words.maximum) ? words.toomany : '';
});

form.addEventListener('submit', (event) => {
  const models = chosen();
  if (models.length > Number(words.maximum)) {
    event.preventDefault();
    warning.textContent = words.toomany;
    return;
  }
  // The server picks the models, and answers with the page.
  if (models.length === 0) return;
  event.preventDefault();
  void run(models);
});

stop.addEventListener('click', () => leaving?.abort());

async function run(models) {
  leaving?.abort();
  leaving = new AbortController();
  const { signal } = leaving;
  columns.replaceChildren();
  section.hidden = false;
  stop.hidden = false;
  summary.textContent = words.waiting;
  const prompt = form.elements.prompt.value;
  const key = form.elements.key.value.trim();
  const headers = { 'content-type': 'application/json', accept: 'text/event-stream' };
  if (key !== '') headers.authorization = `Bearer ${key}`;
  const body = (model) => JSON.stringify({ prompt, model, stream: true });
  section.scrollIntoView({ block: 'nearest' });
  const asked = models.map(async ({ value, dataset }) => {
    const answer = column(dataset.label);
    try {
      await ask(answer, { method: 'POST', headers, body: body(value), signal });
    } catch {
      answer.show('state', signal.aborted ? words.stopped : words.failed);
      answer.mark('rejected');
    }
    return `${dataset.label}: ${answer.state()}`;
  });
  const results = await Promise.all(asked);
  if (signal !== leaving.signal) return;
  stop.hidden = true;
  summary.textContent = results.join(', ');
}

function column(label) {
  const node = template.content.firstElementChild.cloneNode(true);
  const text = node.querySelector('.text');
  const at = (name) => node.querySelector(`[data-part=${name}]`);
  node.querySelector('h3').textContent = label;
  at('state').textContent = words.waiting;
  columns.append(node);
  return {
    show: (name, value) => (at(name).textContent = value),
    state: () => at('state').textContent,
    mark: (kind) => (at('state').className = `badge ${kind}`),
    write: (piece) => text.append(piece),
  };
}

async function ask(answer, request) {
  const response = await fetch('/api/ask', request);
  if (!response.ok || !response.headers.get('content-type')?.startsWith('text/event-stream')) {
    fail(answer, await response.json());
    return;
  }
  for await (const { event, data } of events(response.body)) {
    if (event === 'delta') {
      answer.show('state', words.writing);
      answer.write(data.text);
    } else if (event === 'done') finish(answer, data);
    else if (event === 'error') fail(answer, data);
  }
}

function finish(answer, data) {
  answer.show('state', words.done);
  answer.mark('live');
  answer.show('cost', data.cost_usd === undefined ? words.pending : money(data.cost_usd));
  answer.show('latency', duration(data.latency_ms));
  if (data.tokens_in !== undefined) answer.show('tokens', `${data.tokens_in} + ${data.tokens_out}`);
}

function fail(answer, problem) {
  answer.show('state', words.failed);
  answer.mark('rejected');
  answer.write(problem.detail ?? '');
}

/** Events of a stream, with their data as JSON. */
async function* events(stream) {
  const reader = stream.pipeThrough(new TextDecoderStream()).getReader();
  let rest = '';
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    rest = `${rest}${value}`;
    const frames = rest.split('\n\n');
    rest = frames.pop();
    for (const frame of frames) {
      const found = (name) =>
        frame
          .split('\n')
          .find((line) => line.startsWith(`${name}: `))
          ?.slice(`${name}: `.length);
      const data = found('data');
      if (data !== undefined) yield { event: found('event'), data: JSON.parse(data) };
    }
  }
}
