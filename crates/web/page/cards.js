// The log of a run as cards: a terminal card shows what was sent and what came back, the others say what was done.

import { byId, children, element, text } from './dom.js';
import { duration, failed, time } from './format.js';

const AT_ONCE = 100;
// Lines that may not fit into a card.
const TALL = 10;
const STATES = { running: 'runs', failed: 'failed' };

// Cards of one run, by their call: a later one takes the place of the earlier. Of more than `most` the oldest go.
export class Cards {
  constructor(entries, most) {
    this.entries = new Map();
    this.most = most;
    for (const entry of entries) this.put(entry);
  }

  put(entry) {
    const { callId } = entry.card;
    const earlier = this.entries.get(callId);
    this.entries.set(callId, earlier ? { ...entry, seq: earlier.seq, time: earlier.time } : entry);
    if (this.entries.size > this.most) this.entries.delete(this.entries.keys().next().value);
  }

  newestFirst() {
    return this.oldestFirst().reverse();
  }

  oldestFirst() {
    return [...this.entries.values()];
  }
}

function make({ card }) {
  return element('li', { className: `card ${card.kind}-call` },
    element('div', { className: 'card-heading' },
      element('code', { className: 'card-title' }), element('span', { className: 'quiet card-note' }),
      element('span', { className: 'card-end' }, element('span', { className: 'status' }), element('time', { className: 'quiet' }))),
    element('pre', { hidden: true }));
}

function outcome(card) {
  const status = typeof card.exitStatus === 'number' ? `exit ${card.exitStatus}` : STATES[card.state] ?? '';
  const took = typeof card.durationMs === 'number' ? duration(card.durationMs) : '';
  return [status, took].filter((part) => part !== '').join(', ');
}

function update(item, { time: at, card }) {
  const [heading, output] = item.children;
  const [title, note, end] = heading.children;
  const [status, when] = end.children;
  item.dataset.state = card.state;
  text(title, card.title);
  text(note, card.description ?? (card.kind === 'terminal' ? '' : card.tool));
  text(status, outcome(card));
  status.classList.toggle('wrong', card.state === 'failed' || failed(card.exitStatus));
  text(when, time(at));
  when.dateTime = new Date(at).toISOString();
  output.hidden = !card.output;
  output.setAttribute('aria-label', `Output of ${card.title}`);
  text(output, card.output ?? '');
  // What is long scrolls, by the keyboard too.
  if (output.textContent.split('\n', TALL).length === TALL) output.tabIndex = 0;
}

// Draws the first of `entries`, and a button for more of them.
export function drawCards(title, entries, shown, more) {
  byId('log').hidden = false;
  text(byId('log-title'), title);
  byId('no-cards').hidden = entries.length > 0;
  children(byId('cards'), entries.slice(0, shown * AT_ONCE), ({ card }) => card.callId, make, update);
  const button = byId('more');
  button.hidden = entries.length <= shown * AT_ONCE;
  button.onclick = more;
}
