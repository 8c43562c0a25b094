// The watched session: its heading, who may type, and its last commands. The terminal itself is in `screen.js`.

import { byId, children, element, text } from './dom.js';
import { commandStatus, duration, failed, sessionStatus } from './format.js';

function makeCommand() {
  return element('tr', {},
    element('td', {}, element('code')), element('td', { className: 'status' }), element('td', { className: 'took' }));
}

function updateCommand(row, command) {
  const [name, status, took] = row.children;
  text(name.firstChild, command.text);
  text(status, commandStatus(command));
  status.classList.toggle('wrong', failed(command.exitStatus));
  text(took, duration(command.durationMs));
}

function drawCommands(commands) {
  byId('no-commands').hidden = commands.length > 0;
  byId('commands-table').hidden = commands.length === 0;
  const newest = commands.map((command, place) => ({ ...command, place })).reverse();
  children(byId('commands'), newest, ({ place }) => place, makeCommand, updateCommand);
}

// `session` as the world tells it; null once it is gone from there. `lease` is `{held, mine}`.
export function drawSession(id, session, lease, hidden, connected) {
  const running = session !== null && session.status.kind === 'running';
  text(byId('session-title'), session?.name ? `${id} (${session.name})` : id);
  text(byId('session-status'), session === null ? 'closed' : sessionStatus(session.status));
  const owner = byId('session-lease');
  owner.hidden = !lease.held;
  owner.classList.toggle('accent', lease.mine);
  text(owner, lease.mine ? 'you type' : 'taken over by somebody else');
  const live = session?.live ?? null;
  byId('session-live').hidden = live === null;
  text(byId('session-live-text'), live === '' ? '(send input)' : live ?? '');
  const take = byId('take');
  text(take, lease.mine ? 'Give back' : 'Take over');
  take.classList.toggle('strong', !lease.mine);
  take.disabled = !connected || !running || (lease.held && !lease.mine);
  byId('interrupt').disabled = !connected || !running || !lease.mine;
  byId('secret').hidden = !(hidden && lease.mine && running && connected);
  drawCommands(session?.lastCommands ?? []);
}
