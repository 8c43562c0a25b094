// The list on the left: agents with their sessions and jobs, and past runs.

import { byId, children, element, text } from './dom.js';
import { date, duration, sessionStatus, time } from './format.js';

const named = (session) => (session.name ? `${session.id} (${session.name})` : session.id);

function entry(on) {
  return element('li', {},
    element('button', { type: 'button', className: 'entry', onclick: on },
      element('span', { className: 'entry-name' }), element('span', { className: 'entry-state' })));
}

function fill(item, name, state, selected) {
  const [button] = item.children;
  text(button.children[0], name);
  button.title = name;
  text(button.children[1], state);
  if (selected) button.setAttribute('aria-current', 'true');
  else button.removeAttribute('aria-current');
}

const isLive = ({ live }) => live !== undefined && live !== null;

function sessionState(session) {
  if (session.lease) return 'taken over';
  if (isLive(session)) return 'busy';
  return sessionStatus(session.status);
}

function makeJob(agent, job, on) {
  const kill = element('button', { type: 'button', className: 'small', onclick: () => {
    kill.disabled = on.kill(agent, job);
  } }, 'Kill');
  return element('li', { className: 'job' },
    element('span', { className: 'job-name' }), element('span', { className: 'job-state quiet' }), kill);
}

const LIVE = new Set(['running', 'stopping']);

function updateJob(item, job) {
  const [name, state, kill] = item.children;
  text(name, job.label);
  name.title = job.label;
  const took = job.finishedAt ? `after ${duration(job.finishedAt - job.startedAt)}` : `since ${time(job.startedAt)}`;
  text(state, `${job.status} ${took}`);
  state.title = [job.id, job.detail].filter(Boolean).join(': ');
  kill.hidden = !LIVE.has(job.status);
  // What was asked to end and has not may be asked again.
  if (item.dataset.status !== job.status) kill.disabled = false;
  item.dataset.status = job.status;
  kill.setAttribute('aria-label', `Kill ${job.id}`);
}

function makeAgent(agent, on) {
  return element('li', {},
    element('button', { type: 'button', className: 'entry agent', onclick: () => on.agent(agent.id) },
      element('span', { className: 'entry-name' }), element('span', { className: 'entry-state' })),
    element('ul', { className: 'entries', 'aria-label': 'Sessions' }),
    element('ul', { className: 'entries', 'aria-label': 'Jobs' }));
}

// `on` has `agent(id)`, `session(id)`, `run(id)`, and `kill(agent, job)`, which says whether it was sent.
export function drawAgents(agents, chosen, on) {
  byId('no-agents').hidden = agents.length > 0;
  children(byId('agents'), agents, (agent) => agent.id, (agent) => makeAgent(agent, on), (item, agent) => {
    const [button, sessions, jobs] = item.children;
    text(button.children[0], agent.id);
    text(button.children[1], agent.sessions.some(isLive) ? 'busy' : agent.status);
    if (chosen.agent === agent.id) button.setAttribute('aria-current', 'true');
    else button.removeAttribute('aria-current');
    children(sessions, agent.sessions, (session) => session.id, (session) => entry(() => on.session(session.id)),
      (one, session) => fill(one, named(session), sessionState(session), chosen.session === session.id));
    children(jobs, agent.jobs, (job) => job.id, (job) => makeJob(agent.id, job.id, on), updateJob);
  });
}

export function drawRuns(runs, chosen, on) {
  byId('no-runs').hidden = runs.length > 0;
  children(byId('runs'), runs, (run) => run.id, (run) => entry(() => on.run(run.id)),
    (item, run) => fill(item, date(run.started), `${run.calls} ${run.calls === 1 ? 'call' : 'calls'}`, chosen.run === run.id));
}
