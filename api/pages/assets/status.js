// Follows a build: the log by server-sent events, and the state by reading this page again at each change of stage.
const state = document.getElementById('state');
const log = document.getElementById('log');
const announcement = document.getElementById('announcement');
const part = (name) => log.querySelector(`[data-part=${name}]`);
const [lines, note, show, lead] = ['lines', 'note', 'show', 'lead'].map(part);

/** Lines that are kept in the page; the rest of a long log is read in a terminal. */
const maximumLines = 2000;
const pollMs = 5000;
/** Of an app that is live or was rejected, a push or a crash changes the state at any time. */
const restMs = 15000;
let stage = '';
let events;
let reading;
let again = false;

/** Reads the page again and puts its state in the place of this one. Changes while it reads are read once more. */
async function refresh() {
  if (reading !== undefined) {
    again = true;
    return reading;
  }
  reading = read().catch(() => undefined);
  await reading;
  reading = undefined;
  if (!again) return;
  again = false;
  await refresh();
}

async function read() {
  const response = await fetch(location.href, { headers: { accept: 'text/html' }, cache: 'no-cache' });
  if (!response.ok) return;
  const page = new DOMParser().parseFromString(await response.text(), 'text/html');
  const fresh = page.getElementById('state');
  if (fresh === null) return;
  if (fresh.isEqualNode(state)) return;
  const before = headline();
  state.replaceChildren(...fresh.childNodes);
  Object.assign(state.dataset, fresh.dataset);
  if (headline() !== before) announcement.textContent = headline();
}

function headline() {
  const step = state.querySelector('[aria-current=step] span');
  return [state.querySelector('#headline')?.textContent, step?.textContent].filter(Boolean).join(': ');
}

const isMoving = () => state.dataset.moving === 'yes';

function append(text, kind) {
  const isAtEnd = lines.scrollTop + lines.clientHeight >= lines.scrollHeight - 40;
  const line = document.createElement('span');
  if (kind !== undefined) line.className = kind;
  line.textContent = `${text}\n`;
  lines.hidden = false;
  lines.append(line);
  while (lines.childElementCount > maximumLines) lines.firstElementChild.remove();
  if (isAtEnd) lines.scrollTop = lines.scrollHeight;
}

function follow() {
  show.hidden = true;
  lead.hidden = false;
  stage = '';
  note.textContent = '';
  events = new EventSource(log.dataset.url);
  events.addEventListener('stage', () => void refresh());
  events.addEventListener('log', ({ data }) => {
    const entry = JSON.parse(data);
    if (entry.stage !== stage) append(log.dataset[entry.stage] ?? entry.stage, 'heading');
    stage = entry.stage;
    append(entry.line);
  });
  events.addEventListener('gone', () => {
    note.textContent = log.dataset.gone;
  });
  events.addEventListener('end', () => {
    stop();
    void refresh();
  });
  events.addEventListener('error', () => {
    if (events?.readyState !== EventSource.CLOSED) return;
    stop();
    if (isMoving()) note.textContent = log.dataset.lost;
  });
}

function stop() {
  events?.close();
  events = undefined;
  lead.hidden = true;
}

/** Goes on for as long as the page is open. A build that begins meanwhile is followed like the first. */
async function watch() {
  const wasMoving = isMoving();
  await new Promise((resolve) => setTimeout(resolve, wasMoving ? pollMs : restMs));
  if (!document.hidden) await refresh();
  if (isMoving() && !wasMoving && events === undefined) follow();
  void watch();
}

show.addEventListener('click', follow);
if (isMoving()) follow();
else show.hidden = false;
void watch();
