// Watches the agents of one server: what it tells, what the person chose, and what goes back.

import { Cards, drawCards } from './cards.js';
import { byId, text } from './dom.js';
import { date } from './format.js';
import { Screen } from './screen.js';
import { drawSession } from './session.js';
import { drawAgents, drawRuns } from './side.js';
import { Wire } from './wire.js';

const NO_LEASE = { held: false, mine: false };
const MOST_CARDS = 1000;

const state = {
  connected: false,
  agents: [],
  // What is shown: an agent's log, with or without one of its sessions, or a past run.
  chosen: { agent: null, session: null, run: null },
  lease: NO_LEASE,
  echo: true,
  ended: null,
  log: new Cards([], MOST_CARDS),
  run: null,
  shown: 1,
  runs: null,
};

// --- What the person is told beside what is seen.

function announce(message) {
  text(byId('announcement'), message);
}

function problem(message) {
  text(byId('problem-text'), message);
  byId('problem').hidden = message === '';
}

// --- Drawing: at most once a frame, of everything.

let scheduled = false;

function redraw() {
  if (scheduled) return;
  scheduled = true;
  requestAnimationFrame(() => {
    scheduled = false;
    draw();
  });
}

function sessionChosen() {
  return state.agents.flatMap((agent) => agent.sessions).find(({ id }) => id === state.chosen.session) ?? null;
}

function showMore() {
  state.shown += 1;
  redraw();
}

function draw() {
  const { chosen } = state;
  drawAgents(state.agents, chosen, { agent: (id) => go('agent', id), session: (id) => go('session', id), kill });
  if (state.runs !== null) drawRuns(state.runs, chosen, { run: (id) => go('run', id) });
  byId('nothing').hidden = chosen.agent !== null || chosen.session !== null || chosen.run !== null;
  byId('session').hidden = chosen.session === null;
  if (chosen.session !== null) {
    drawSession(chosen.session, sessionChosen(), state.lease, !state.echo, state.connected);
    screen.setWritable(state.connected && state.lease.mine);
  }
  if (chosen.run !== null) drawRun();
  else if (chosen.agent !== null) drawCards(`Log of ${chosen.agent}`, state.log.newestFirst(), state.shown, showMore);
  else byId('log').hidden = true;
}

function drawRun() {
  if (state.run === null) byId('log').hidden = true;
  else drawCards(`Run of ${date(state.run.started)}`, state.run.cards.oldestFirst(), state.shown, showMore);
}

// --- What is chosen: in the address, so that it outlives a reload.

function go(kind, id) {
  location.hash = `${kind}=${encodeURIComponent(id)}`;
}

function chosenByAddress() {
  const [[kind, id] = []] = new URLSearchParams(location.hash.slice(1));
  return { agent: null, session: null, run: null, ...(['agent', 'session', 'run'].includes(kind) && { [kind]: id }) };
}

function choose() {
  const next = chosenByAddress();
  const before = state.chosen;
  if (next.session !== before.session || next.run !== before.run) {
    giveBack();
    state.lease = NO_LEASE;
    state.echo = true;
    state.ended = null;
    screen.clear();
    byId('secret-text').value = '';
  }
  state.chosen = { ...next, agent: next.agent ?? ownerOf(next.session) };
  if (next.session !== before.session) wire.watch(next.session);
  followAgent(before.agent);
  if (next.run !== before.run) openRun(next.run);
  state.shown = 1;
  text(byId('nothing'), next.run === null ? 'Choose a session to watch it.' : 'Loading the run.');
  document.title = next.session === null ? 'dsh' : `${next.session} · dsh`;
  byId('terminal').setAttribute('aria-label', `Terminal ${next.session ?? ''}`);
  showMenu(next.agent === null && next.session === null && next.run === null);
  redraw();
}

const ownerOf = (session) =>
  state.agents.find((agent) => agent.sessions.some(({ id }) => id === session))?.id ?? null;

function followAgent(before) {
  if (state.chosen.agent === before) return;
  state.log = new Cards([], MOST_CARDS);
  wire.follow(state.chosen.agent);
}

// --- Past runs.

async function fetched(path) {
  const answer = await fetch(path, { cache: 'no-store' });
  if (answer.status === 401) location.reload();
  if (!answer.ok) throw new Error(await answer.text());
  return answer.json();
}

async function showRuns() {
  try {
    state.runs = await fetched('/runs');
    text(byId('show-runs'), 'Look again');
    redraw();
  } catch (error) {
    problem(`The past runs cannot be read: ${error.message}`);
  }
}

async function openRun(id) {
  state.run = null;
  if (id === null) return;
  if (state.runs === null) await showRuns();
  try {
    const run = await fetched(`/runs/${encodeURIComponent(id)}`);
    if (state.chosen.run !== id) return;
    const started = state.runs?.find((one) => one.id === id)?.started ?? run.cards[0]?.time ?? 0;
    state.run = { started, cards: new Cards(run.cards, Infinity) };
  } catch (error) {
    problem(`The run ${id} cannot be read: ${error.message}`);
  }
  redraw();
}

// --- What the server tells.

const isWatched = ({ session }) => session === state.chosen.session;

const told = {
  hello() {},
  world({ agents }) {
    state.agents = agents;
    const before = state.chosen.agent;
    // A session in the address of a page that has just been loaded: whose it is, is known only now.
    state.chosen.agent ??= ownerOf(state.chosen.session);
    followAgent(before);
  },
  cards({ agent, cards }) {
    if (agent === state.chosen.agent) state.log = new Cards(cards, MOST_CARDS);
  },
  card({ agent, ...entry }) {
    if (agent === state.chosen.agent) state.log.put(entry);
  },
  size(message) {
    if (isWatched(message)) screen.resize(message.columns, message.rows);
  },
  echo(message) {
    if (!isWatched(message)) return;
    if (!message.on && state.echo && state.lease.mine) {
      announce(`${message.session} does not show what is typed now. There is a field for a password beside Give back.`);
    }
    if (message.on) byId('secret-text').value = '';
    state.echo = message.on;
  },
  lease(message) {
    if (!isWatched(message)) return;
    const { held, mine, session } = message;
    if (mine && !state.lease.mine) {
      announce(`You type in ${session} now. Control, Alt and full stop leave the terminal.`);
      // Not before the terminal takes what is typed.
      state.lease = { held, mine };
      draw();
      screen.focus();
    } else if (!mine && state.lease.mine) announce(`${session} is given back to its agent.`);
    else if (held && !mine && !state.lease.held) announce(`Somebody else has taken over ${session}.`);
    state.lease = { held, mine };
  },
  ended(message) {
    if (!isWatched(message)) return;
    announce(`${message.session} has ended: ${message.reason}.`);
    state.lease = NO_LEASE;
  },
  error({ of, message }) {
    problem(of ? `${of}: ${message}` : message);
  },
};

function connection(connected, words) {
  state.connected = connected;
  state.lease = NO_LEASE;
  byId('connection').dataset.state = connected ? 'open' : 'lost';
  text(byId('connection-text'), words);
  byId('retry').hidden = connected;
  redraw();
}

let lostBefore = false;

const screen = new Screen(byId('terminal'), {
  typed: (typed) => wire.send('type', { session: state.chosen.session, text: typed }),
  leave: () => byId('take').focus(),
  behind: () => {
    if (state.chosen.session !== null) wire.watch(state.chosen.session);
  },
});

const wire = new Wire({
  open() {
    connection(true, 'Connected');
    if (lostBefore) announce('Connected again.');
    problem('');
  },
  lost(pause) {
    if (state.connected) announce('The connection is lost.');
    lostBefore = true;
    connection(false, `No connection. Next try in ${Math.max(1, Math.round(pause / 1000))} s.`);
  },
  message(message) {
    if (!Object.hasOwn(told, message.type)) return;
    told[message.type](message);
    redraw();
  },
  output(session, replaces, bytes) {
    if (session === state.chosen.session) screen.output(replaces, bytes);
  },
});

// --- What the person does.

function giveBack() {
  if (state.lease.mine) wire.send('give', { session: state.chosen.session });
}

function kill(agent, job) {
  return wire.send('kill', { agent, job });
}

function showMenu(open) {
  byId('menu').setAttribute('aria-expanded', String(open));
  byId('side').classList.toggle('open', open);
}

byId('take').addEventListener('click', () => {
  problem('');
  if (state.lease.mine) giveBack();
  else wire.send('take', { session: state.chosen.session });
});
byId('interrupt').addEventListener('click', () => {
  wire.send('signal', { session: state.chosen.session, signal: 'SIGINT' });
});
byId('secret').addEventListener('submit', (event) => {
  event.preventDefault();
  const field = byId('secret-text');
  const sent = wire.send('secret', { session: state.chosen.session, text: field.value });
  field.value = '';
  if (sent) screen.focus();
});
byId('aloud').addEventListener('change', ({ target }) => screen.setAloud(target.checked));
byId('show-runs').addEventListener('click', showRuns);
byId('menu').addEventListener('click', () => showMenu(!byId('side').classList.contains('open')));
byId('skip').addEventListener('click', () => byId('main').focus());
byId('problem-close').addEventListener('click', () => problem(''));
byId('retry').addEventListener('click', () => wire.retry());
addEventListener('online', () => wire.retry());
addEventListener('hashchange', choose);

text(byId('endpoint'), `${location.origin}/mcp`);
// Whoever comes with the token again needs it no longer: the cookie is there.
if (location.hash.startsWith('#token=')) history.replaceState(null, '', location.pathname);
choose();
